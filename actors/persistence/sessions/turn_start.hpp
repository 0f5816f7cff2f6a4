#pragma once
#include <cstdint>
#include <optional>

#include "actors/persistence/sessions/session_tree.hpp"
#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "base/result.hpp"

namespace skein::persistence {

/// The point from which a new turn continues.
struct turn_start {
  version_id base = storage::beginning;
  std::uint64_t history_from = 0;  ///< bytes of the request's history that the base already holds
  session_state state = session_state::fresh;
  bool repeats_system = false;
  bool repeats_answer = false;
  std::optional<version_record> unfinished;  ///< a child of the base, with open_session::continue_unfinished
};

/// Finds where a request continues the session; `tree` is null for an unknown session. Errors: not_found (a required
/// session, version or broken answer is missing), conflict (the head is not the expected version, or the session began
/// with another tuned state).
[[nodiscard]] result<turn_start> start_turn(const session_tree* tree, const open_session& question);

/// Whether a request names an existing starting point and does not expect a certain head. Then no other turn changes
/// where it starts.
[[nodiscard]] bool names_its_place(const session_tree& tree, const open_session& question);
/// Whether the request asks to continue this answer.
[[nodiscard]] bool goes_on_with(const version_record& answer, const open_session& question);

}  // namespace skein::persistence
