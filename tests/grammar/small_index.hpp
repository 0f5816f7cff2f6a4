#pragma once
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "grammar/vocabulary_index.hpp"

namespace skein::test {

inline std::shared_ptr<const grammar::vocabulary_index> make_small_index() {
  std::string file;
  int id = 1;
  const auto add = [&](const std::string& literal, std::size_t bytes) {
    file += std::to_string(id++) + " " + literal + " " + std::to_string(bytes) + "\n";
  };
  for (int byte = 0; byte < 256; ++byte) {
    char text[16];
    std::snprintf(text, sizeof text, "b'\\x%02x'", byte);
    add(text, 1);
  }
  for (const char* text : {"ab",   "abc",  "name", "age", "red", "green", "12",  "123",       "  ",
                           "    ", "\": ", "\",",  "\"}", "a\"", "ed\"}", "{\"", "true",      "x\",\"y",
                           "}}",   "]}",   "0.5",  "e1",  " {",  "></",   ">a",  "think>{\"", "k>a"}) {
    add("'" + std::string(text) + "'", std::string_view(text).size());
  }
  add("'nk>\\n\\n'", 5);
  add("'\\u00e9'", 2);
  add("'\\u00e9a'", 3);
  add("b'\\xe8\\xaa'", 2);
  add("'\\\\u00'", 4);
  return grammar::vocabulary_index::build(tokenizer::vocabulary::parse(file, "small").value());
}

/// A vocabulary of all bytes and some longer tokens, many of which cross the boundaries of JSON's own tokens.
inline std::shared_ptr<const grammar::vocabulary_index> small_index() {
  static const auto made = make_small_index();
  return made;
}

}  // namespace skein::test
