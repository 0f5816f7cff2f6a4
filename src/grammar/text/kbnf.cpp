// Rules are read from left to right with a stack for their groups. A rule that begins with itself is turned round while
// it is read: A ::= A x | y becomes A ::= y R with R ::= x R | "".
#include "grammar/text/kbnf.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "base/utf8.hpp"
#include "grammar/text/regex.hpp"
#include "grammar/text/rule_set.hpp"

namespace skein::grammar {
namespace {

bool is_kbnf_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// A text as a regular expression that matches nothing else.
std::string quoted_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}/").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

class kbnf_parser : rule_set {
 public:
  kbnf_parser(std::string_view text, budget& work) : rule_set(work), text_(text) {}

  result<program> run() {
    while (true) {
      if (const auto skipped = skip(); !skipped) return skipped.error();
      if (at_ >= text_.size()) break;
      if (const auto read = rule(); !read) return read.error();
    }
    end_rules();
    auto made = finish("start");
    if (made) made->ends_at_once = true;
    return made;
  }

 private:
  struct bracketed : group {
    char closing = '\0';  // of the brackets; 0: the rule itself
  };
  /// The alternatives of a rule, and what follows in those that begin with the rule itself.
  struct definition {
    std::vector<std::uint32_t> choices, rests;
    std::uint32_t rest_rule = nfa::none;
  };

