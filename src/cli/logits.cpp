#include <algorithm>
#include <bit>
#include <fstream>

#include "app/open_model.hpp"
#include "app/small_file.hpp"
#include "cli/commands.hpp"
#include "cli/one_sequence.hpp"
#include "cli/state_file.hpp"
#include "cli/token_list.hpp"

namespace skein::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "floats are written without byte swapping");

result<std::vector<token_id>> read_tokens(const std::filesystem::path& path, std::uint32_t vocab) {
  const auto text = read_small_file(path);
  if (!text) return text.error();
  auto tokens = parse_tokens(*text);
  if (!tokens) return error{error_kind::invalid_argument, path.string() + ": " + tokens.error().message, "tokens-file"};
  if (const auto legal = check_tokens(*tokens, vocab); !legal) return legal.error();
  return tokens;
}

}  // namespace

result<void> logits(const logits_command& what) {
  const auto model = open_model(what.model.path, what.model.adapters);
  if (!model) return model.error();
  const auto tokens = read_tokens(what.tokens_file, model->info.vocab);
  if (!tokens) return tokens.error();
  engine_wish wish = wish_of(what.model);
  wish.max_tick_tokens = what.chunk_tokens;
  const auto engine = open_engine(*model, wish);
  if (!engine) return engine.error();

  one_sequence sequence(**engine, {});
  if (!what.state_in.empty()) {
    const auto state = read_state(what.state_in, model->info, what.model.allow_nonfinite);
    if (!state) return state.error();
    if (const auto set = sequence.set_state({model->info.state, std::as_bytes(std::span(*state))}); !set)
      return set.error();
  }
  std::ofstream out(what.out, std::ios::binary | std::ios::trunc);
  for (std::size_t at = 0; out && at < tokens->size();) {
    const auto piece = sequence.next_piece(*tokens, at, what.chunk_tokens);
    const auto fed = sequence.feed(piece, tokens->data() + at, false, engine::logits_wanted::all);
    if (!fed) return fed.error();
    const auto bytes = std::as_bytes(std::span((*fed)->logits));
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    at += piece.tokens;
  }
  out.close();
  if (out.fail()) return error{error_kind::io, "cannot write " + what.out.string(), "out"};
  if (what.state_out.empty()) return {};
  const auto state = sequence.state();
  if (!state) return state.error();
  return write_state(what.state_out, state->view());
}

}  // namespace skein::cli
