#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <numbers>
#include <string>
#include <vector>

#include "app/open_model.hpp"
#include "app/small_file.hpp"
#include "cli/commands.hpp"
#include "cli/one_sequence.hpp"
#include "protocol/json/json_writer.hpp"

namespace skein::cli {
namespace {

result<std::string> text_of(const score_command& what) {
  if (!what.text_file.empty()) return read_small_file(what.text_file);
  return std::string{std::istreambuf_iterator<char>(std::cin), {}};
}

/// Sum of the log-probabilities of all tokens except the first, which has no context.
result<double> log_probability(one_sequence& sequence, std::span<const token_id> tokens, std::uint32_t most) {
  double sum = 0;
  for (std::size_t first = 0; first + 1 < tokens.size();) {
    const auto piece = sequence.next_piece(tokens, first, most);
    const std::size_t end = first + piece.tokens;
    const token_id next = end < tokens.size() ? tokens[end] : no_token;
    const auto fed = sequence.score(piece, tokens.data() + first, next);
    if (!fed) return fed.error();
    first = end;
    for (const auto& token : (*fed)->scores) sum += token.logprob;
  }
  return sum;
}

}  // namespace

result<void> score(const score_command& what) {
  const auto text = text_of(what);
  if (!text) return text.error();
  const auto model = open_model(what.model.path, what.model.adapters);
  if (!model) return model.error();
  const auto vocabulary = open_vocabulary(what.model.vocab, *model);
  if (!vocabulary) return vocabulary.error();
  std::vector<token_id> tokens;
  if (const auto encoded = (*vocabulary)->encode(*text, tokens); !encoded) return encoded.error();
  if (tokens.size() < 2)
    return error{error_kind::invalid_argument, "file: the text must have at least two tokens", "file"};

  engine_wish wish = wish_of(what.model);
  wish.max_tick_tokens = what.chunk_tokens;
  const auto engine = open_engine(*model, wish);
  if (!engine) return engine.error();
  one_sequence sequence(**engine, {});
  const auto sum = log_probability(sequence, tokens, what.chunk_tokens);
  if (!sum) return sum.error();

  const std::size_t scored_tokens = tokens.size() - 1;
  const std::size_t scored_bytes = text->size() - (*vocabulary)->text(tokens.front()).size();
  const double bits = -*sum / std::numbers::ln2 / static_cast<double>(scored_bytes);
  const double perplexity = std::exp(-*sum / static_cast<double>(scored_tokens));
  if (what.json) {
    std::string out;
    protocol::json_writer json(out);
    json.begin_object().key("model").value(model->file.path().string()).key("device").value((*engine)->info().device);
    json.key("weight_type").value((*engine)->info().weight_type).key("state_type").value(what.model.state_dtype);
    json.key("tokens").value(scored_tokens).key("bytes").value(scored_bytes).key("log_probability").value(*sum);
    json.key("bits_per_byte").value(bits).key("perplexity").value(perplexity).end_object();
    std::printf("%s\n", out.c_str());
  } else {
    std::printf("tokens           %zu\nbytes            %zu\nbits_per_byte    %.6f\nperplexity       %.4f\n",
                scored_tokens, scored_bytes, bits, perplexity);
  }
  return {};
}

}  // namespace skein::cli
