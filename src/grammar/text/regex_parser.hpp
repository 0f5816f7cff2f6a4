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
  static constexpr std::uint32_t none = ~std::uint32_t{0}, every = none - 1;  ///< for options::starred

  struct options {
    std::uint32_t starred = none;  ///< of the repetitions that may be the one of simple(): it becomes a star
    bool split_leading = false;    ///< lookaheads directly after a leading ^ go into leading() instead of the code
    /// What is before or after a match does not matter: there, as few repetitions as may be are enough.
    bool open_begin = false, open_end = false;
    bool at_begin = false;   ///< the expression is read at the beginning of the text
    std::size_t offset = 0;  ///< of the expression in the text that messages refer to
    std::size_t depth = 0;   ///< lookarounds around the expression
    regex_flags flags = {};  ///< of the group around the expression
  };
  regex_parser(std::string_view pattern, budget& work, lookaround_table& looks, const options& how)
      : in_(pattern, work, how.offset), work_(work), looks_(looks), begins_(how.at_begin), how_(how) {
    in_.flags = how.flags;
    // A ] that does not end its class would be taken for its end.
    follows_groups_ = pattern.find("[]") == pattern.npos && pattern.find("[^]") == pattern.npos;
  }

  nfa code;

  /// The whole expression as a fragment of `code`.
  result<nfa::fragment> run();

  /// An expression like ^ab[a-z]{2,63}-$ says how long the text is, and apart from that it is one with a star. There,
  /// one set is repeated a variable number of times. The others have a fixed length. Short repetitions do not count.
  struct simple_form {
    std::uint32_t repeated = 0;  ///< for options::starred
    repetition lengths;
  };
  [[nodiscard]] std::optional<simple_form> simple() const;
  /// How many repetitions may be the one of simple().
  [[nodiscard]] std::size_t candidates() const { return candidates_.size(); }
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
    regex_flags outside;                        ///< those that hold after the group
    bool open_begin = false, open_end = false;  ///< as in options
    // Whether each choice is one character, the parts of the current one, and whether its latest part is one.
    bool all_characters = true, is_character = false;
    std::size_t parts = 0;
    std::uint64_t fixed_before = 0;
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
  void begin_group(const regex_flags& outside);
  [[nodiscard]] bool may_be_last(std::string_view rest) const;
  [[nodiscard]] bool is_repeated_set(const repetition& count, bool is_set, bool is_last);
  void append(const nfa::fragment& made, bool is_character = false);
  nfa::fragment take_sequence();
  nfa::fragment end_group();

  regex_scanner in_;
  budget& work_;
  lookaround_table& looks_;
  std::vector<group> groups_;
  // What has been read: parts that are no assertions, assertions, whether ^ came first, and whether $ came last.
  std::size_t parts_ = 0, assertions_ = 0;
  bool begins_ = false, ends_ = false, has_choices_ = false, follows_groups_ = false;
  // For simple(): repeated sets, the length of all others, and whether there is something else.
  std::vector<repetition> candidates_;
  std::uint64_t fixed_ = 0;
  bool complex_ = false;
  std::vector<lookahead> leading_;
  options how_;
};

}  // namespace skein::grammar
