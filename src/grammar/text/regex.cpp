#include "grammar/text/regex.hpp"

#include <algorithm>

#include "grammar/text/regex_parser.hpp"

namespace skein::grammar {
namespace {

/// An expression that has been read, and its automaton.
class compilation {
 public:
  /// `search`: for search(), with whole() for a simple expression only. `apart`: lengths() are no part of the result.
  compilation(std::string_view pattern, budget& work, bool search, bool apart)
      : work_(work),
        pattern_(pattern),
        apart_(apart),
        how_{.starred = apart ? regex_parser::every : regex_parser::none,
             .split_leading = true,
             .open_begin = search,
             .open_end = search} {}

  /// Must succeed before the rest may be called.
  result<void> read() {
    if (const auto done = read_once(); !done) return done.error();
    if (!parser_->leading().empty() && !parser_->is_anchored()) {
      how_.split_leading = false;  // the lookaheads belong to the first of several alternatives
      if (const auto done = read_once(); !done) return done.error();
    }
    if (how_.starred == regex_parser::none || parser_->candidates() == 0) return {};
    simple_ = parser_->simple();
    if (simple_ && parser_->candidates() == 1) return {};
    how_.starred = simple_ ? simple_->repeated : regex_parser::none;
    return read_once();
  }

  /// The expression is simple, and its automaton is whole(). Then lengths() is what was left out.
  [[nodiscard]] bool is_simple() const { return simple_.has_value(); }
  /// What the expression, if it is simple, and lookaheads like ^(?=.{8,64}$) say about the length of the text, after
  /// whole() or search().
  [[nodiscard]] repetition lengths() const {
    const auto own = simple_ ? simple_->lengths : repetition{};
    return {std::max(own.least, lengths_.least), std::min(own.most, lengths_.most)};
  }

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
    looks_ = {};
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
      auto ahead = lookahead(look, apart_ && !look.negative);
      if (ahead && look.negative) ahead = complement(*ahead, work_);
      if (!ahead) return ahead;
      made = combine(*made, *ahead, combination::both, work_);
    }
    return made;
  }

  /// The texts that begin as a lookahead says.
  result<dfa> lookahead(const regex_parser::lookahead& look, bool apart) {
    lookaround_table looks;
    regex_parser parser(look.expression, work_, looks,
                        {.starred = apart ? regex_parser::every : regex_parser::none,
                         .open_end = true,
                         .at_begin = true,
                         .offset = look.offset,
                         .depth = 1,
                         .flags = look.flags});
    const auto body = parser.run();
    if (!body) return body.error();
    if (apart && parser.candidates() > 0) {
      const auto simple = parser.simple();
      if (!simple || parser.candidates() > 1) return lookahead(look, false);
      lengths_.least = std::max(lengths_.least, simple->lengths.least);
      lengths_.most = std::min(lengths_.most, simple->lengths.most);
    }
    parser.code.accept_prefix(*body);
    return automaton(parser.code, looks);
  }

  budget& work_;
  std::string_view pattern_;
  bool apart_;
  repetition lengths_;  // of lookaheads
  std::optional<regex_parser::simple_form> simple_;
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
  auto made = read.is_simple() ? read.whole() : read.search();
  if (!made) return made.error();
  return pattern_language{std::move(*made), read.lengths().least, read.lengths().most};
}

result<dfa> compile_whole(std::string_view pattern, budget& work) {
  compilation read(pattern, work, false, false);
  if (const auto done = read.read(); !done) return done.error();
  return read.whole();
}

}  // namespace skein::grammar
