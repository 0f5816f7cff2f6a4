#pragma once
#include <cstddef>
#include <cstdint>

namespace skein {

/// The memory of an engine: an estimate before the engine is created, the actual amounts after that. On a GPU it is
/// device memory, without pinned host memory for transfers. On the CPU it is allocated memory: untouched pages count,
/// the mapped checkpoint does not.
struct memory_plan {
  std::size_t weight_bytes = 0;
  std::size_t activation_bytes = 0;  ///< of the largest tick, with its logits
  std::size_t workspace_bytes = 0;   ///< everything else that is not per slot: plans and results of ticks, states
                                     ///< in transfer, spare slots, scan buffers of samplers
  std::size_t slot_bytes = 0;        ///< per slot: its state and its sampler
  std::uint32_t slots = 0;           ///< activation_bytes and workspace_bytes depend on it too

  [[nodiscard]] std::size_t fixed_bytes() const { return weight_bytes + activation_bytes + workspace_bytes; }
  [[nodiscard]] std::size_t bytes_of_slots() const { return slots * slot_bytes; }
  [[nodiscard]] std::size_t bytes() const { return fixed_bytes() + bytes_of_slots(); }

  bool operator==(const memory_plan&) const = default;
};

}  // namespace skein
