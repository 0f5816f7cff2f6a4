#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "grammar/machine/program.hpp"
#include "grammar/machine/stacks.hpp"

namespace skein::grammar {

/// Follows the instructions of rules (GBNF, KBNF) between two bytes: jumps, alternatives, calls of rules and their
/// ends.
class rule_machine {
 public:
  rule_machine(const program& of, frame_store& frames)
      : program_(of), frames_(frames), last_visit_(of.instructions.size()) {}

  /// Appends a thread for each instruction that reads a byte and can be reached from `from` with the stack `top`. False
  /// if more than limits::visits_max instructions are on the way.
  [[nodiscard]] bool follow(std::uint32_t from, std::uint32_t top, std::vector<thread>& out);

 private:
  struct visited {
    std::uint32_t instruction, stack;
    std::uint32_t earlier;  // the visit before of the same instruction
  };
  [[nodiscard]] bool visit(std::uint32_t instruction, std::uint32_t stack);
  [[nodiscard]] std::uint32_t call(std::uint32_t after, std::uint32_t stack);

  const program& program_;
  frame_store& frames_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pending_;  // instruction and stack
  std::vector<visited> visited_;
  std::vector<std::uint32_t> last_visit_;  // [instructions]; void if that visit is of another instruction
};

}  // namespace skein::grammar
