#include <unistd.h>

#include <cstdio>
#include <random>

#include "app/open_model.hpp"
#include "app/small_file.hpp"
#include "cli/commands.hpp"
#include "cli/one_sequence.hpp"
#include "cli/token_list.hpp"
#include "tokenizer/detokenizer.hpp"

namespace skein::cli {
namespace {

result<std::vector<token_id>> prompt_tokens(const generate_command& what, const tokenizer::vocabulary& vocabulary) {
  if (const auto* tokens = std::get_if<std::vector<token_id>>(&what.prompt)) return *tokens;
  std::string text;
  if (const auto* given = std::get_if<std::string>(&what.prompt)) {
    text = *given;
  } else {
    auto read = read_small_file(std::get<std::filesystem::path>(what.prompt));
    if (!read) return read.error();
    text = std::move(*read);
  }
  std::vector<token_id> tokens;
  if (const auto encoded = vocabulary.encode(text, tokens); !encoded) return encoded.error();
  if (tokens.empty()) return error{error_kind::invalid_argument, "prompt: must not be empty", "prompt"};
  return tokens;
}

/// Streams generated tokens to stdout: text in whole characters, or ids on one line.
class printer {
 public:
  printer(const tokenizer::vocabulary& vocabulary, bool ids) : vocabulary_(vocabulary), ids_(ids) {}

  void print(token_id token) {
    std::string out;
    if (ids_)
      out = (first_ ? "" : ",") + std::to_string(token);
    else
      assembler_.push(vocabulary_.text(token), out);
    first_ = false;
    std::fwrite(out.data(), 1, out.size(), stdout);
    std::fflush(stdout);
  }
  /// Errors: io if a write to stdout failed.
  result<void> finish() {
    if (ids_ || isatty(STDOUT_FILENO) == 1) std::fputc('\n', stdout);
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) return error{error_kind::io, "cannot write to stdout", {}};
    return {};
  }

 private:
  const tokenizer::vocabulary& vocabulary_;
  tokenizer::utf8_assembler assembler_;
  bool ids_;
  bool first_ = true;
};

}  // namespace

result<void> generate(const generate_command& what) {
  const auto model = open_model(what.model.path, what.model.adapters);
  if (!model) return model.error();
  const auto vocabulary = open_vocabulary(what.model.vocab, *model);
  if (!vocabulary) return vocabulary.error();
  const auto prompt = prompt_tokens(what, **vocabulary);
  if (!prompt) return prompt.error();
  if (const auto legal = check_tokens(*prompt, model->info.vocab); !legal) return legal.error();
  const auto engine = open_engine(*model, wish_of(what.model));
  if (!engine) return engine.error();

  sampling::sampling_params params = what.sampling;
  params.max_tokens = what.max_tokens;
  if (!what.seed_given) params.seed = std::random_device()();
  if ((*vocabulary)->end() != no_token) params.stop_ids.push_back((*vocabulary)->end());

  one_sequence sequence(**engine, params);
  printer out(**vocabulary, what.show_tokens);
  const std::uint32_t most = (*engine)->info().max_tick_tokens;
  std::size_t fed = 0;
  auto piece = sequence.next_piece(*prompt, fed, most);
  for (; fed + piece.tokens < prompt->size(); piece = sequence.next_piece(*prompt, fed, most)) {
    if (const auto done = sequence.feed(piece, prompt->data() + fed, false); !done) return done.error();
    fed += piece.tokens;
  }
  for (auto sampled = sequence.feed(piece, prompt->data() + fed, true);; sampled = sequence.decode()) {
    if (!sampled) return sampled.error();
    if ((*sampled)->stopped != engine::stop_cause::stop_id) out.print((*sampled)->token);
    if ((*sampled)->stopped != engine::stop_cause::none) return out.finish();
  }
}

}  // namespace skein::cli
