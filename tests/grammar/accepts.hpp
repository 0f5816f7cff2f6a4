#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "grammar/matcher.hpp"

namespace skein::test {

inline std::shared_ptr<const grammar::vocabulary_index> bytes_index() {
  static const auto made = grammar::vocabulary_index::build(tokenizer::vocabulary::bytes());
  return made;
}

/// True if a text is complete in a grammar.
inline bool accepts(const std::shared_ptr<const grammar::grammar>& of, std::string_view text) {
  grammar::matcher m(of, bytes_index());
  return m.accept(text) && m.is_complete();
}

/// True if a text is the beginning of one that is complete.
inline bool is_prefix(const std::shared_ptr<const grammar::grammar>& of, std::string_view text) {
  grammar::matcher m(of, bytes_index());
  return m.accept(text);
}

inline std::shared_ptr<const grammar::grammar> schema(std::string_view text) {
  return grammar::grammar::from_json_schema(text).value();
}

/// A schema as for an answer: numbers have one form, and lengths have limits.
inline std::shared_ptr<const grammar::grammar> schema_to_generate(std::string_view text) {
  grammar::options how;
  how.bounds = grammar::limits_to_generate();
  return grammar::grammar::from_json_schema(text, how).value();
}

/// The message of the error; empty if the schema compiles.
inline std::string refusal(std::string_view text) {
  const auto made = grammar::grammar::from_json_schema(text);
  return made ? std::string() : made.error().message;
}

}  // namespace skein::test
