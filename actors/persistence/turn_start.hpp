#pragma once
#include <cstdint>
#include <optional>

#include "actors/persistence/persistence_mailbox.hpp"
#include "actors/persistence/session_tree.hpp"
#include "base/result.hpp"

namespace skein::persistence {

/// Where a new turn goes on.
struct turn_start {
  version_id base = storage::beginning;
  std::uint64_t history_from = 0;  ///< bytes of the question's history that the base holds already
  session_state state = session_state::fresh;
  bool repeats_system = false;
  std::optional<version_record> unfinished;  ///< a child of the base, with open_session::continue_unfinished
};

/// How a question's text relates to the session; `tree` is null for a session that is not known. Errors: not_found (a
/// session, version or broken answer that must be there), conflict (the head is not the expected version, or the
/// session began with another tuned state).
[[nodiscard]] result<turn_start> start_turn(const session_tree* tree, const open_session& question);

/// Whether a question says by itself where it goes on, at something that the session has, and expects nothing of the
/// head: then no other turn changes where it begins.
[[nodiscard]] bool names_its_place(const session_tree& tree, const open_session& question);
/// Whether an answer is one that the question wants to go on with.
[[nodiscard]] bool goes_on_with(const version_record& answer, const open_session& question);

}  // namespace skein::persistence
