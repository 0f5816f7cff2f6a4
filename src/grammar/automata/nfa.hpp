#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/automata/code_set.hpp"

namespace skein::grammar {

/// A nondeterministic automaton over bytes, as a list of instructions. Fragments are built one after the other, so each
/// covers a contiguous range, which `copy` can repeat.
class nfa {
 public:
  enum class op : std::uint8_t {
    jump,        ///< to `out`
    split,       ///< to `out` and to `other`
    byte,        ///< consumes a byte low .. high, then to `out`
    text_begin,  ///< to `out`, at the beginning of the text only
    text_end,    ///< to `out`, at the end of the text only
    look,        ///< to `out`, where the lookaround `other` matches; only for determinise() of lookaround.hpp
    look_not,    ///< to `out`, where it does not match
    fail,        ///< no way on
    call,        ///< in a grammar of rules: the rule `other`, then to `out`
    match,       ///< accepts at the end of the text; `other` is the label
    match_any,   ///< accepts, whatever follows; `other` is the label
  };
  struct instruction {
    op what = op::jump;
    unsigned char low = 0, high = 0;
    std::uint32_t out = none, other = none;
  };
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// Instructions first .. exit; `exit` is a jump without a target yet.
  struct fragment {
    std::uint32_t first = 0, entry = 0, exit = 0;
  };

  fragment empty();
  fragment never();
  fragment assertion(op which);
  fragment look(std::uint32_t lookaround, bool negative);
  fragment bytes(unsigned char low, unsigned char high);
  fragment text(std::string_view literal);
  fragment call(std::uint32_t rule);
  /// `set` must be normalised.
  fragment codes(const code_set& set);
  /// Each step of a deterministic automaton: from state, over bytes low .. high, to state. Accepting states lead to the
  /// exit. States are numbers below `states`.
  struct step {
    std::uint32_t from = 0;
    unsigned char low = 0, high = 0;
    std::uint32_t to = 0;
  };
  fragment automaton(std::uint32_t states, std::uint32_t start, std::span<const step> steps,
                     const std::vector<bool>& accepting);
  /// Leads from the exit of a fragment to an instruction.
  void link(std::uint32_t exit, std::uint32_t to) { code_[exit].out = to; }
  /// An instruction that continues at one of these; there must be one.
  std::uint32_t choose(std::span<const std::uint32_t> entries);
  /// The arguments must have been built in this order, directly one after the other.
  fragment concat(const fragment& a, const fragment& b);
  fragment either(std::span<const fragment> choices);
  /// Zero or one; zero or more; one or more.
  fragment optional(const fragment& a);
  fragment star(const fragment& a);
  fragment plus(const fragment& a);
  /// `least` to `most` times; most = none: without a limit. `a` must be the last fragment built. False in `fits` if
  /// there would be more than `instructions_max`.
  fragment repeat(const fragment& a, std::uint32_t least, std::uint32_t most, std::size_t instructions_max, bool& fits);

  /// The same without making it the start.
  void end_in_match(const fragment& a) { code_[a.exit].out = push({.what = op::match, .other = 1}); }
  /// Ends `a` in a match. Labels are sets of bits; the automaton's label is the union of those that accept.
  void accept(const fragment& a, std::uint32_t label = 1);
  /// Makes the automaton search for `a` anywhere in the text. Several searches may follow each other.
  void accept_anywhere(const fragment& a, std::uint32_t label = 1);
  /// Ends `a` in a match of a prefix.
  void accept_prefix(const fragment& a) {
    code_[a.exit].out = push({.what = op::match_any, .other = 1});
    start = a.entry;
  }
  /// Makes the automaton begin at any character. With lookarounds it must not begin inside of one, as the faster
  /// accept_anywhere does: `(?!\u00e9|$)` holds in the middle of U+00E9.
  void begin_at_any_character();

  /// Of an instruction in a repetition: a copy of it with a lower rank accepts whatever this one accepts. In a{2,5}
  /// that holds for the second to fifth copy of `a`, in a{2,} for all of them, the last one first.
  struct copy_rank {
    std::uint32_t of = none;  ///< names the instruction that has the copies
    std::uint32_t rank = 0;
  };
  static constexpr std::size_t rank_levels = 2;  ///< repetitions within others; those beyond are not ranked
  using copy_ranks = std::array<copy_rank, rank_levels>;
  /// [instructions], or shorter: the others have none.
  [[nodiscard]] const std::vector<copy_ranks>& ranks() const { return ranks_; }

  [[nodiscard]] const std::vector<instruction>& code() const { return code_; }
  [[nodiscard]] std::size_t size() const { return code_.size(); }
  std::uint32_t start = none;

 private:
  std::uint32_t push(instruction made);
  fragment copy(const fragment& a);
  void rank_copies(std::span<const fragment> parts, std::uint32_t least, bool last_is_star);
  void add_start(std::uint32_t entry);

  std::vector<instruction> code_;
  std::vector<copy_ranks> ranks_;
};

}  // namespace skein::grammar
