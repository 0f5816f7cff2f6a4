#include "kernels/gpu/tick/state_stages.hpp"

namespace skein::kernels::gpu {

state_stages::stage::stage(std::size_t state_bytes, std::uint32_t vocab, slot_id aside)
    : aside(aside),
      canonical(state_bytes, "state transfers"),
      state(state_bytes, "state transfers"),
      record(1),
      penalty_tokens(vocab),
      penalties(vocab) {}

staged_state state_stages::stage::view() const {
  return {state.all(),
          {record.data(), penalty_tokens.data(), penalties.data(), static_cast<std::uint32_t>(penalties.size())}};
}

state_stages::state_stages(std::uint32_t count, std::size_t state_bytes, std::uint32_t vocab, slot_id first_aside) {
  for (std::uint32_t i = 0; i < count; ++i) stages_.emplace_back(state_bytes, vocab, first_aside + i);
}

state_stages::~state_stages() { ignore(settle(), "only waits before the memory of pending copies is freed"); }

result<void> state_stages::settle() const {
  const auto gone = leaving_.synchronize(), come = arriving_.synchronize();
  return gone ? come : gone;
}

result<void> state_stages::begin_read(std::uint32_t stage, slot_id slot, const gpu_model& model,
                                      slot_samplers& samplers, stream_handle ticks) {
  auto& to = stages_[stage];
  if (auto r = model.queue_read(slot, to.canonical.data(), ticks); !r) return r;
  if (auto r = samplers.copy_position(ticks, slot, to.aside); !r) return r;
  if (auto r = to.at_slot.record(ticks); !r) return r;
  if (auto r = to.at_slot.hold(leaving_); !r) return r;
  if (auto r = copy_to_host(to.state.data(), to.canonical.data(), to.state.bytes(), leaving_); !r) return r;
  if (auto r = samplers.save(leaving_, to.aside, to.view().position); !r) return r;
  return to.at_host.record(leaving_);
}

result<staged_state> state_stages::end_read(std::uint32_t stage) {
  if (auto r = stages_[stage].at_host.synchronize(); !r) return r.error();
  return stages_[stage].view();
}

result<staged_state> state_stages::begin_write(std::uint32_t stage) {
  if (auto r = stages_[stage].at_host.synchronize(); !r) return r.error();
  if (auto r = stages_[stage].at_slot.synchronize(); !r) return r.error();
  return stages_[stage].view();
}

result<void> state_stages::send(std::uint32_t stage) {
  auto& from = stages_[stage];
  if (auto r = copy_to_device(from.canonical.data(), from.state.data(), from.state.bytes(), arriving_); !r) return r;
  return from.at_host.record(arriving_);
}

result<void> state_stages::end_write(std::uint32_t stage, slot_id slot, gpu_model& model, stream_handle ticks) {
  auto& from = stages_[stage];
  if (auto r = from.at_host.hold(ticks); !r) return r;
  if (auto r = model.queue_write(slot, from.canonical.data(), ticks); !r) return r;
  return from.at_slot.record(ticks);
}

result<void> state_stages::give_penalties(std::uint32_t stage, slot_id slot, slot_samplers& samplers,
                                          stream_handle ticks) {
  auto& from = stages_[stage];
  if (auto r = samplers.give_penalties(ticks, slot, from.view().position); !r) return r;
  return from.at_slot.record(ticks);
}

std::size_t state_stages::bytes() const {
  std::size_t bytes = 0;
  for (const stage& s : stages_) bytes += s.canonical.bytes();
  return bytes;
}

}  // namespace skein::kernels::gpu
