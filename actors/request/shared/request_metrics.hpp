#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/metrics/metrics.hpp"

/// Request metrics of the io threads. Each thread has its own shard, so counting never waits; readers add the shards
/// up. A shard's lock is taken when a request begins and when metrics are read, never per token.
namespace skein::request {

/// How an answer ended.
enum class ending : std::uint8_t { stop, length, abort };
inline constexpr std::array<std::string_view, 3> ending_names{"stop", "length", "abort"};

/// Generation calls on one model for one key. Written by one io thread.
struct generation_series {
  metrics::histogram first_token{metrics::first_token_bounds};
  metrics::histogram inter_token{metrics::token_bounds};
  metrics::histogram per_token{metrics::token_bounds};
  metrics::histogram whole{metrics::request_bounds};
  metrics::histogram queue{metrics::request_bounds}, prefill{metrics::request_bounds}, decode{metrics::request_bounds};
  metrics::histogram prompt_tokens{metrics::token_count_bounds}, generated_tokens{metrics::token_count_bounds};
  std::atomic<std::uint64_t> prompt_total{0}, generated_total{0};
  std::atomic<std::uint64_t> prefix_queries{0}, prefix_hits{0};  ///< tokens of prompts looked up in the prefix cache
  std::array<std::atomic<std::uint64_t>, ending_names.size()> ended{};
};

/// Model and key; the key is empty if the server has none.
using series_name = std::pair<std::string, std::string>;
/// Route as in the table, method, status.
using exchange_name = std::tuple<std::string_view, std::string, unsigned>;

class metrics_shard {
 public:
  /// The reference lives as long as this. Beyond config::limits::metric_series_max, all series share one named "other".
  [[nodiscard]] generation_series& generation(const std::string& model, const std::string& key);
  /// `route` outlives this.
  void count_exchange(std::string_view route, const std::string& method, unsigned status);
  void count_rejection(const std::string& model, const std::string& key, error_kind why);

  void each_generation(const std::function<void(const series_name&, const generation_series&)>& tell) const;
  void each_exchange(const std::function<void(const exchange_name&, std::uint64_t)>& tell) const;
  void each_rejection(const std::function<void(const series_name&, error_kind, std::uint64_t)>& tell) const;

 private:
  mutable std::mutex mutex_;
  std::map<series_name, std::unique_ptr<generation_series>> generations_;
  std::map<exchange_name, std::uint64_t> exchanges_;
  std::map<std::pair<series_name, error_kind>, std::uint64_t> rejections_;
};

class request_metrics {
 public:
  explicit request_metrics(std::uint32_t io_threads = 1) : shards_(io_threads) {}

  [[nodiscard]] metrics_shard& of(std::uint32_t io_thread) { return shards_[io_thread % shards_.size()]; }
  [[nodiscard]] const std::vector<metrics_shard>& shards() const { return shards_; }

 private:
  std::vector<metrics_shard> shards_;
};

}  // namespace skein::request
