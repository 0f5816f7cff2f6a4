#pragma once
#include <memory>
#include <string_view>

#include "storage/records/records.hpp"

namespace skein::persistence {

using storage::history_hash;

/// Not the hash of any history: it marks the beginning, and a version whose text as clients would resend it is unknown.
inline constexpr history_hash no_history{};

/// The hash of a history extended by one segment: XXH3-128 over the previous hash and the segment's bytes. `digest` may
/// be called after any byte, so that one pass over a text tests segments of many lengths.
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
