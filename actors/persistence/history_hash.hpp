#pragma once
#include <memory>
#include <string_view>

#include "storage/records.hpp"

namespace skein::persistence {

using storage::history_hash;

/// No history has it: the beginning, or a version of which nobody knows how a client would resend it.
inline constexpr history_hash no_history{};

/// The hash of a history that goes on with one more segment: XXH3-128 over the hash before and the segment's bytes. Can
/// be asked at any byte on the way, so that one pass over a text tests segments of many lengths.
class chained_hash {
 public:
  explicit chained_hash(const history_hash& before);
  ~chained_hash();
  chained_hash(const chained_hash&) = delete;  // owns a hash state
  chained_hash& operator=(const chained_hash&) = delete;

  void feed(std::string_view text);
  [[nodiscard]] history_hash digest() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

[[nodiscard]] history_hash chained(const history_hash& before, std::string_view segment);

}  // namespace skein::persistence
