#pragma once
#include <cstddef>
#include <cstdint>

#include "actors/device/engine_limits.hpp"
#include "config/config.hpp"
#include "model/state_value.hpp"

namespace skein::device {

/// The settings of the scheduler: the section [queue], and what it needs of other sections.
struct scheduler_settings : config::queue_settings {
  std::uint32_t prefill_chunk_tokens = 128;  ///< prefill tokens of a tick while others decode; at least one chunk
  std::uint32_t vram_states_max = config::engine_settings{}.vram_states_max;
  std::uint32_t mixture_max = config::limit_settings{}.mixture_max;
};

struct scheduler_options : scheduler_settings {
  std::uint32_t slots = 1;              ///< of the engine
  std::uint32_t max_tick_tokens = 512;  ///< of the engine
  std::uint32_t max_tick_rows = 64;     ///< of the engine
  engine_limits limits = {};            ///< of the engine
  std::uint32_t chunk_tokens = 0;       ///< of the engine
  model::state_format state = {};       ///< of the engine
  std::uint32_t leaving_max = ~0u;      ///< of the engine: concurrent transfers out of slots
  std::uint32_t coming_max = ~0u;       ///< of the engine: concurrent transfers into slots
  bool keeps_states = false;            ///< there is a state_sink; else copies and settles are not answered

  /// The number of decode rows that fit into a tick beside a chunk.
  [[nodiscard]] std::uint32_t max_decode_rows() const { return max_tick_tokens - chunk_tokens; }
};

/// The scheduler's counters, for logs, health and tests.
struct scheduler_counts {
  std::uint32_t slots_used = 0, slots_kept = 0, waiting = 0, parked = 0, requests = 0;
  std::uint32_t waiting_max = 0;  ///< the current limit of waiting requests
  std::uint32_t paused = 0;       ///< requests with a slow reader
  std::size_t parked_bytes = 0, undo_bytes = 0;
  std::uint64_t prompt_tokens = 0, generated_tokens = 0, finished = 0, rejected = 0, cancelled = 0, preemptions = 0;
  std::uint64_t states_written = 0;                    ///< sequences that began with a state from host memory
  std::uint64_t kept_hits = 0;                         ///< sequences that resumed in a slot that held their state
  std::uint64_t copies_taken = 0, copies_refused = 0;  ///< wanted copies
  std::uint64_t settles = 0, settles_back = 0;         ///< settled states; those that returned to an earlier state
};

}  // namespace skein::device
