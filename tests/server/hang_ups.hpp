#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace skein::test {

/// When a client leaves.
enum class moment { before_request, in_header, in_body, in_queue_or_prefill, in_stream, at_end };
inline constexpr std::array<std::string_view, 6> moment_names{"before the request",      "in the header", "in the body",
                                                              "in the queue or prefill", "in mid-stream", "at the end"};

struct hang_up_report {
  std::array<std::size_t, moment_names.size()> by_moment{};
  std::array<std::size_t, 3> by_departure{};  ///< close, reset, half_close
  std::size_t with_text = 0;                  ///< had received text when they left
  std::size_t wrong_texts = 0;                ///< whose text was not the beginning of the right one
};

/// `count` clients, 100 at a time, that each leave at a random moment in a random way; all drawn from `seed`. Their
/// requests have long prompts, so that a server with few slots has a queue and much to prefill.
[[nodiscard]] hang_up_report hang_up(std::uint16_t port, std::size_t count, std::uint64_t seed);

}  // namespace skein::test
