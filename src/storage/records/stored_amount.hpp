#pragma once
#include <cstdint>
#include <map>

#include "storage/records/records.hpp"

namespace skein::storage {

/// What a session or a tenant has stored.
struct stored_amount {
  std::uint64_t sessions = 0, versions = 0;
  std::uint64_t bytes = 0;  ///< of tokens, texts, titles and metadata
  bool operator==(const stored_amount&) const = default;
};
using tenant_amounts = std::map<tenant_id, stored_amount>;

[[nodiscard]] inline stored_amount amount_of(const session_record& session) {
  stored_amount all{1, session.versions, session.log_bytes + session.title.size()};
  for (const auto& [name, value] : session.metadata) all.bytes += name.size() + value.size();
  return all;
}

[[nodiscard]] inline stored_amount operator+(const stored_amount& a, const stored_amount& b) {
  return {a.sessions + b.sessions, a.versions + b.versions, a.bytes + b.bytes};
}
/// Saturates at 0: a damaged record may or may not have been counted.
[[nodiscard]] inline stored_amount operator-(const stored_amount& a, const stored_amount& b) {
  const auto less = [](std::uint64_t from, std::uint64_t what) { return from > what ? from - what : 0; };
  return {less(a.sessions, b.sessions), less(a.versions, b.versions), less(a.bytes, b.bytes)};
}

}  // namespace skein::storage
