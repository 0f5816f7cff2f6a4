#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/server/fake_wish.hpp"
#include "tests/server/stream_client.hpp"

namespace skein::test {

/// Streams of one client, each with its wish; what they have been told is compared with what they should have been.
class open_streams {
 public:
  explicit open_streams(std::uint16_t port) : client_(port) {}

  /// `count` more, of `max_tokens` each.
  void add(std::size_t count, std::uint32_t max_tokens);
  /// Works until every stream has had that many events, or has ended.
  void run_until_events(std::size_t each);
  /// Works until every stream has ended.
  void run() { client_.run(); }

  [[nodiscard]] std::size_t size() const { return wishes_.size(); }
  [[nodiscard]] const streamed_answer& answer(std::size_t i) const { return client_.answer(i); }
  /// Streams whose text so far is not the beginning of the right one.
  [[nodiscard]] std::size_t wrong_texts() const;
  /// Streams that came to their full length, and said so in an orderly way.
  [[nodiscard]] std::size_t whole() const;

 private:
  stream_client client_;
  std::vector<fake_wish> wishes_;
};

}  // namespace skein::test
