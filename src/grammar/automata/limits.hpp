#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace skein::grammar {

/// Limits of one grammar. All are counts, so the same input is accepted or refused on every machine.
struct limits {
  std::size_t source_bytes_max = 1u << 20;  ///< schema, grammar or pattern
  std::size_t schema_depth_max = 96;        ///< nesting of the schema's JSON text
  std::size_t instructions_max = 400'000;   ///< of one pattern's NFA, after its repetitions are unrolled
  std::size_t dfa_states_max = 40'000;      ///< of one automaton
  std::uint64_t steps_max = 60'000'000;     ///< work of one compilation, about 10 ns each
  std::size_t nodes_max = 20'000;           ///< distinct combinations of subschemas
  std::size_t alternatives_max = 512;       ///< of one combination, after anyOf and the like are multiplied out
  std::size_t names_max = 16'384;           ///< properties of an object, values of an enum
  std::size_t number_digits_max = 400;      ///< digits before or after the point of a bound
  std::uint32_t depth_max = 256;            ///< nesting of the generated text
  std::uint32_t stacks_max = 2'048;         ///< parallel stacks of one matcher
  std::uint32_t visits_max = 16'384;        ///< instructions of rules that a matcher follows between two bytes
  std::uint32_t whitespace_max = 256;       ///< bytes of white space between two tokens of JSON
  std::uint32_t number_bytes_max = ~0u;     ///< of a number, unless its bounds or constants need more
  bool plain_numbers = false;               ///< integers as digits only, small exponents, constants in one form
  bool plain_texts = false;                 ///< names and constants without escape sequences that they do not need
};

/// For texts that are generated: models that write spaces or digits for long come to an end.
[[nodiscard]] inline limits limits_to_generate() {
  limits made;
  made.whitespace_max = 32;
  made.number_bytes_max = 24;
  made.plain_numbers = true;
  made.plain_texts = true;
  return made;
}

/// Counts the work of one compilation.
class budget {
 public:
  explicit budget(const limits& of) : limits_(of), left_(of.steps_max) {}

  /// False if the work exceeds steps_max.
  [[nodiscard]] bool spend(std::uint64_t steps) {
    if (steps > left_) {
      left_ = 0;
      return false;
    }
    left_ -= steps;
    return true;
  }
  [[nodiscard]] const limits& of() const { return limits_; }

 private:
  limits limits_;
  std::uint64_t left_;
};

/// The error for an input above a limit, e.g. too_much("states of an automaton", 40000).
[[nodiscard]] inline error too_much(const std::string& what, std::size_t limit) {
  return {error_kind::too_large, "the grammar is too large: more than " + std::to_string(limit) + " " + what, {}};
}
[[nodiscard]] inline error too_much_work(const budget& b) {
  return too_much("compilation steps", static_cast<std::size_t>(b.of().steps_max));
}

}  // namespace skein::grammar
