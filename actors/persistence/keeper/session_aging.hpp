#pragma once
#include <cstdint>
#include <optional>

#include "actors/persistence/keeper/session_removal.hpp"
#include "actors/persistence/open/keeper_ports.hpp"
#include "actors/persistence/open/open_sessions.hpp"
#include "actors/persistence/sessions/session_log.hpp"
#include "base/clock.hpp"

namespace skein::persistence {

/// Removes sessions that were unused for too long. A check visits all sessions, some of them in each tick.
class session_aging {
 public:
  /// The arguments outlive it. `age_max_ms`: sessions unused for longer are removed; 0: never.
  session_aging(const session_log& log, open_sessions& sessions, session_removal& removals, const keeper_ports& ports,
                std::int64_t age_max_ms)
      : log_(log), sessions_(sessions), removals_(removals), ports_(ports), age_max_ms_(age_max_ms) {}

  /// Begins a check of all sessions, unless the wall clock has jumped lately. A check in progress starts again.
  void begin_check(steady_time now);
  [[nodiscard]] bool in_progress() const { return at_.has_value(); }
  /// Continues the check in progress, if there is one.
  void step();

 private:
  [[nodiscard]] bool clock_is_sound(steady_time now);

  const session_log& log_;
  open_sessions& sessions_;
  session_removal& removals_;
  const keeper_ports& ports_;
  const std::int64_t age_max_ms_;
  std::optional<session_key> at_;  // the last session whose age was checked; none: no check is in progress
  struct {
    steady_time at{};
    std::int64_t ms = 0;
  } last_look_;  // last reading of both clocks
  steady_time clock_sound_from_{};
};

}  // namespace skein::persistence
