#include "cli/open_model.hpp"

#include <cstdlib>
#include <optional>
#include <vector>

#include "cli/progress_bar.hpp"
#include "engine/cpu_engine.hpp"

namespace skein::cli {
namespace {

constexpr const char* world_file = "rwkv_vocab_v20230424.txt";
constexpr std::uint32_t byte_vocab = 256;

bool is_file(const std::filesystem::path& path) {
  std::error_code none;
  return std::filesystem::is_regular_file(path, none);
}

std::vector<std::filesystem::path> data_folders() {
  std::vector<std::filesystem::path> folders;
  if (const char* given = std::getenv("SKEIN_DATA_DIR")) folders.emplace_back(given);
  folders.emplace_back("/usr/share/skein");
  return folders;
}

result<std::shared_ptr<const tokenizer::vocabulary>> find_world(const std::vector<std::filesystem::path>& folders) {
  std::string searched;
  for (const auto& folder : folders) {
    if (is_file(folder / world_file)) return tokenizer::vocabulary::load(folder / world_file);
    searched += (searched.empty() ? "" : ", ") + (folder.empty() ? std::string(".") : folder.string());
  }
  return error{
      error_kind::missing_file,
      std::string("no vocabulary: give --vocab FILE or --vocab bytes (no ") + world_file + " in " + searched + ')',
      "vocab"};
}

result<std::shared_ptr<const tokenizer::vocabulary>> named(const std::string& given) {
  if (given == "bytes") return tokenizer::vocabulary::bytes();
  return tokenizer::vocabulary::load(given);
}

result<std::optional<dtype>> matrix_type(const std::string& name) {
  if (name == "auto") return std::optional<dtype>();
  for (const auto type : {dtype::f32, dtype::bf16, dtype::f16})
    if (name == to_string(type)) return std::optional(type);
  return error{error_kind::invalid_argument, "the cpu engine keeps matrices in fp32, bf16 or fp16, not " + name,
               "dtype"};
}

}  // namespace

result<opened_model> open_model(const std::filesystem::path& path) {
  std::filesystem::path with_ending = path;
  with_ending += ".pth";
  auto file = model::checkpoint::open(!is_file(path) && is_file(with_ending) ? with_ending : path);
  if (!file) return file.error();
  auto info = model::describe(*file);
  if (!info) return info.error();
  return opened_model{std::move(*file), std::move(*info)};
}

result<std::shared_ptr<const tokenizer::vocabulary>> open_vocabulary(const std::string& given) {
  return given.empty() ? find_world(data_folders()) : named(given);
}

result<std::shared_ptr<const tokenizer::vocabulary>> open_vocabulary(const std::string& given,
                                                                     const opened_model& model) {
  auto folders = data_folders();
  folders.insert(folders.begin(), model.file.path().parent_path());
  auto vocabulary = !given.empty()                   ? named(given)
                    : model.info.vocab == byte_vocab ? tokenizer::vocabulary::bytes()
                                                     : find_world(folders);
  if (vocabulary && (*vocabulary)->size() > model.info.vocab)
    return error{error_kind::conflict,
                 "vocabulary " + (*vocabulary)->name() + " has " + std::to_string((*vocabulary)->size()) +
                     " tokens, the model " + std::to_string(model.info.vocab),
                 "vocab"};
  return vocabulary;
}

result<std::unique_ptr<engine::engine>> open_engine(const opened_model& model, const engine_wish& wish) {
  if (wish.device != "auto" && wish.device != "cpu")
    return error{error_kind::unavailable, "no device " + wish.device + ": this build has the cpu engine only",
                 "device"};
  if (wish.state_dtype != "fp32")
    return error{error_kind::invalid_argument, "the cpu engine keeps states in fp32, not " + wish.state_dtype,
                 "state-dtype"};
  const auto type = matrix_type(wish.dtype);
  if (!type) return type.error();
  progress_bar bar("loading");
  engine::cpu_engine_options options;
  options.matrix_type = *type;
  options.slots = wish.slots;
  options.max_tick_tokens = wish.max_tick_tokens;
  options.max_tick_rows = wish.slots;
  options.threads = wish.threads;
  options.progress = {&progress_bar::report, &bar};
  options.model_identity = wish.model_identity;
  return engine::make_cpu_engine(model.file, model.info, options);
}

}  // namespace skein::cli
