#include "actors/request/loaded_models.hpp"

#include <utility>

namespace skein::request {

std::shared_ptr<const protocol::model_preset> loaded_model::preset() const {
  const std::lock_guard lock(mutex_);
  if (preset_) return preset_;
  return {std::shared_ptr<const void>(), &served.preset};  // lives as long as the model, which the caller holds
}

void loaded_model::change_preset(protocol::model_preset preset) {
  auto next = std::make_shared<const protocol::model_preset>(std::move(preset));
  const std::lock_guard lock(mutex_);
  preset_ = std::move(next);
}

model_ref loaded_models::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

void loaded_models::show(model_ref model) {
  const std::lock_guard lock(mutex_);
  current_.swap(model);  // the old one is let go outside of the lock
}

std::vector<std::string> loaded_models::available() const {
  const std::lock_guard lock(mutex_);
  return available_;
}

void loaded_models::set_available(std::vector<std::string> ids) {
  const std::lock_guard lock(mutex_);
  available_ = std::move(ids);
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
