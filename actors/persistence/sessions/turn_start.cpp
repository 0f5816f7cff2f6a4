#include "actors/persistence/sessions/turn_start.hpp"

#include <string>
#include <string_view>

namespace skein::persistence {
namespace {

std::string quoted(const session_key& key) { return "'" + key.id + "'"; }

/// Whether the answer ended at its request's token limit.
bool is_cut(const version_record& v) { return v.finish_reason == "length" && v.stop_reason.empty() && !v.unfinished; }

const version_record* broken_answer(const session_tree& tree, const open_session& question) {
  const bool named = !question.from_key.empty();
  const auto v = tree.with_request_key(named ? question.from_key : question.request_key);
  if (v && goes_on_with(*v, question)) return v.get();
  if (named) return nullptr;
  if (const version_record* last = tree.unfinished()) return last;
  const version_record* head = tree.find(tree.record().head);
  return head && is_cut(*head) ? head : nullptr;
}

result<turn_start> continue_answer(const session_tree& tree, const open_session& question) {
  const version_record* broken = broken_answer(tree, question);
  if (!broken)
    return error{error_kind::not_found,
                 "the session " + quoted(tree.record().key) + " has no broken answer to continue", ""};
  turn_start start;
  start.base = broken->parent;
  start.state = session_state::continued;
  start.unfinished = *broken;
  return start;
}

result<void> fits(const session_tree& tree, const open_session& question) {
  const session_record& record = tree.record();
  if (question.initial_state != record.initial_state)
    return error{error_kind::conflict,
                 "the session " + quoted(record.key) + " began with " +
                     (record.initial_state.empty() ? "no tuned state" : "the tuned state " + record.initial_state),
                 "state_name"};
  if (question.expected_version && *question.expected_version != record.head)
    return error{error_kind::conflict,
                 "the session " + quoted(record.key) + " is at version " + std::to_string(record.head) + ", not " +
                     std::to_string(*question.expected_version),
                 "expected_version"};
  if (question.from && !tree.offers(*question.from))
    return error{error_kind::not_found,
                 "the session " + quoted(record.key) + " has no version " + std::to_string(*question.from),
                 "from_version"};
  return {};
}

/// Whether an increment begins with the system text with which the session began.
bool repeats_system(const session_tree& tree, version_id base, const open_session& question) {
  const auto way = tree.path(base);
  return question.system_bytes > 0 && question.system_bytes <= question.history.size() && !way.empty() &&
         way.front()->text.starts_with(std::string_view(question.history).substr(0, question.system_bytes));
}

/// Whether the results of calls follow the answer of this version.
bool repeats_answer(const session_tree& tree, version_id base, const open_session& question) {
  const version_record* answered = tree.find(base);
  return question.answer_bytes > 0 && answered &&
         std::string_view(question.history).substr(question.answer_at, question.answer_bytes) == answered->answer;
}

}  // namespace

bool goes_on_with(const version_record& answer, const open_session& question) {
  return question.continue_unfinished && (answer.unfinished || (question.beyond_limit && is_cut(answer)));
}

result<turn_start> start_turn(const session_tree* tree, const open_session& question) {
  if (!tree) {
    if (question.must_exist || question.continue_unfinished || question.from.value_or(0) != storage::beginning)
      return error{error_kind::not_found, "there is no session " + quoted(question.session), "session_id"};
    if (question.expected_version.value_or(0) != storage::beginning)
      return error{error_kind::conflict,
                   "the session " + quoted(question.session) + " is at version 0, not " +
                       std::to_string(*question.expected_version),
                   "expected_version"};
    return turn_start{};
  }
  if (auto ok = fits(*tree, question); !ok) return ok.error();
  if (question.continue_unfinished) return continue_answer(*tree, question);
  turn_start start;
  start.state = session_state::continued;
  start.base = question.from.value_or(tree->record().head);
  if (!question.from_key.empty()) {
    const auto named = tree->with_request_key(question.from_key);
    if (!named) return error{error_kind::not_found, "there is no turn '" + question.from_key + "'", "session_id"};
    start.base = named->id;
  }
  if (question.kind == turn_text::increment) {
    start.repeats_system = repeats_system(*tree, start.base, question);
    return start;
  }
  const bool chat = question.kind == turn_text::chat_messages;
  const history_rules rules{.whole_messages = chat, .leave_some = !(chat && question.opening_follows)};
  start.repeats_answer = chat && repeats_answer(*tree, start.base, question);
  if (question.from) {
    start.history_from = tree->held_by(start.base, question.history, rules).value_or(0);
  } else if (const auto found = tree->recognise(question.history, rules); found.version != storage::beginning) {
    start.base = found.version;
    start.history_from = found.bytes;
  } else if (chat && !question.only_new && !start.repeats_answer) {
    start.base = storage::beginning;
    start.state = tree->versions().empty() ? session_state::fresh : session_state::rebuilt;
    return start;
  }
  if (start.history_from > 0) start.repeats_answer = false;
  start.repeats_system = chat && start.history_from == 0 && repeats_system(*tree, start.base, question);
  return start;
}

bool names_its_place(const session_tree& tree, const open_session& question) {
  if (question.expected_version) return false;
  if (question.continue_unfinished) {
    const auto broken = tree.with_request_key(question.request_key);
    return broken && broken->unfinished;
  }
  if (!question.from_key.empty())
    return question.kind == turn_text::increment && tree.with_request_key(question.from_key) != nullptr;
  return question.from && tree.offers(*question.from);
}

}  // namespace skein::persistence
