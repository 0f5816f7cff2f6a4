#include <algorithm>
#include <bit>
#include <fstream>

#include "app/open_model.hpp"
#include "app/small_file.hpp"
#include "cli/commands.hpp"
#include "cli/one_sequence.hpp"
#include "cli/output/output_file.hpp"
#include "cli/state_file.hpp"
#include "cli/token_list.hpp"
#include "model/adapters/adapter_choice.hpp"

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

namespace fs = std::filesystem;

bool is_same(const fs::path& a, const fs::path& b) {
  std::error_code none;
  if (fs::equivalent(a, b, none)) return true;
  return fs::weakly_canonical(behind_links(a), none) == fs::weakly_canonical(behind_links(b), none);
}

/// Whether the output would replace that input, or a file in the folder that is the input.
bool would_replace(const fs::path& output, const fs::path& input) {
  std::error_code none;
  if (fs::exists(output, none) && !fs::is_regular_file(output, none)) return false;  // a pipe or a device
  if (!fs::is_directory(input, none)) return is_same(output, input);
  return fs::exists(output, none) && is_same(fs::weakly_canonical(behind_links(output), none).parent_path(), input);
}

/// Errors: invalid_argument for an output that is an input or the other output. Only a state may be replaced by the
/// state that follows it.
result<void> check_outputs(const logits_command& what, const fs::path& model) {
  struct input {
    fs::path path;
    const char* name;
  };
  std::vector<input> inputs{{model, "the model"}, {what.tokens_file, "the file of the tokens"}};
  for (const auto& text : what.model.adapters)
    if (auto adapter = model::parse_adapter(text)) inputs.push_back({std::move(adapter->path), "an adapter"});
  const auto check_one = [&](const char* name, const fs::path& output) -> result<void> {
    if (const auto usable = check_output(output, special_files::write_in_place); !usable) return usable.error();
    for (const auto& each : inputs)
      if (would_replace(output, each.path))
        return error{error_kind::invalid_argument,
                     std::string(name) + ": " + output.string() + " belongs to " + each.name + "; give another file",
                     name};
    return {};
  };
  if (!what.state_out.empty())
    if (const auto good = check_one("state-out", what.state_out); !good) return good.error();
  if (!what.state_in.empty()) inputs.push_back({what.state_in, "the state to begin with"});
  if (!what.state_out.empty()) inputs.push_back({what.state_out, "the state to write"});
  return check_one("out", what.out);
}

}  // namespace

result<void> logits(const logits_command& what) {
  const auto model = open_model(what.model.path, what.model.adapters);
  if (!model) return model.error();
  if (const auto good = check_outputs(what, model->file.path()); !good) return good.error();
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
  auto logits_file = output_file::create(what.out, special_files::write_in_place);
  if (!logits_file) return logits_file.error();
  std::ofstream out(logits_file->path(), std::ios::binary | std::ios::trunc);
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
  if (what.state_out.empty()) return logits_file->commit();

  const auto state = sequence.state();
  if (!state) return state.error();
  auto state_file = output_file::create(what.state_out, special_files::write_in_place);
  if (!state_file) return state_file.error();
  if (const auto written = write_state(state_file->path(), state->view()); !written) return written.error();
  if (const auto placed = state_file->commit(); !placed) return placed.error();
  return logits_file->commit();
}

}  // namespace skein::cli
