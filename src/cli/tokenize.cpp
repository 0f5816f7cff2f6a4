#include <cstdio>
#include <iostream>
#include <iterator>

#include "app/open_model.hpp"
#include "cli/commands.hpp"
#include "cli/token_list.hpp"

namespace skein::cli {

result<void> tokenize(const tokenize_command& what) {
  const auto vocabulary = open_vocabulary(what.vocab);
  if (!vocabulary) return vocabulary.error();
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};

  std::string output;
  const bool is_blank = input.find_first_not_of(" \t\r\n") == std::string::npos;
  if (what.ids && is_blank) return {};  // an empty list gives an empty text
  if (what.ids) {
    const auto tokens = parse_tokens(input);
    if (!tokens) return tokens.error();
    if (const auto legal = check_tokens(*tokens, (*vocabulary)->size()); !legal) return legal.error();
    for (const auto token : *tokens) output += (*vocabulary)->text(token);
  } else {
    std::vector<token_id> tokens;
    if (const auto encoded = (*vocabulary)->encode(input, tokens); !encoded) return encoded.error();
    output = to_list(tokens) + '\n';
  }
  std::fwrite(output.data(), 1, output.size(), stdout);
  if (std::fflush(stdout) != 0) return error{error_kind::io, "cannot write to stdout", {}};
  return {};
}

}  // namespace skein::cli
