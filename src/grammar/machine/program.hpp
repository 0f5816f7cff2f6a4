#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grammar/automata/dfa.hpp"
#include "grammar/automata/limits.hpp"

namespace skein::grammar {

/// What a grammar compiles to: tables that the machine interprets. Immutable.
///
/// A JSON value is a `node`: the types that it may have, with one or more specifications for each. Strings and names
/// are matched on their decoded text, so that every way to write a character in JSON is accepted. Objects are matched
/// in any order of names: a frame on the stack has a bit for each name that was seen. Other grammars are rules of
/// instructions.
struct program {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// Which numbers of further code points lead from a state of an automaton to an accepting one, or, where texts have
  /// no greatest length, may follow. Within a code point: after its end, whichever bytes complete it.
  struct length_table {
    struct span {
      std::uint32_t least = 0, most = none;  ///< none: no greatest one
      bool operator==(const span&) const = default;
    };
    std::vector<std::uint32_t> number;  ///< [states] of the automaton; none: no text leads there
    std::vector<std::uint32_t> begin;   ///< [numbers + 1] in `spans`
    std::vector<span> spans;            ///< of each state, in order
    std::vector<bool> free;             ///< [states between code points] no state from there on limits the length
    std::uint32_t last = 0;             ///< with room for that many code points, every state can accept
    // Instead of spans, where these are too many: the answers for 0 .. last, the last `period` of which repeat.
    std::uint32_t period = 1;
    std::vector<std::uint32_t> sums;  ///< [numbers, last + 2] numbers of code points below k that are possible
    [[nodiscard]] bool possible(std::uint32_t state, std::uint64_t least, std::uint64_t most) const;
    [[nodiscard]] bool is_free(std::uint32_t state) const { return !free.empty() && free[number[state]]; }
  };

  /// A string: one of the literals, or a text of the automaton (any text if null) with least .. most code points.
  struct string_spec {
    bool literal = false;
    std::vector<std::string> literals;  ///< sorted, unique
    std::shared_ptr<const dfa> automaton;
    std::uint32_t least = 0, most = none;
    std::shared_ptr<const length_table> lengths;  ///< null: any text follows any state
  };

  /// What follows a name in an object.
  struct label {
    std::uint32_t node = none;  ///< none: the name is not allowed
    std::uint8_t beyond = 0;    ///< see object_spec::beyond
    std::uint8_t witnesses = 0;
    std::uint32_t first_witness = 0;  ///< in object_spec::witnesses
  };
  /// Some of the values of a label's node give the name more bits.
  struct witness {
    std::uint32_t node = none;
    std::uint8_t beyond = 0;
  };
  struct object_spec {
    std::vector<std::string> names;                                  ///< sorted; the bit of a name is its index
    std::vector<label> labels;                                       ///< [names]
    std::vector<std::uint64_t> required;                             ///< bits
    std::vector<std::pair<std::uint32_t, std::uint32_t>> dependent;  ///< the first name requires the second
    std::uint64_t least = 0, most = ~std::uint64_t{0};
    std::uint8_t beyond = 0;  ///< bits: a name that has this bit must occur
    std::vector<witness> witnesses;
    /// Other names: `other` for all of them, or, with an automaton, the entry of the label with which it accepts.
    std::shared_ptr<const dfa> other_names;
    label other;
    std::vector<std::pair<std::uint32_t, label>> other_by_label;
    bool second_first = false;  ///< of two names, the second one has to come first
    /// Names that are not listed may occur twice, and then count once: those so far are known while it matters.
    bool counts_others = false;
    [[nodiscard]] bool allows_others() const { return other.node != none || other_names != nullptr; }
    /// Members beyond this number make no difference.
    [[nodiscard]] std::uint64_t counted_max() const {
      return most == ~std::uint64_t{0} ? least : std::max(least, most);
    }
  };

  struct array_spec {
    std::vector<std::uint32_t> prefix;
    std::uint32_t rest = none;
    /// Items that count for `contains`, by the same positions; used if contains_most > 0.
    std::vector<std::uint32_t> prefix_contained;
    std::uint32_t rest_contained = none;
    bool counts = false;
    /// Used if `counts`: of the first n items, n up to the size of the prefix, how many can and how many must count.
    std::vector<std::uint64_t> can_count, must_count;
    std::uint64_t least = 0, most = ~std::uint64_t{0}, contains_least = 0, contains_most = ~std::uint64_t{0};
    bool unique = false;
    [[nodiscard]] std::uint32_t node_at(std::uint64_t index) const {
      return index < prefix.size() ? prefix[index] : rest;
    }
    [[nodiscard]] std::uint32_t contained_at(std::uint64_t index) const {
      return index < prefix_contained.size() ? prefix_contained[index] : rest_contained;
    }
    /// True if an array with this number of items, some of which count, can come to an end.
    [[nodiscard]] bool may_finish(std::uint64_t items, std::uint64_t contained) const;
  };

  struct node {
    bool null = false, truth = false, falsehood = false;
    std::shared_ptr<const dfa> number;  ///< null: no number
    std::uint32_t number_bytes_max = none;
    [[nodiscard]] bool limits_numbers() const { return number_bytes_max != none; }
    /// The state after one more byte, which is the given number of it; dead if no number within the limit follows.
    [[nodiscard]] std::uint32_t number_step(std::uint32_t state, unsigned char byte, std::uint32_t bytes) const {
      const auto next = number->step(state, byte);
      return !limits_numbers() || bytes + number->needs[next] <= number_bytes_max ? next : dfa::dead;
    }
    std::vector<std::uint32_t> strings, arrays, objects;
    bool satisfiable = false;
  };

  /// Of a grammar of rules.
  struct instruction {
    enum class op : std::uint8_t { jump, split, byte, call, leave } what = op::jump;
    unsigned char low = 0, high = 0;
    std::uint32_t out = none, other = none;  ///< call: to `other`, then continue at `out`
  };

  enum class kind : std::uint8_t { json, text, rules } what = kind::json;
  std::vector<node> nodes;  ///< json: the first is the root
  std::vector<string_spec> strings;
  std::vector<object_spec> objects;
  std::vector<array_spec> arrays;
  std::shared_ptr<const dfa> text;        ///< text: the whole output
  std::vector<instruction> instructions;  ///< rules: the first is the entry
  limits bounds;
  bool ends_at_once = false;  ///< the text ends as soon as it is complete
};

}  // namespace skein::grammar
