#pragma once
#include <cstdint>

/// Upper limits of the settings in config.hpp; config/keys.cpp takes its legal ranges from here.
namespace skein::config::limits {

inline constexpr std::uint32_t io_threads_max = 64;
inline constexpr std::uint32_t engine_threads_max = 1024;
inline constexpr std::uint32_t list_entries_max = 256;     ///< entries of a setting that is a list
inline constexpr std::uint32_t text_bytes_max = 4096;      ///< bytes of one text setting
inline constexpr std::uint64_t file_bytes_max = 1u << 20;  ///< a configuration or password file

inline constexpr std::uint32_t header_bytes_max = 64 * 1024;
inline constexpr std::uint32_t header_fields_max = 1000;
inline constexpr std::uint64_t body_bytes_max = 256ull << 20;
inline constexpr std::uint64_t request_wire_bytes_max = 512ull << 20;
inline constexpr std::uint32_t tuned_states_max = 4096;
inline constexpr std::uint32_t resident_models_max = 64;
inline constexpr std::uint32_t resting_models_max = 1024;
inline constexpr std::uint32_t outbound_bytes_max = 64u << 20;
inline constexpr std::uint32_t unsent_bytes_max = 64u << 20;
inline constexpr std::uint32_t connections_max = 1'000'000;
inline constexpr std::uint32_t json_depth_max = 256;
inline constexpr std::uint32_t login_failures_max = 1'000'000;
inline constexpr std::uint32_t login_addresses_max = 1'000'000;
inline constexpr std::uint32_t metric_series_max = 1024;  ///< models and keys with their own series in /metrics

inline constexpr std::uint64_t response_bytes_max = 1ull << 30;
inline constexpr std::uint32_t response_followers_max = 65536;

inline constexpr std::uint32_t n_max = 1024;
inline constexpr std::uint32_t prompts_max = 65536;
inline constexpr std::uint32_t max_tokens_max = 1u << 30;
inline constexpr std::uint32_t prompt_tokens_max = 1u << 28;
inline constexpr std::uint32_t stops_max = 1024;
inline constexpr std::uint32_t tools_max = 4096;
inline constexpr std::uint32_t stop_bytes_max = 65536;
inline constexpr std::uint32_t logit_bias_max = 65536;
inline constexpr std::uint64_t grammar_bytes_max = 1ull << 20, grammar_steps_max = 10'000'000'000;
inline constexpr std::uint32_t grammars_max = 4096;

inline constexpr std::uint32_t mixture_max = 1024;

inline constexpr std::uint32_t devices_max = 16;  ///< of one model
inline constexpr std::uint32_t slots_max = 65536;
inline constexpr std::uint32_t tick_tokens_max = 65536;
inline constexpr std::uint32_t waiting_max = 1'000'000;
inline constexpr std::uint64_t memory_bytes_max = 1ull << 42;  ///< of requests, of states or of a cache
inline constexpr std::uint64_t disk_bytes_max = 1ull << 49;
inline constexpr std::uint64_t age_s_max = 100ull * 366 * 24 * 3600;        ///< 100 years
inline constexpr std::uint64_t duration_ms_max = 30ull * 24 * 3600 * 1000;  ///< 30 days

static_assert(request_wire_bytes_max >= 2 * body_bytes_max, "a body sent in small chunks doubles on the wire");
static_assert(prompts_max >= n_max, "one prompt with the largest n must be a legal request");
static_assert(prompt_tokens_max >= body_bytes_max, "every byte of the largest body may become one token");
static_assert(tick_tokens_max >= slots_max, "every slot must be able to decode in one tick");
static_assert(file_bytes_max > text_bytes_max, "the longest text setting must fit into a file");
static_assert(duration_ms_max < (1ull << 53), "ranges of keys are doubles, which count exactly up to 2^53");
static_assert(request_wire_bytes_max < (1ull << 53), "as above");
static_assert(memory_bytes_max < (1ull << 53), "as above");
static_assert(disk_bytes_max < (1ull << 53), "as above");

}  // namespace skein::config::limits
