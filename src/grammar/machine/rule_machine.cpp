#include "grammar/machine/rule_machine.hpp"

namespace skein::grammar {

/// False if this was visited before.
bool rule_machine::visit(std::uint32_t instruction, std::uint32_t stack) {
  auto& last = last_visit_[instruction];
  std::uint32_t at = last < visited_.size() && visited_[last].instruction == instruction ? last : program::none;
  const std::uint32_t earlier = at;
  for (; at != program::none; at = visited_[at].earlier)
    if (visited_[at].stack == stack) return false;
  last = static_cast<std::uint32_t>(visited_.size());
  visited_.push_back({instruction, stack, earlier});
  return true;
}

bool rule_machine::follow(std::uint32_t from, std::uint32_t top, std::vector<thread>& out) {
  pending_.assign(1, {from, top});
  visited_.clear();
  while (!pending_.empty()) {
    const auto [here, stack] = pending_.back();
    pending_.pop_back();
    if (visited_.size() > program_.bounds.visits_max) return false;
    if (!visit(here, stack)) continue;
    const auto& i = program_.instructions[here];
    switch (i.what) {
      case program::instruction::op::jump: pending_.emplace_back(i.out, stack); break;
      case program::instruction::op::split:
        pending_.emplace_back(i.other, stack);
        pending_.emplace_back(i.out, stack);
        break;
      case program::instruction::op::byte: out.push_back({.where = thread::at::rule, .top = stack, .a = here}); break;
      case program::instruction::op::call: {
        const auto inner = i.out == program::none ? stack : call(i.out, stack);
        if (inner != program::none || i.out == program::none) pending_.emplace_back(i.other, inner);
        break;
      }
      case program::instruction::op::leave:
        if (stack == program::none)
          out.push_back({.where = thread::at::end, .a = program_.bounds.whitespace_max});
        else
          pending_.emplace_back(frames_[stack].spec, frames_[stack].parent);
        break;
    }
  }
  return true;
}

/// A frame with the instruction to go on from; none if it would be too deep.
std::uint32_t rule_machine::call(std::uint32_t after, std::uint32_t stack) {
  const std::uint32_t depth = frames_.depth_on(stack);
  if (depth > program_.bounds.depth_max) return program::none;
  return frames_.add({.what = frame::kind::call, .parent = stack, .spec = after, .depth = depth}, 0);
}

}  // namespace skein::grammar
