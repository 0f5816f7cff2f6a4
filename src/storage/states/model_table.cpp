#include "storage/states/model_table.hpp"

#include <algorithm>
#include <utility>

namespace skein::storage {

void model_table::add(std::string identity, const known_model& model) {
  const std::lock_guard lock(mutex_);
  models_.insert_or_assign(std::move(identity), model);
}

void model_table::add(const std::string& identity, const std::string& former, known_model model) {
  add(identity, model);
  if (former.empty() || former == identity) return;
  model.newer = identity;
  add(former, model);
}

bool model_table::same(std::string_view one, std::string_view other) const {
  const auto newest = [this](std::string_view identity) {
    const auto model = find(identity);
    return model && !model->newer.empty() ? model->newer : std::string(identity);
  };
  return one == other || newest(one) == newest(other);
}

std::optional<known_model> model_table::find(std::string_view identity) const {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(identity);
  return found == models_.end() ? std::nullopt : std::optional(found->second);
}

error model_table::unknown(std::string_view what, std::string_view identity) const {
  const std::lock_guard lock(mutex_);
  std::string known;
  for (const auto& [name, model] : models_)
    if (model.newer.empty()) known += (known.empty() ? "model " : ", model ") + name;
  return {error_kind::conflict,
          std::string(what) + " belongs to model " + std::string(identity) +
              ", which was not loaded; loaded since the start: " + (known.empty() ? "none" : known),
          ""};
}

std::size_t model_table::state_bytes_max() const {
  const std::lock_guard lock(mutex_);
  std::size_t most = 0;
  for (const auto& [name, model] : models_) most = std::max(most, model.state.bytes());
  return most;
}

}  // namespace skein::storage
