#pragma once
#include <deque>

#include "kernels/gpu/model/gpu_model.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/runtime/stream.hpp"
#include "kernels/gpu/sampling/sampling.hpp"
#include "kernels/gpu/tick/tick_runner.hpp"

namespace skein::kernels::gpu {

/// Staging buffers for states that are transferred between slots and the host. A stage is a state in canonical order,
/// in the types of the slots, with a sampler's position, in device memory and again in pinned memory. Kernels run in
/// the stream of the ticks, in order with them. Copies run in streams of their own, so that a tick never waits for a
/// state that only leaves.
class state_stages {
 public:
  /// Throws device_failure.
  /// Positions are staged in slots of the samplers, from `first_aside` on.
  state_stages(std::uint32_t count, std::size_t state_bytes, std::uint32_t vocab, slot_id first_aside);
  ~state_stages();

  /// The functions of tick_runner with these names; `ticks` is the stream that ticks run in.
  [[nodiscard]] result<void> begin_read(std::uint32_t stage, slot_id slot, const gpu_model& model,
                                        slot_samplers& samplers, stream_handle ticks);
  [[nodiscard]] bool arrived(std::uint32_t stage) const { return stages_[stage].at_host.passed(); }
  [[nodiscard]] result<staged_state> end_read(std::uint32_t stage);
  [[nodiscard]] result<staged_state> begin_write(std::uint32_t stage);
  [[nodiscard]] result<void> send(std::uint32_t stage);
  [[nodiscard]] result<void> end_write(std::uint32_t stage, slot_id slot, gpu_model& model, stream_handle ticks);
  [[nodiscard]] result<void> give_penalties(std::uint32_t stage, slot_id slot, slot_samplers& samplers,
                                            stream_handle ticks);
  /// In pinned memory; from begin_write to end_write.
  [[nodiscard]] sampler_position position(std::uint32_t stage) const { return stages_[stage].view().position; }
  [[nodiscard]] result<void> settle() const;

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(stages_.size()); }
  [[nodiscard]] std::size_t bytes() const;
  /// What bytes() will return, without constructing an object.
  [[nodiscard]] static std::size_t planned_bytes(std::uint32_t count, std::size_t state_bytes) {
    return count * state_bytes;
  }

 private:
  struct stage {
    stage(std::size_t state_bytes, std::uint32_t vocab, slot_id aside);
    [[nodiscard]] staged_state view() const;

    const slot_id aside;  ///< slot of the samplers for an outgoing position
    device_buffer<std::byte> canonical;
    pinned_buffer<std::byte> state;
    pinned_buffer<slot_record> record;
    pinned_buffer<token_id> penalty_tokens;
    pinned_buffer<float> penalties;
    event at_slot;  ///< the ticks' stream is done with `canonical` and the position
    event at_host;  ///< a stream of copies is done with `canonical`, `state` and the position
  };

  stream leaving_, arriving_;
  std::deque<stage> stages_;  // a deque: stages do not move
};

}  // namespace skein::kernels::gpu
