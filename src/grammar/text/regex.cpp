#include "grammar/text/regex.hpp"

#include "grammar/text/regex_parser.hpp"

namespace skein::grammar {
namespace {

/// An expression that has been read, and its automaton.
class compilation {
 public:
  /// `search`: for search(), with whole() for a simple expression only.
  compilation(std::string_view pattern, budget& work, bool search, bool keep_simple)
      : work_(work),
        pattern_(pattern),
        how_{.keep_simple = keep_simple, .split_leading = true, .open_begin = search, .open_end = search} {}

  /// Must succeed before the rest may be called.
  result<void> read() {
    if (const auto done = read_once(); !done) return done.error();
    if (parser_->leading().empty() || parser_->is_anchored()) return {};
    how_.split_leading = false;  // the lookaheads belong to the first of several alternatives
    looks_ = {};
    return read_once();
  }

  [[nodiscard]] std::optional<repetition> simple() const { return parser_->simple(); }
  [[nodiscard]] bool is_counted() const { return parser_->is_counted(); }

  /// The texts that the expression matches as a whole.
  result<dfa> whole() {
    parser_->code.accept(body_);
    return with_leading(automaton(parser_->code, looks_));
  }

  /// The texts in which it occurs.
  result<dfa> search() {
    if (looks_.all.empty()) {
      parser_->code.accept_anywhere(body_);
    } else {
      parser_->code.accept_prefix(body_);
      if (!parser_->is_anchored()) parser_->code.begin_at_any_character();
    }
    return with_leading(automaton(parser_->code, looks_));
  }

 private:
  result<void> read_once() {
    parser_.emplace(pattern_, work_, looks_, how_);
    const auto body = parser_->run();
    if (!body) return body.error();
    body_ = *body;
    return {};
  }

  result<dfa> automaton(const nfa& code, const lookaround_table& looks) {
    return looks.all.empty() ? determinise(code, work_) : determinise(code, looks.all, work_);
  }

  /// Intersects an automaton with those of the leading lookaheads: that takes less time than their conditions would.
  result<dfa> with_leading(result<dfa> made) {
    for (const auto& look : parser_->leading()) {
      if (!made) return made;
      lookaround_table looks;
      regex_parser parser(look.expression, work_, looks,
                          {.open_end = true, .offset = look.offset, .depth = 1, .flags = look.flags});
      const auto body = parser.run();
      if (!body) return body.error();
      parser.code.accept_prefix(*body);
      auto ahead = automaton(parser.code, looks);
      if (ahead && look.negative) ahead = complement(*ahead, work_);
      if (!ahead) return ahead;
      made = combine(*made, *ahead, combination::both, work_);
    }
    return made;
  }

  budget& work_;
  std::string_view pattern_;
  regex_parser::options how_;
  lookaround_table looks_;
  std::optional<regex_parser> parser_;
  nfa::fragment body_;
};

}  // namespace

result<dfa> compile_search_automaton(std::string_view pattern, budget& work) {
  compilation read(pattern, work, true, false);
  if (const auto done = read.read(); !done) return done.error();
  return read.search();
}

result<pattern_language> compile_search(std::string_view pattern, budget& work) {
  compilation read(pattern, work, true, true);
  if (const auto done = read.read(); !done) return done.error();
  if (const auto simple = read.simple()) {
    const auto [least, most] = *simple;
    // A short repetition stays part of the automaton, which then combines with others.
    if (most == repetition::no_limit ? least > 8 : most > 8) {
      auto made = read.whole();
      if (!made) return made.error();
      return pattern_language{std::move(*made), least, most};
    }
  }
  auto made = read.is_counted() ? compile_search_automaton(pattern, work) : read.search();
  if (!made) return made.error();
  return pattern_language{std::move(*made)};
}

result<dfa> compile_whole(std::string_view pattern, budget& work) {
  compilation read(pattern, work, false, false);
  if (const auto done = read.read(); !done) return done.error();
  return read.whole();
}

}  // namespace skein::grammar
