#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/memory_plan.hpp"
#include "base/result.hpp"

/// Slots and buffers of a model, and whether it may be loaded, by the memory_plan of its engine.
namespace skein::supervisor {

/// GPU memory that models leave free because no plan includes it: CUDA graphs, code loaded with a kernel's first
/// launch, memory of the GEMM library, buffers used only while a model is loaded.
inline constexpr std::size_t gpu_reserve_bytes = std::size_t{512} << 20;

/// Memory for one more model.
struct memory_room {
  std::size_t left = 0;   ///< bytes that the model may use
  std::size_t taken = 0;  ///< bytes used by loaded models
};
/// `free_bytes`: free memory of the device; `bytes_max`: limit of all models together, 0: only the device limits them.
[[nodiscard]] memory_room room_beside(std::size_t taken, std::size_t free_bytes, std::size_t bytes_max);

/// Errors: no_memory, naming bytes, if and only if the plan is larger than the room left.
[[nodiscard]] result<void> admit(const memory_plan& plan, const memory_room& room);

using memory_planner = std::function<result<memory_plan>(std::uint32_t slots)>;

/// The number of slots if the configuration leaves it open. CPU: as many as fit into a quarter of the free memory, at
/// most 64. GPU: as many as fit into nine tenths of the memory not used otherwise, at most 256. Never more than fit
/// into `left`, but at least 1. Errors: those of the planner.
[[nodiscard]] result<std::uint32_t> default_slots(const memory_planner& plan, std::size_t free_bytes, std::size_t left);
[[nodiscard]] result<std::uint32_t> default_gpu_slots(const memory_planner& plan, std::size_t left);

/// Sizes of buffers that an engine can do with less of.
struct buffer_sizes {
  std::uint32_t tick_tokens;
  std::uint64_t moving_bytes;  ///< of states in transfer
  bool operator==(const buffer_sizes&) const = default;
};
/// From `most` on, each a half of the one before, down to an eighth of the bytes; ticks keep `tokens_least` tokens.
[[nodiscard]] std::array<buffer_sizes, 4> smaller_and_smaller(const buffer_sizes& most, std::uint32_t tokens_least);
/// The first of `choices` whose plan fits into `left`, or the last one. Errors: those of the planner.
[[nodiscard]] result<buffer_sizes> first_that_fits(std::span<const buffer_sizes> choices,
                                                   const std::function<result<memory_plan>(const buffer_sizes&)>& plan,
                                                   std::size_t left);

}  // namespace skein::supervisor
