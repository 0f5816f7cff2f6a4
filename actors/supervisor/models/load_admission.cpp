#include "actors/supervisor/models/load_admission.hpp"

#include <algorithm>
#include <string>

namespace skein::supervisor {
namespace {

constexpr std::uint32_t cpu_slots_most = 64, gpu_slots_most = 256;

/// The largest number of slots, from 1 to `most`, whose bytes fit into `share(plan)`; 1 if none fits. Binary search: a
/// plan for more slots never needs less memory.
template <typename Share>
result<std::uint32_t> most_slots(const memory_planner& plan, std::uint32_t most, const Share& share) {
  std::uint32_t fitting = 1;
  for (std::uint32_t too_many = most + 1; fitting + 1 < too_many;) {
    const std::uint32_t tried = fitting + (too_many - fitting) / 2;
    const auto planned = plan(tried);
    if (!planned) return planned.error();
    (planned->bytes_of_slots() <= share(*planned) ? fitting : too_many) = tried;
  }
  return fitting;
}

std::size_t left_for_slots(const memory_plan& plan, std::size_t left) {
  return left - std::min(left, plan.fixed_bytes());
}

}  // namespace

memory_room room_beside(std::size_t taken, std::size_t free_bytes, std::size_t bytes_max) {
  const std::size_t below_max = bytes_max > 0 ? bytes_max - std::min(bytes_max, taken) : free_bytes;
  return {.left = std::min(free_bytes, below_max), .taken = taken};
}

result<void> admit(const memory_plan& plan, const memory_room& room) {
  if (plan.bytes() <= room.left) return {};
  const auto text = [](std::size_t bytes) { return std::to_string(bytes); };
  return error{error_kind::no_memory,
               "the model needs about " + text(plan.bytes()) + " bytes, but only " + text(room.left) +
                   " are free; loaded models use " + text(room.taken) + ", unload them first (weights " +
                   text(plan.weight_bytes) + ", activations " + text(plan.activation_bytes) + ", workspace " +
                   text(plan.workspace_bytes) + ", " + text(plan.slots) + " slots of " + text(plan.slot_bytes) + ')',
               "model"};
}

result<std::uint32_t> default_slots(const memory_planner& plan, std::size_t free_bytes, std::size_t left) {
  return most_slots(plan, cpu_slots_most, [&](const memory_plan& planned) {
    return std::min(free_bytes / 4, left_for_slots(planned, left));
  });
}

result<std::uint32_t> default_gpu_slots(const memory_planner& plan, std::size_t left) {
  return most_slots(plan, gpu_slots_most,
                    [&](const memory_plan& planned) { return left_for_slots(planned, left) / 10 * 9; });
}

std::array<buffer_sizes, 4> smaller_and_smaller(const buffer_sizes& most, std::uint32_t tokens_least) {
  std::array<buffer_sizes, 4> all;
  for (std::uint32_t i = 0; i < all.size(); ++i)
    all[i] = {std::max(most.tick_tokens >> i, tokens_least), most.moving_bytes >> i};
  return all;
}

result<buffer_sizes> first_that_fits(std::span<const buffer_sizes> choices,
                                     const std::function<result<memory_plan>(const buffer_sizes&)>& plan,
                                     std::size_t left) {
  for (const buffer_sizes& sizes : choices) {
    const auto planned = plan(sizes);
    if (!planned) return planned.error();
    if (planned->bytes() <= left) return sizes;
  }
  return choices.back();
}

}  // namespace skein::supervisor
