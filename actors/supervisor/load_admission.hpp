#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/memory_plan.hpp"
#include "base/result.hpp"

/// How many slots a model gets, and whether it may be loaded: both by the memory_plan of its engine.
namespace skein::supervisor {

/// Of a GPU's free memory, what no plan counts and models therefore leave: recorded graphs, code that the runtime loads
/// with a kernel's first launch, a matrix library's own memory, buffers that live only while a model is loaded.
inline constexpr std::size_t gpu_reserve_bytes = std::size_t{512} << 20;

/// Memory for one more model.
struct memory_room {
  std::size_t left = 0;   ///< bytes that it may take
  std::size_t taken = 0;  ///< by the models that are loaded
};
/// `free_bytes`: what the device has; `bytes_max`: of all models together, 0: only the device limits them.
[[nodiscard]] memory_room room_beside(std::size_t taken, std::size_t free_bytes, std::size_t bytes_max);

/// Errors: no_memory, naming bytes, exactly when the plan is larger than what is left.
[[nodiscard]] result<void> admit(const memory_plan& plan, const memory_room& room);

using memory_planner = std::function<result<memory_plan>(std::uint32_t slots)>;

/// How many sequences are resident when the configuration leaves it open. For the CPU: what a quarter of the free
/// memory holds, at most 64; for a GPU: what nine tenths of the memory hold that all else leaves, at most 256. Never
/// more than fit into `left`, but at least 1. Errors: the planner's.
[[nodiscard]] result<std::uint32_t> default_slots(const memory_planner& plan, std::size_t free_bytes, std::size_t left);
[[nodiscard]] result<std::uint32_t> default_gpu_slots(const memory_planner& plan, std::size_t left);

}  // namespace skein::supervisor
