#include "actors/request/shared/request_metrics.hpp"

#include "config/limits.hpp"

namespace skein::request {
namespace {

/// Clients can choose names, so their number must be bounded.
template <typename Map>
series_name bounded(const Map& known, const std::string& model, const std::string& key) {
  if (known.size() < config::limits::metric_series_max) return {model, key};
  return {"other", "other"};
}

}  // namespace

generation_series& metrics_shard::generation(const std::string& model, const std::string& key) {
  const std::lock_guard lock(mutex_);
  auto found = generations_.find({model, key});
  if (found == generations_.end()) found = generations_.try_emplace(bounded(generations_, model, key)).first;
  if (!found->second) found->second = std::make_unique<generation_series>();
  return *found->second;
}

void metrics_shard::count_exchange(std::string_view route, const std::string& method, unsigned status) {
  const std::lock_guard lock(mutex_);
  ++exchanges_[{route, method, status}];
}

void metrics_shard::count_rejection(const std::string& model, const std::string& key, error_kind why) {
  const std::lock_guard lock(mutex_);
  const auto found = rejections_.find({{model, key}, why});
  ++(found != rejections_.end() ? found->second : rejections_[{bounded(rejections_, model, key), why}]);
}

void metrics_shard::each_generation(
    const std::function<void(const series_name&, const generation_series&)>& tell) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, series] : generations_) tell(name, *series);
}

void metrics_shard::each_exchange(const std::function<void(const exchange_name&, std::uint64_t)>& tell) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, count] : exchanges_) tell(name, count);
}

void metrics_shard::each_rejection(
    const std::function<void(const series_name&, error_kind, std::uint64_t)>& tell) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, count] : rejections_) tell(name.first, name.second, count);
}

}  // namespace skein::request
