#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/automata/limits.hpp"
#include "grammar/automata/lookaround.hpp"
#include "grammar/automata/nfa.hpp"
#include "grammar/text/regex_scanner.hpp"

namespace skein::grammar {

/// The lookarounds of an expression, inner ones first, each of them once.
struct lookaround_table {
  std::vector<lookaround> all;
  std::map<std::string, std::uint32_t, std::less<>> index;  ///< by `=` or `<` and the expression
};

/// Makes an NFA of an expression, with `look` instructions for its lookarounds.
class regex_parser {
 public:
  static constexpr std::size_t depth_max = 8, lookarounds_max = 64;

  /// `keep_simple`: a repetition that may be the one of simple() becomes a star.
  regex_parser(std::string_view pattern, budget& work, lookaround_table& looks, bool keep_simple = false)
      : in_(pattern, work), work_(work), looks_(looks), keep_simple_(keep_simple) {}

  nfa code;

  /// The whole expression as a fragment of `code`.
  result<nfa::fragment> run();

  /// If the expression is ^C{m,n}$ with a set C, and perhaps lookarounds before and after it: the set, m and n.
  struct simple_shape {
    code_set set;
    repetition count;
    bool has_looks = false;  ///< or further assertions
  };
  [[nodiscard]] std::optional<simple_shape> simple() const;
  /// The expression matches at the beginning of the text only.
  [[nodiscard]] bool is_anchored() const { return begins_ && !has_choices_; }

 private:
  struct group {
    std::vector<nfa::fragment> choices;
    std::optional<nfa::fragment> sequence;
  };

  /// The expression of a lookaround.
  regex_parser(std::string_view pattern, std::size_t offset, std::size_t depth, budget& work, lookaround_table& looks)
      : in_(pattern, work, offset), work_(work), looks_(looks), depth_(depth) {}

  [[nodiscard]] error size_error() const;
  result<void> part();
  result<void> open();
  result<void> look();
  result<std::uint32_t> lookaround_of(std::string_view expression, std::size_t offset, bool behind);
  result<void> word_boundary();
  result<void> assertion(const nfa::fragment& made);
  result<void> atom();
  result<void> quantified(nfa::fragment made);
  void append(const nfa::fragment& made);
  nfa::fragment take_sequence();
  nfa::fragment end_group();

  regex_scanner in_;
  budget& work_;
  lookaround_table& looks_;
  std::vector<group> groups_;
  // What has been read: parts that are no assertions, assertions, whether ^ came first, and whether $ came last.
  std::size_t parts_ = 0, assertions_ = 0, depth_ = 0;
  bool begins_ = false, ends_ = false, has_choices_ = false;
  const code_set* last_set_ = nullptr;
  std::optional<simple_shape> shape_;
  bool keep_simple_ = false;
};

}  // namespace skein::grammar
