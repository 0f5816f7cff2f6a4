#include "actors/supervisor/models/retired_models.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.hpp"
#include "base/log/log.hpp"

namespace skein::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr auto watch_pause = 10ms;
constexpr auto retirement = 30s;  // for a device without requests to deliver its settled states

}  // namespace

void retired_models::add(request::model_ref model, bool force) {
  log::info("model retired", {{"model", model->id()},
                              {"requests", model->devices.sum(&device::device_counters::requests)},
                              {"by_force", force}});
  models_.push_back({std::move(model)});
  if (force) cut_off(models_.back());
  watch();
}

void retired_models::cut_off() {
  for (retired& one : models_) cut_off(one);
}

void retired_models::cut_off(retired& one) {
  one.is_ending = true;
  one.model->cut_off = true;
  one.model->devices.shut_down(real_clock().now());
}

bool retired_models::any_ending() const {
  return std::ranges::any_of(models_, [](const retired& one) { return one.is_ending || one.is_unused(); });
}

void retired_models::each(const std::function<void(const request::loaded_model&)>& visit) const {
  for (const retired& one : models_) visit(*one.model);
}

void retired_models::watch() {
  if (std::exchange(watching_, true)) return;
  timer_.expires_after(watch_pause);
  timer_.async_wait([this](const boost::system::error_code& ec) {
    watching_ = false;
    if (ec) return;
    look();
    looked_();
    if (!empty()) watch();
  });
}

void retired_models::look() {
  for (retired& one : models_) {
    if (one.is_ending || !one.is_unused()) continue;
    one.is_ending = true;
    one.model->devices.shut_down(real_clock().now() + retirement);
  }
  std::erase_if(models_, [](const retired& one) {
    if (!one.is_ending || !one.model->devices.ended()) return false;
    log::info("model unloaded", {{"model", one.model->id()}});
    return true;
  });
}

}  // namespace skein::supervisor
