#pragma once
#include <cstdint>

#include "actors/checked_phase.hpp"

namespace skein::request {

/// The phases of a generation call, in order. Not every call passes through all of them.
enum class call_phase : std::uint8_t {
  reading,          ///< the request_reader has it
  opening_session,  ///< the persistence actor was asked for the session
  tokenising,
  finding_prefix,  ///< the persistence actor was asked for a known prefix
  queued,          ///< the device has it, and no prompt has had a slot
  generating,
  committing,  ///< the answer is complete; its end waits for the turn to be in the log
  ended,       ///< the response is complete, or the client is gone
};

/// Whether `to` may follow `from`. Every phase may end: by a refusal, an exception, an operator or the client.
[[nodiscard]] constexpr bool may_follow(call_phase from, call_phase to) {
  using enum call_phase;
  if (to == ended) return from != ended;
  switch (from) {
    case reading: return to == opening_session || to == tokenising;
    case opening_session: return to == tokenising;
    case tokenising: return to == finding_prefix || to == queued;
    case finding_prefix: return to == queued;
    case queued: return to == generating || to == committing;  // a response that is stopped is stored without text
    case generating: return to == committing;
    case committing:
    case ended: return false;
  }
  return false;
}

}  // namespace skein::request
