// The expression is read from left to right, with a stack for its groups, and becomes an NFA at once: an instruction
// range for each atom, glued to what is before it. Quantifiers copy ranges. There is no syntax tree and no recursion.
#include "grammar/text/regex.hpp"

#include <optional>
#include <vector>

#include "grammar/text/regex_scanner.hpp"

namespace skein::grammar {
namespace {

/// A lookahead at the beginning: the text must match it, or must not.
struct lookahead {
  std::string_view pattern;
  bool negative = false;
};

/// The offset of the parenthesis that closes the group whose content begins at `text`; npos: there is none.
std::size_t end_of_group(std::string_view text) {
  std::size_t depth = 1;
  bool in_class = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (in_class) {
      in_class = text[i] != ']';
    } else if (text[i] == '[') {
      in_class = true;
    } else if (text[i] == '(') {
      ++depth;
    } else if (text[i] == ')' && --depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

class regex_parser {
 public:
  /// `keep_simple`: an expression that is_simple() is not unrolled, and its fragment is of no use.
  regex_parser(std::string_view pattern, budget& work, bool keep_simple = false)
      : in_(pattern), work_(work), keep_simple_(keep_simple) {}

  nfa code;
  std::vector<lookahead> lookaheads;

  /// The whole expression as a fragment of `code`.
  result<nfa::fragment> run() {
    groups_.emplace_back();
    while (!in_.at_end()) {
      if (!work_.spend(8)) return too_much_work(work_);
      if (code.size() > work_.of().instructions_max) return size_error();
      if (const auto read = part(); !read) return read.error();
    }
    if (groups_.size() > 1) return in_.wrong("unterminated group");
    if (!lookaheads.empty() && !groups_.front().choices.empty())
      return in_.not_supported("a lookahead in one of several alternatives");
    return end_group();
  }

  /// If the expression is ^C{m,n}$ with a set C: its fragment without the repetition, and m and n.
  struct simple_shape {
    code_set set;
    repetition count;
  };
  [[nodiscard]] const std::optional<simple_shape>& simple() const { return shape_; }
  [[nodiscard]] bool is_simple() const { return shape_ && atoms_ == 3 && begins_ && ends_; }

 private:
  struct group {
    std::vector<nfa::fragment> choices;
    std::optional<nfa::fragment> sequence;
  };

  error size_error() const { return too_much("instructions of a pattern", work_.of().instructions_max); }

  result<void> part() {
    switch (in_.peek()) {
      case '(': return open();
      case ')':
        if (groups_.size() == 1) return in_.wrong("unmatched )");
        in_.skip(1);
        {
          const auto made = end_group();
          groups_.pop_back();
          return quantified(made);
        }
      case '|':
        in_.skip(1);
        ++atoms_;
        groups_.back().choices.push_back(take_sequence());
        return {};
      case '^':
        in_.skip(1);
        begins_ = begins_ || atoms_ == 0;
        return assertion(nfa::op::text_begin);
      case '$':
        in_.skip(1);
        ends_ = in_.at_end() && groups_.size() == 1;
        return assertion(nfa::op::text_end);
      case '*':
      case '+':
      case '?': return in_.wrong("nothing to repeat");
      default: return atom();
    }
  }

  result<void> open() {
    in_.skip(1);
    ++atoms_;
    if (in_.starts("?:")) {
      in_.skip(2);
    } else if (in_.starts("?=") || in_.starts("?!")) {
      return look();
    } else if (in_.starts("?<") && !in_.starts("?<=") && !in_.starts("?<!")) {
      const auto end = in_.rest().find('>');
      if (end == std::string_view::npos) return in_.wrong("bad group name");
      in_.skip(end + 1);
    } else if (in_.peek() == '?') {
      return in_.not_supported(in_.starts("?<") ? "a lookbehind" : "a group modifier");
    }
    if (groups_.size() > work_.of().instructions_max) return size_error();
    groups_.emplace_back();
    return {};
  }

  /// A lookahead before everything else; ^ may precede it.
  result<void> look() {
    if (groups_.size() > 1 || !only_begin_) return in_.not_supported("a lookahead inside of the expression");
    const bool negative = in_.starts("?!");
    in_.skip(2);
    const auto end = end_of_group(in_.rest());
    if (end == std::string_view::npos) return in_.wrong("unterminated group");
    if (!begins_) return in_.not_supported("a lookahead without ^ before it");
    lookaheads.push_back({in_.rest().substr(0, end), negative});
    in_.skip(end + 1);
    if (const auto count = in_.quantifier(); !count || *count) return in_.not_supported("a repeated lookahead");
    return {};
  }

  result<void> assertion(nfa::op which) {
    ++atoms_;
    only_begin_ = only_begin_ && which == nfa::op::text_begin;
    const auto made = code.assertion(which);
    if (const auto count = in_.quantifier(); !count || *count) return in_.wrong("nothing to repeat");
    append(made);
    return {};
  }

  result<void> atom() {
    code_set set;
    if (in_.peek() == '[') {
      in_.skip(1);
      auto read = in_.set();
      if (!read) return read.error();
      set = std::move(*read);
    } else if (in_.peek() == '\\') {
      in_.skip(1);
      auto read = in_.escape();
      if (!read) return read.error();
      set = std::move(*read);
    } else if (in_.peek() == '.') {
      in_.skip(1);
      set = dot_set();
    } else {
      const auto read = in_.character();
      if (!read) return read.error();
      set.add(*read);
    }
    ++atoms_;
    last_set_ = &set;
    auto outcome = quantified(code.codes(set));
    last_set_ = nullptr;
    return outcome;
  }

  /// Appends an atom, with the quantifier that follows it.
  result<void> quantified(nfa::fragment made) {
    only_begin_ = false;
    const auto count = in_.quantifier();
    if (!count) return count.error();
    if (*count) {
      if (last_set_ && begins_ && groups_.size() == 1 && !shape_ && atoms_ == 2 && in_.rest() == "$") {
        shape_ = simple_shape{*last_set_, **count};
      }
      bool fits = true;
      // A counted set that is the whole expression is not unrolled; see compile_search.
      if (!(shape_ && keep_simple_))
        made = code.repeat(made, (*count)->least, (*count)->most, work_.of().instructions_max, fits);
      if (!fits) return size_error();
      if (!work_.spend(code.size() / 8)) return too_much_work(work_);
      if (const auto more = in_.quantifier(); !more || *more) return in_.wrong("nothing to repeat");
    }
    append(made);
    return {};
  }

  void append(const nfa::fragment& made) {
    auto& sequence = groups_.back().sequence;
    sequence = sequence ? code.concat(*sequence, made) : made;
  }

  nfa::fragment take_sequence() {
    auto& sequence = groups_.back().sequence;
    const auto made = sequence ? *sequence : code.empty();
    sequence.reset();
    return made;
  }

  nfa::fragment end_group() {
    auto& choices = groups_.back().choices;
    choices.push_back(take_sequence());
    return code.either(choices);
  }

  regex_scanner in_;
  budget& work_;
  std::vector<group> groups_;
  std::size_t atoms_ = 0;
  bool only_begin_ = true, begins_ = false, ends_ = false;
  const code_set* last_set_ = nullptr;
  std::optional<simple_shape> shape_;
  bool keep_simple_;
};

/// Intersects the automaton with those of the lookaheads.
result<dfa> with_lookaheads(dfa made, const std::vector<lookahead>& all, budget& work) {
  for (const auto& look : all) {
    regex_parser parser(look.pattern, work);
    const auto body = parser.run();
    if (!body) return body.error();
    if (!parser.lookaheads.empty())
      return error{error_kind::unsupported, "regular expression: a lookahead in a lookahead is not supported", {}};
    const auto begin = parser.code.assertion(nfa::op::text_begin);
    auto whole = parser.code.concat(begin, *body);
    parser.code.accept_anywhere(whole);
    auto searched = determinise(parser.code, work);
    if (!searched) return searched.error();
    if (look.negative) searched = complement(*searched, work);
    if (!searched) return searched.error();
    auto both = combine(made, *searched, combination::both, work);
    if (!both) return both.error();
    made = std::move(*both);
  }
  return made;
}

}  // namespace

result<dfa> compile_search_automaton(std::string_view pattern, budget& work) {
  regex_parser parser(pattern, work);
  const auto body = parser.run();
  if (!body) return body.error();
  parser.code.accept_anywhere(*body);
  auto made = determinise(parser.code, work);
  if (!made || parser.lookaheads.empty()) return made;
  return with_lookaheads(std::move(*made), parser.lookaheads, work);
}

result<pattern_language> compile_search(std::string_view pattern, budget& work) {
  regex_parser parser(pattern, work, true);
  const auto body = parser.run();
  if (!body) return body.error();
  if (parser.is_simple()) {
    const auto [least, most] = parser.simple()->count;
    // A short repetition stays part of the automaton, which then combines with others.
    if (most == repetition::no_limit ? least > 8 : most > 8) {
      nfa repeated;
      repeated.accept(repeated.star(repeated.codes(parser.simple()->set)));
      auto made = determinise(repeated, work);
      if (!made) return made.error();
      return pattern_language{std::move(*made), least, most};
    }
  }
  auto made = compile_search_automaton(pattern, work);
  if (!made) return made.error();
  return pattern_language{std::move(*made)};
}

result<dfa> compile_whole(std::string_view pattern, budget& work) {
  regex_parser parser(pattern, work);
  const auto body = parser.run();
  if (!body) return body.error();
  parser.code.accept(*body);
  auto made = determinise(parser.code, work);
  if (!made || parser.lookaheads.empty()) return made;
  return with_lookaheads(std::move(*made), parser.lookaheads, work);
}

}  // namespace skein::grammar