  error wrong(const std::string& what) const {
    const auto line = 1 + std::ranges::count(text_.substr(0, at_), '\n');
    return {error_kind::invalid_argument, "grammar, line " + std::to_string(line) + ": " + what, {}};
  }
  error not_supported(const std::string& what) const {
    auto made = wrong(what + " is not supported");
    made.kind = error_kind::unsupported;
    return made;
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  /// Skips white space and comments.
  result<void> skip() {
    while (at_ < text_.size()) {
      if (starts("(*")) {
        const auto end = text_.find("*)", at_ + 2);
        if (end == std::string_view::npos) return wrong("unterminated comment");
        at_ = end + 2;
      } else if (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') {
        ++at_;
      } else {
        break;
      }
    }
    return {};
  }

  std::string_view name() {
    const auto begin = at_;
    if (peek() >= '0' && peek() <= '9') return {};
    while (at_ < text_.size() && is_kbnf_name(peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  definition& defined(std::uint32_t rule) {
    if (definitions_.size() <= rule) definitions_.resize(rule + 1);
    return definitions_[rule];
  }
  /// A rule without a name in the text.
  std::uint32_t hidden_rule() {
    entries_.push_back(nfa::none);
    return static_cast<std::uint32_t>(entries_.size() - 1);
  }

  result<void> rule() {
    const auto called = name();
    if (called.empty()) return wrong("expected the name of a rule");
    const auto index = index_of(called);
    if (const auto skipped = skip(); !skipped) return skipped;
    if (!starts("::=")) return wrong("expected ::=");
    at_ += 3;
    while (true) {
      if (const auto read = alternative(index, called); !read) return read;
      const char c = peek();
      ++at_;
      if (c == ';') return {};
    }
  }

  /// One alternative of a rule, up to its | or semicolon.
  result<void> alternative(std::uint32_t rule, std::string_view called) {
    if (const auto skipped = skip(); !skipped) return skipped;
    const auto before = at_;
    bool itself = name() == called;
    if (const auto skipped = skip(); !skipped) return skipped;
    const bool whole = peek() == '|' || peek() == ';';
    if (peek() == '?' || peek() == '*' || peek() == '+') itself = false;
    if (!itself) at_ = before;
    const auto made = sequence();
    if (!made) return made.error();
    auto& of = defined(rule);
    if (itself && whole) return {};  // A ::= A adds nothing
    if (itself && of.rest_rule == nfa::none) {
      const auto rest = hidden_rule();
      defined(rule).rest_rule = rest;
    }
    auto& now = defined(rule);
    code_.end_in_match(*made);
    (itself ? now.rests : now.choices).push_back(made->entry);
    // The match before is replaced by a call of the rest when all alternatives are known.
    ends_.push_back({rule, made->exit});
    return {};
  }

  /// Elements up to a | or semicolon outside of brackets.
  result<nfa::fragment> sequence() {
    std::vector<bracketed> groups(1);
    while (true) {
      if (!work_.spend(10)) return too_much_work(work_);
      if (code_.size() > work_.of().instructions_max)
        return too_much("instructions of a grammar", work_.of().instructions_max);
      if (const auto skipped = skip(); !skipped) return skipped.error();
      const char c = peek();
      if (at_ >= text_.size())
        return wrong(groups.size() > 1 ? "unterminated group" : "expected ; at the end of a rule");
      if (groups.size() == 1 && (c == '|' || c == ';')) break;
      if (c == '(' || c == '[' || c == '{') {
        ++at_;
        groups.push_back({{}, c == '(' ? ')' : c == '[' ? ']' : '}'});
      } else if (c == ')' || c == ']' || c == '}') {
        if (groups.back().closing != c) return wrong(std::string("unmatched ") + c);
        ++at_;
        auto made = end_group(groups.back());
        groups.pop_back();
        if (c == ']') made = code_.optional(made);
        if (c == '}') made = code_.star(made);
        if (const auto added = add(groups.back(), made); !added) return added.error();
      } else if (c == '|') {
        ++at_;
        groups.back().choices.push_back(take(groups.back()));
      } else if (c == ';') {
        return wrong("unterminated group");
      } else {
        auto made = element();
        if (!made) return made;
        if (const auto added = add(groups.back(), *made); !added) return added.error();
      }
    }
    return end_group(groups.front());
  }

  /// Appends an element with the repetition after it.
  result<void> add(group& to, nfa::fragment made) {
    if (const auto skipped = skip(); !skipped) return skipped;
    if (peek() == '?') made = code_.optional(made);
    if (peek() == '*') made = code_.star(made);
    if (peek() == '+') made = code_.plus(made);
    if (peek() == '?' || peek() == '*' || peek() == '+') ++at_;
    to.sequence = to.sequence ? code_.concat(*to.sequence, made) : made;
    return {};
  }

  result<nfa::fragment> element() {
    if (peek() == '"' || peek() == '\'') {
      const auto literal = quoted(false);
      if (!literal) return literal.error();
      return code_.text(*literal);
    }
    if (peek() == '#') return expression();
    if (starts("except!")) return exception();
    const auto called = name();
    if (called.empty()) return wrong("unexpected character");
    return code_.call(index_of(called));
  }

  /// A text in quotes. `pattern`: escapes that are not known belong to a regular expression.
  result<std::string> quoted(bool pattern) {
    const char quote = peek();
    std::string text;
    for (++at_; peek() != quote; ++at_) {
      if (at_ >= text_.size()) return wrong("unterminated text");
      if (peek() != '\\') {
        text += peek();
        continue;
      }
      ++at_;
      switch (peek()) {
        case 't': text += '\t'; break;
        case 'n': text += '\n'; break;
        case 'r': text += '\r'; break;
        case '"':
        case '\'':
        case '\\': text += peek(); break;
        default:
          if (!pattern || at_ >= text_.size()) return wrong("unknown escape");
          (text += '\\') += peek();
      }
    }
    ++at_;
    if (!is_utf8(text)) return wrong("ill-formed UTF-8");
    return text;
  }

  /// #"pattern", or #ex"pattern": texts in which it does not occur.
  result<nfa::fragment> expression() {
    ++at_;
    const auto kind = name();
    if (peek() != '"' && peek() != '\'') return wrong("expected a regular expression in quotes");
    if (!kind.empty() && kind != "ex") return not_supported("#" + std::string(kind));
    const auto pattern = quoted(true);
    if (!pattern) return pattern.error();
    return kind.empty() ? embedded(compile_whole(*pattern, work_)) : without(*pattern);
  }

  /// except!("text"): texts in which it does not occur.
  result<nfa::fragment> exception() {
    at_ += std::string_view("except!").size();
    if (const auto skipped = skip(); !skipped) return skipped.error();
    if (peek() != '(') return wrong("expected ( after except!");
    ++at_;
    if (const auto skipped = skip(); !skipped) return skipped.error();
    if (peek() != '"' && peek() != '\'') return not_supported("except! of anything but a text");
    const auto text = quoted(false);
    if (!text) return text.error();
    if (text->empty()) return wrong("except! of an empty text");
    if (const auto skipped = skip(); !skipped) return skipped.error();
    if (peek() == ',') return not_supported("except! with a length");
    if (peek() != ')') return wrong("expected ) after except!");
    ++at_;
    return without(quoted_pattern(*text));
  }

  result<nfa::fragment> without(const std::string& pattern) {
    auto found = compile_search_automaton(pattern, work_);
    if (!found) return embedded(std::move(found));
    return embedded(complement(*found, work_));
  }

  result<nfa::fragment> embedded(result<dfa> made) {
    if (!made) {
      error why = made.error();
      if (why.kind != error_kind::too_large) why.message = wrong(why.message).message;
      return why;
    }
    if (made->is_empty()) return code_.never();
    const auto states = static_cast<std::uint32_t>(made->states());
    if (!work_.spend(std::uint64_t{states} * 256)) return too_much_work(work_);
    std::vector<nfa::step> steps;
    for (std::uint32_t state = 1; state < states; ++state)
      for (unsigned byte = 0; byte < 256; ++byte) {
        const auto to = made->step(state, static_cast<unsigned char>(byte));
        if (to == dfa::dead) continue;
        const bool longer = byte > 0 && !steps.empty() && steps.back().from == state && steps.back().to == to &&
                            steps.back().high + 1u == byte;
        if (longer)
          steps.back().high = static_cast<unsigned char>(byte);
        else
          steps.push_back({state, static_cast<unsigned char>(byte), static_cast<unsigned char>(byte), to});
      }
    if (code_.size() + 2 * steps.size() + 2 * states > work_.of().instructions_max)
      return too_much("instructions of a grammar", work_.of().instructions_max);
    std::vector<bool> accepting(states);
    for (std::uint32_t state = 1; state < states; ++state) accepting[state] = made->accepting[state] != 0;
    return code_.automaton(states, made->start, steps, accepting);
  }

  /// Gives rules their entries.
  void end_rules() {
    for (const auto& [rule, exit] : ends_)
      if (const auto rest = definitions_[rule].rest_rule; rest != nfa::none) {
        const auto tail = code_.call(rest);
        code_.end_in_match(tail);
        code_.link(exit, tail.entry);
      }
    for (std::uint32_t rule = 0; rule < definitions_.size(); ++rule) {
      auto& of = definitions_[rule];
      if (!of.choices.empty()) entries_[rule] = code_.choose(of.choices);
      if (of.rest_rule == nfa::none) continue;
      const auto nothing = code_.empty();
      code_.end_in_match(nothing);
      of.rests.push_back(nothing.entry);
      entries_[of.rest_rule] = code_.choose(of.rests);
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<definition> definitions_;  // by rule
  struct ending {
    std::uint32_t rule, exit;
  };
  std::vector<ending> ends_;  // of alternatives
};

}  // namespace

result<program> compile_kbnf(std::string_view text, budget& work) {
  if (text.size() > work.of().source_bytes_max) return too_much("bytes", work.of().source_bytes_max);
  return kbnf_parser(text, work).run();
}

}  // namespace skein::grammar
