#include "actors/persistence/turns/turn_notes.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace skein::persistence {
namespace {

// A running answer is noted in the log after this number of tokens or this time; longer answers are noted less often,
// so that the total size of an answer's notes is a small multiple of its length.
constexpr std::uint64_t note_tokens = 16;
constexpr std::uint64_t note_share = 32;
constexpr std::uint64_t note_token_bytes = 12;  // of a note, for each token of an ordinary turn
constexpr auto note_pause = std::chrono::milliseconds(250);

/// A turn with large settings counts as one with that many bytes of tokens and texts.
std::uint64_t note_step(const version_record& so_far) {
  const auto tokens = static_cast<std::uint64_t>(so_far.tokens.size());
  return std::max(note_tokens, std::max(tokens, content_bytes(so_far) / note_token_bytes) / note_share);
}

}  // namespace

void turn_notes::take(open_entry& entry, running_writer& w, note_running&& q) {
  if (!log_.on_disk()) return;
  version_record v = std::move(q.so_far);
  v.id = w.number;
  v.parent = w.base;
  entry.tree->place(v, q.segment);
  w.note = std::move(v);
  const std::uint64_t more = w.note->tokens.size() - std::min<std::uint64_t>(w.note->tokens.size(), w.noted_tokens);
  const bool first = w.noted_tokens == 0;
  if (more >= (first ? note_tokens : note_step(*w.note))) write(entry, w);
}

void turn_notes::write(open_entry& entry, running_writer& w) {
  if (log_.failing() || entry.unsaved) return;
  if (!entry.in_log || entry.tree->versions().empty()) {
    // After a crash the answer must be found in a session with its model. The session is removed if the turn fails.
    if (!log_.commit_to_disk(entry.tree->record(), entry.tree->all(), time_.now())) return;
    entry.in_log = true;
  }
  log_.note_running(entry.uid, *w.note);
  w.noted_tokens = w.note->tokens.size();
  w.noted_at = time_.now();
  w.note.reset();
}

void turn_notes::write_due(steady_time now) {
  for (const lease_id lease : book_.running()) {
    const auto [entry, w] = book_.find_lease(lease);
    if (w->note && now >= w->noted_at + note_pause * (note_step(*w->note) / note_tokens)) write(*entry, *w);
  }
}

void turn_notes::write_all() {
  for (const lease_id lease : book_.running())
    if (const auto [entry, w] = book_.find_lease(lease); w->note) write(*entry, *w);
}

}  // namespace skein::persistence
