#include "grammar/text/regex.hpp"

#include "grammar/text/regex_parser.hpp"

namespace skein::grammar {

result<dfa> compile_search_automaton(std::string_view pattern, budget& work) {
  lookaround_table looks;
  regex_parser parser(pattern, work, looks);
  const auto body = parser.run();
  if (!body) return body.error();
  if (looks.all.empty()) {
    parser.code.accept_anywhere(*body);
    return determinise(parser.code, work);
  }
  parser.code.accept_prefix(*body);
  if (!parser.is_anchored()) parser.code.begin_at_any_character();
  return determinise(parser.code, looks.all, work);
}

result<pattern_language> compile_search(std::string_view pattern, budget& work) {
  lookaround_table looks;
  regex_parser parser(pattern, work, looks, true);
  const auto body = parser.run();
  if (!body) return body.error();
  if (const auto simple = parser.simple()) {
    const auto [least, most] = simple->count;
    // A short repetition stays part of the automaton, which then combines with others.
    if (most == repetition::no_limit ? least > 8 : most > 8) {
      nfa repeated;
      if (simple->has_looks)
        parser.code.accept(*body);
      else
        repeated.accept(repeated.star(repeated.codes(simple->set)));
      auto made = simple->has_looks ? determinise(parser.code, looks.all, work) : determinise(repeated, work);
      if (!made) return made.error();
      return pattern_language{std::move(*made), least, most};
    }
  }
  auto made = compile_search_automaton(pattern, work);
  if (!made) return made.error();
  return pattern_language{std::move(*made)};
}

result<dfa> compile_whole(std::string_view pattern, budget& work) {
  lookaround_table looks;
  regex_parser parser(pattern, work, looks);
  const auto body = parser.run();
  if (!body) return body.error();
  parser.code.accept(*body);
  return looks.all.empty() ? determinise(parser.code, work) : determinise(parser.code, looks.all, work);
}

}  // namespace skein::grammar
