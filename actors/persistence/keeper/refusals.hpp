#pragma once
#include <cstddef>
#include <string>

#include "actors/persistence/sessions/session_log.hpp"
#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "base/error.hpp"

/// Errors and memory of the answers of the administration.
namespace skein::persistence {

[[nodiscard]] inline error unknown(const session_key& key) {
  return {error_kind::not_found, "there is no session '" + key.id + "'", "session_id"};
}
[[nodiscard]] inline error unknown(const session_key& key, version_id version) {
  return {error_kind::not_found, "the session '" + key.id + "' has no version " + std::to_string(version), "version"};
}
[[nodiscard]] inline error unknown_turn(const std::string& key) {
  return {error_kind::not_found, "there is no turn '" + key + "'", ""};
}
[[nodiscard]] inline error session_busy() { return {error_kind::conflict, "session busy", "session_id"}; }

/// Reserves memory for an answer of `bytes`. Errors: those of no_room.
template <typename Question>
[[nodiscard]] result<byte_budget::lease> room_for(const Question& q, std::size_t bytes) {
  auto why = byte_share::outcome::taken;
  if (auto lease = q.share.lease(bytes, why)) return lease;
  return no_room(why, bytes, q.share.most());
}

}  // namespace skein::persistence
