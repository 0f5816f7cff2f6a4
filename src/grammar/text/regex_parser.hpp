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
  std::map<std::string, std::uint32_t, std::less<>> index;  ///< by `=` or `<`, the flags and the expression
};

/// Makes an NFA of an expression, with `look` instructions for its lookarounds.
class regex_parser {
 public:
  static constexpr std::size_t depth_max = 8, lookarounds_max = 64;

  struct options {
    bool keep_simple = false;    ///< a repetition that may be the one of simple() becomes a star
    bool split_leading = false;  ///< lookaheads directly after a leading ^ go into leading() instead of the code
    /// What is before or after a match does not matter: there, as few repetitions as may be are enough.
    bool open_begin = false, open_end = false;
    std::size_t offset = 0;  ///< of the expression in the text that messages refer to
    std::size_t depth = 0;   ///< lookarounds around the expression
    regex_flags flags = {};  ///< of the group around the expression
  };
  regex_parser(std::string_view pattern, budget& work, lookaround_table& looks, const options& how)
      : in_(pattern, work, how.offset), work_(work), looks_(looks), how_(how) {
    in_.flags = how.flags;
  }

  nfa code;

  /// The whole expression as a fragment of `code`.
  result<nfa::fragment> run();

  /// If the expression is ^C{m,n}$ with a set C, and perhaps assertions before and after C{m,n}: m and n.
  [[nodiscard]] std::optional<repetition> simple() const;
  /// Whether a set was read that keep_simple changes.
  [[nodiscard]] bool is_counted() const { return counted_.has_value(); }
  /// The expression matches at the beginning of the text only.
  [[nodiscard]] bool is_anchored() const { return begins_ && !has_choices_; }
  /// Lookaheads at the beginning of the text. They are of use if is_anchored(): then they limit the whole expression.
  struct lookahead {
    std::string_view expression;
    std::size_t offset = 0;
    bool negative = false;
    regex_flags flags = {};
  };
  [[nodiscard]] const std::vector<lookahead>& leading() const { return leading_; }

 private:
  struct group {
    std::vector<nfa::fragment> choices;
    std::optional<nfa::fragment> sequence;
    regex_flags outside;  ///< those that hold after the group
  };

  [[nodiscard]] error size_error() const;
  result<void> part();
  result<void> open();
  result<void> look();
  result<bool> open_other();
  result<std::uint32_t> lookaround_of(std::string_view expression, std::size_t offset, bool behind,
                                      const regex_flags& flags);
  result<void> word_boundary();
  result<void> text_bound(bool end, bool multiline);
  result<void> assertion(const nfa::fragment& made);
  result<void> atom();
  result<void> quantified(nfa::fragment made, bool is_set);
  void append(const nfa::fragment& made);
  nfa::fragment take_sequence();
  nfa::fragment end_group();

  regex_scanner in_;
  budget& work_;
  lookaround_table& looks_;
  std::vector<group> groups_;
  // What has been read: parts that are no assertions, assertions, whether ^ came first, and whether $ came last.
  std::size_t parts_ = 0, assertions_ = 0;
  bool begins_ = false, ends_ = false, has_choices_ = false;
  std::optional<repetition> counted_;  ///< of the first part, if that is a set
  std::vector<lookahead> leading_;
  options how_;
};

}  // namespace skein::grammar
