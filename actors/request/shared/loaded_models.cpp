#include "actors/request/shared/loaded_models.hpp"

#include <algorithm>
#include <utility>

namespace skein::request {
namespace {

using place = loaded_models::place;

auto has_id(std::string_view id) {
  return [id](const place& p) { return p.names.front() == id; };
}

/// The states of a model that is not in memory are unknown, so its id as a prefix is enough.
bool knows_state(const place& p, std::string_view name) {
  if (!p.model) return name.starts_with(p.names.front() + ' ');
  const auto chosen = choose_model(p.names, *p.model->tuned.all(), name, "");
  return chosen && chosen->state;
}

}  // namespace

std::shared_ptr<const protocol::model_preset> loaded_model::preset() const {
  const std::lock_guard lock(mutex_);
  if (preset_) return preset_;
  return {std::shared_ptr<const void>(), &served.preset};  // lives as long as the model, which the caller holds
}

void loaded_model::change_preset(protocol::model_preset preset) {
  const std::lock_guard lock(mutex_);
  if (preset_) preset.by_client = preset_->by_client;
  preset.headed_tools = served.preset.headed_tools;
  preset.bot_turns = served.preset.bot_turns;
  preset_ = std::make_shared<const protocol::model_preset>(std::move(preset));
}

void loaded_model::change_defaults(const protocol::client_defaults& newer) {
  const std::lock_guard lock(mutex_);
  protocol::model_preset preset = preset_ ? *preset_ : served.preset;
  preset.by_client.change(newer);
  preset_ = std::make_shared<const protocol::model_preset>(std::move(preset));
}

model_ref loaded_models::current() const {
  const std::lock_guard lock(mutex_);
  return places_.empty() ? nullptr : places_.front().model;
}

loaded_models::absence loaded_models::why_none() const {
  const std::lock_guard lock(mutex_);
  return places_.empty() ? absence::unloaded : places_.front().why;
}

std::vector<place> loaded_models::places() const {
  const std::lock_guard lock(mutex_);
  return places_;
}

std::optional<place> loaded_models::place_of(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto it = std::ranges::find_if(places_, has_id(id));
  return it == places_.end() ? std::nullopt : std::optional(*it);
}

std::vector<model_ref> loaded_models::resident() const {
  const std::lock_guard lock(mutex_);
  std::vector<model_ref> all;
  for (const place& p : places_)
    if (p.model) all.push_back(p.model);
  return all;
}

bool loaded_models::may_choose() const {
  const std::lock_guard lock(mutex_);
  return by_name_ || places_.size() > 1;
}

/// All models share the configured names, so ids have priority over names, and names of the current model over those of
/// others.
loaded_models::meant loaded_models::find(std::string_view name, bool may_load) const {
  const std::lock_guard lock(mutex_);
  const auto of = [](const place& p) { return meant{p.names.front(), p.model, p.why}; };
  if (!name.empty()) {
    if (const auto it = std::ranges::find_if(places_, has_id(name)); it != places_.end()) return of(*it);
    for (const place& p : places_)
      if (std::ranges::find(p.names, name) != p.names.end()) return of(p);
    for (const place& p : places_)
      if (knows_state(p, name)) return of(p);
    if (may_load && by_name_ && std::ranges::find(available_, name) != available_.end())
      return {std::string(name), nullptr, absence::available};
  }
  return places_.empty() ? meant{} : of(places_.front());
}

bool loaded_models::call(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto it = std::ranges::find_if(places_, has_id(id));
  if (it != places_.end()) return !it->model && std::exchange(it->why, absence::coming) == absence::resting;
  place comes{{id}, nullptr, absence::coming};
  comes.card.id = id;
  places_.push_back(std::move(comes));
  return true;
}

void loaded_models::put(place there, bool as_current) {
  const std::lock_guard lock(mutex_);  // the old entry is destroyed outside of it
  auto it = std::ranges::find_if(places_, has_id(there.names.front()));
  if (it == places_.end()) it = places_.insert(it, place{});
  std::swap(*it, there);
  if (as_current) std::rotate(places_.begin(), it, it + 1);
}

void loaded_models::put(const model_ref& loaded, bool as_current) {
  put({loaded->served.names, loaded, absence::resting, loaded->served.card}, as_current);
}

void loaded_models::forget(std::string_view id) {
  place gone;
  const std::lock_guard lock(mutex_);
  const auto it = std::ranges::find_if(places_, has_id(id));
  if (it == places_.end()) return;
  gone = std::move(*it);
  places_.erase(it);
}

void loaded_models::make_current(std::string_view id) {
  const std::lock_guard lock(mutex_);
  const auto it = std::ranges::find_if(places_, has_id(id));
  if (it != places_.end()) std::rotate(places_.begin(), it, it + 1);
}

bool loaded_models::is_available(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(available_, id) != available_.end();
}

std::vector<std::string> loaded_models::available() const {
  const std::lock_guard lock(mutex_);
  return available_;
}

void loaded_models::set_available(std::vector<std::string> ids, bool by_name) {
  const std::lock_guard lock(mutex_);
  available_ = std::move(ids);
  by_name_ = by_name;
}

std::optional<loaded_models::load> loaded_models::loading() const {
  const std::lock_guard lock(mutex_);
  return loading_;
}

void loaded_models::set_loading(std::optional<load> load) {
  const std::lock_guard lock(mutex_);
  loading_ = std::move(load);
}

}  // namespace skein::request
