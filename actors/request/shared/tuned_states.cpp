#include "actors/request/shared/tuned_states.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace skein::request {

namespace fs = std::filesystem;

result<void> set_weights(tuned_state& mixture, const std::vector<float>& weights, const std::string& field) {
  const auto wrong = [&](const std::string& complaint) {
    return error{error_kind::invalid_argument, complaint, field};
  };
  if (mixture.mixture.empty()) return wrong(field + " needs a mixture of states");
  if (weights.size() > mixture.mixture.size())
    return wrong(field + " must have at most " + std::to_string(mixture.mixture.size()) +
                 " numbers, one for each state");
  for (std::size_t i = 0; i < mixture.mixture.size(); ++i)
    mixture.mixture[i].weight = i < weights.size() ? weights[i] : 0;
  return {};
}

std::shared_ptr<const tuned_states::list> tuned_states::all() const {
  const std::lock_guard lock(mutex_);
  return states_;
}

result<void> tuned_states::put(tuned_state state, std::size_t states_max) {
  const std::lock_guard lock(mutex_);
  auto changed = std::make_shared<list>(*states_);
  const auto same = std::ranges::find(*changed, state.name, &tuned_state::name);
  if (same != changed->end())
    *same = std::move(state);
  else
    changed->push_back(std::move(state));
  std::size_t count = 0;
  for (const tuned_state& s : *changed) count += std::max<std::size_t>(s.mixture.size(), 1);
  if (count > states_max)
    return error{error_kind::overloaded,
                 "too many tuned states: " + std::to_string(count) + "; model.tuned_states_max is " +
                     std::to_string(states_max) + "; remove some",
                 ""};
  states_ = std::move(changed);
  return {};
}

result<void> tuned_states::change(std::string_view name, const std::function<result<void>(tuned_state&)>& edit) {
  const std::lock_guard lock(mutex_);
  auto changed = std::make_shared<list>(*states_);
  const auto found = std::ranges::find(*changed, name, &tuned_state::name);
  if (found == changed->end())
    return error{error_kind::not_found, "there is no tuned state '" + std::string(name) + "'", "state_viewname"};
  if (auto ok = edit(*found); !ok) return ok;
  states_ = std::move(changed);
  return {};
}

bool tuned_states::remove(std::string_view name) {
  const std::lock_guard lock(mutex_);
  auto changed = std::make_shared<list>(*states_);
  if (std::erase_if(*changed, [&](const tuned_state& s) { return s.name == name; }) == 0) return false;
  states_ = std::move(changed);
  return true;
}

void tuned_states::clear() {
  const std::lock_guard lock(mutex_);
  states_ = std::make_shared<const list>();
}

result<chosen_model> choose_model(const std::vector<std::string>& names, const tuned_states::list& states,
                                  std::string_view model, std::string_view state_name) {
  const auto find = [&](std::string_view name) -> std::optional<tuned_state> {
    const auto found = std::ranges::find(states, name, &tuned_state::name);
    return found == states.end() ? std::nullopt : std::optional(*found);
  };
  chosen_model chosen;
  chosen.known = model.empty() || std::ranges::find(names, model) != names.end();
  if (!chosen.known) {
    chosen.state = find(model);
    for (const auto& name : names)
      if (!chosen.state && model.starts_with(name + ' ')) chosen.state = find(model.substr(name.size() + 1));
    chosen.known = chosen.state.has_value();
  }
  if (state_name.empty()) return chosen;
  chosen.state = find(state_name);
  if (const auto by_file = std::ranges::find(states, state_name, &tuned_state::file);
      !chosen.state && by_file != states.end())
    chosen.state = *by_file;
  if (!chosen.state)
    return error{error_kind::not_found, "there is no tuned state '" + std::string(state_name) + "'", "state_name"};
  return chosen;
}

result<std::string> path_below(const std::string& root, const std::string& name) {
  if (root.empty())
    return error{error_kind::forbidden, "this server loads no state files: model.states_dir is not set", ""};
  std::error_code ec;
  const fs::path base = fs::canonical(root, ec);
  if (ec) return error{error_kind::missing_file, "the folder model.states_dir cannot be read", ""};
  const fs::path file = fs::weakly_canonical(base / fs::path(name), ec);
  const auto [end, unused] = std::mismatch(base.begin(), base.end(), file.begin(), file.end());
  if (ec || end != base.end() || name.find('\0') != std::string::npos)
    return error{error_kind::forbidden, "state files must be inside model.states_dir", ""};
  if (!fs::is_regular_file(file, ec))
    return error{error_kind::missing_file, "there is no state file '" + name + "'", ""};
  return file.string();
}

}  // namespace skein::request
