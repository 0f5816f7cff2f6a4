#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/memory_plan.hpp"
#include "base/result.hpp"

/// Number of slots of a model, and whether it may be loaded, by the memory_plan of its engine.
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

}  // namespace skein::supervisor
