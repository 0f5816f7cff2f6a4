#pragma once
#include <cstddef>
#include <cstdint>

namespace skein {

/// The memory of an engine: what it will take, when it is planned, and what it has taken, once it is made. Of a GPU it
/// is device memory; the pinned host memory that copies go through is not counted. Of the CPU it is what is allocated:
/// pages that are never touched count too, the mapped checkpoint does not.
struct memory_plan {
  std::size_t weight_bytes = 0;
  std::size_t activation_bytes = 0;  ///< of the largest tick, with its logits
  std::size_t workspace_bytes = 0;   ///< all else that does not grow with each slot: plans and results of ticks, states
                                     ///< on their way, spare slots, what samplers scan with
  std::size_t slot_bytes = 0;        ///< of one slot: its state and its sampler
  std::uint32_t slots = 0;           ///< activations and workspace depend on it as well

  [[nodiscard]] std::size_t fixed_bytes() const { return weight_bytes + activation_bytes + workspace_bytes; }
  [[nodiscard]] std::size_t bytes_of_slots() const { return slots * slot_bytes; }
  [[nodiscard]] std::size_t bytes() const { return fixed_bytes() + bytes_of_slots(); }

  bool operator==(const memory_plan&) const = default;
};

}  // namespace skein
