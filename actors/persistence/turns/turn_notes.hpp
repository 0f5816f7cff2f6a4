#pragma once
#include <string>

#include "actors/persistence/sessions/session_book.hpp"
#include "actors/persistence/sessions/session_log.hpp"
#include "base/clock.hpp"

namespace skein::persistence {

/// Notes of running answers in the log: after a crash, they become unfinished versions.
class turn_notes {
 public:
  /// The arguments outlive it.
  turn_notes(session_book& book, session_log& log, const clock& time) : book_(book), log_(log), time_(time) {}

  /// Takes the answer so far, and writes it if enough tokens are new.
  void take(open_entry& entry, running_writer& w, note_running&& q);
  /// Writes the notes that have waited long enough.
  void write_due(steady_time now);
  /// Writes all notes.
  void write_all();

 private:
  void write(open_entry& entry, running_writer& w);

  session_book& book_;
  session_log& log_;
  const clock& time_;
};

}  // namespace skein::persistence
