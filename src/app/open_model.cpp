#include "app/open_model.hpp"

#include <optional>
#include <vector>

#include "app/data_files.hpp"
#include "app/device_choice.hpp"
#include "app/model_options.hpp"
#include "app/progress_bar.hpp"
#include "base/log/log.hpp"
#include "engine/gpu/gpu_engine.hpp"
#include "engine/stages/cpu_engine.hpp"
#include "kernels/weights/unmatched_patterns.hpp"
#include "model/files/file_bytes.hpp"
#include "model/nonfinite.hpp"
#include "model/repository/tokenizer_json.hpp"
#include "model/stored_formats.hpp"

namespace skein::cli {
namespace {

constexpr const char* world_file = "rwkv_vocab_v20230424.txt";
constexpr std::string_view world_hash = "42c0cd893e5fc3264f294ec34cf1519f";  ///< of that file, as vocabulary::hash()
constexpr std::uint32_t byte_vocab = 256;
constexpr std::uint32_t pile_vocab = 50277;  // of RWKV-4 and 5 models trained on the Pile

result<std::shared_ptr<const tokenizer::vocabulary>> find_world(const std::vector<std::filesystem::path>& folders) {
  std::string searched;
  for (const auto& folder : folders) {
    if (is_file(folder / world_file)) return tokenizer::vocabulary::load(folder / world_file);
    searched += (searched.empty() ? "" : ", ") + (folder.empty() ? std::string(".") : folder.string());
  }
  return error{error_kind::missing_file,
               std::string("vocab: no vocabulary found; pass --vocab FILE or --vocab bytes (no NAME.vocab.txt beside a "
                           "model NAME, no ") +
                   world_file + " in " + searched + ')',
               "vocab"};
}

/// The vocabulary file in the folder of a model: World's, or the only one of another date; empty: none.
std::filesystem::path vocabulary_in(const std::filesystem::path& folder) {
  if (is_file(folder / world_file)) return folder / world_file;
  std::filesystem::path found;
  std::error_code ec;
  for (auto at = std::filesystem::directory_iterator(folder, ec); !ec && at != std::filesystem::directory_iterator();
       at.increment(ec)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with("rwkv_vocab_v") || !name.ends_with(".txt") || !is_file(at->path())) continue;
    if (!found.empty()) return {};
    found = at->path();
  }
  return found;
}

/// The vocabulary that `tokenizer_json` lists, if it is World's. Errors: those of read_tokenizer_json, unsupported for
/// another vocabulary.
result<std::shared_ptr<const tokenizer::vocabulary>> world_of(const std::filesystem::path& tokenizer_json) {
  const auto tokens = model::read_tokenizer_json(tokenizer_json);
  if (!tokens) return tokens.error();
  std::string lines;
  for (const auto& [id, bytes] : *tokens)
    if (id != 0) model::append_vocabulary_line(id, bytes, lines);  // id 0 is the end of text
  auto listed = tokenizer::vocabulary::parse_whole(lines, tokenizer_json.string());
  if (listed && (*listed)->hash() == world_hash) return listed;
  return error{error_kind::unsupported,
               tokenizer_json.string() + ": is not the World vocabulary; give --vocab with a file of its tokens",
               "vocab"};
}

/// The vocabulary of a folder's model; nullptr if the folder has none.
result<std::shared_ptr<const tokenizer::vocabulary>> repository_vocabulary(const std::filesystem::path& folder) {
  if (const auto file = vocabulary_in(folder); !file.empty()) return tokenizer::vocabulary::load(file);
  if (is_file(folder / "tokenizer.json")) return world_of(folder / "tokenizer.json");
  return std::shared_ptr<const tokenizer::vocabulary>();
}

result<std::shared_ptr<const tokenizer::vocabulary>> named(const std::string& given) {
  if (given == "bytes") return tokenizer::vocabulary::bytes();
  return tokenizer::vocabulary::load(given);
}

/// The formats of a file with quantised matrices, which a wish cannot change.
result<kernels::weight_plan> formats_in(const model::checkpoint& file, const engine_wish& wish, dtype stored) {
  const bool by_tensor = file.dtype() == "auto";
  auto kept = by_tensor ? model::formats_kept(file) : model::stored_formats{};
  const std::string name = kept.name.empty() ? std::string(file.dtype()) : kept.name;
  const bool other_dtype = wish.dtype != "auto" && wish.dtype != name;
  if (other_dtype || !wish.weight_format.empty()) {
    const std::string field = other_dtype ? "dtype" : "weight_format", accepted = other_dtype ? "auto" : "no patterns";
    return error{error_kind::invalid_argument,
                 field + ": " + file.path().string() + " is quantised already (" + name + "); accepted: " + accepted +
                     ". For another format, use the model from which it was converted",
                 field};
  }
  if (by_tensor) return kernels::weight_plan::of_file(name, std::move(kept.rules), "", stored);
  return kernels::weight_plan::parse(name, file.weight_format(), stored);
}

/// The formats that a wish names, for a checkpoint with matrices of this type; auto: those of the file.
result<kernels::weight_plan> formats_of(const model::checkpoint& file, const engine_wish& wish, dtype stored) {
  if (wish.dtype == "auto")
    if (auto in_file = model::formats_in_file(file); !in_file.rules.empty())
      return kernels::weight_plan::of_file(std::move(in_file.name), std::move(in_file.rules), wish.weight_format,
                                           stored);
  const std::string name = wish.dtype == "auto" ? std::string(to_string(stored)) : wish.dtype;
  return kernels::weight_plan::parse(name, wish.weight_format, stored);
}

result<kernels::weight_plan> wished_formats(const opened_model& model, const engine_wish& wish, dtype stored) {
  const bool is_quantised = !model.file.dtype().empty();
  auto formats = is_quantised ? formats_in(model.file, wish, stored) : formats_of(model.file, wish, stored);
  if (!formats || wish.weight_format.empty() || !wish.refuse_unmatched_patterns) return formats;
  const auto weights = model::bind(model.file, model.info);
  if (!weights) return weights.error();
  if (const auto matched = kernels::refuse_unmatched_patterns(*weights, *formats); !matched) return matched.error();
  return formats;
}

result<kernels::gpu::invariance> invariance_of(const std::string& name) {
  using kernels::gpu::invariance;
  if (name == "default") return invariance::standard;
  if (name == "strict") return invariance::strict;
  if (name == "fast") return invariance::fast;
  return error{error_kind::invalid_argument, "invariance: " + name + " is unknown; accepted: default, strict, fast",
               "invariance"};
}

result<engine::cpu_engine_options> cpu_options(const engine_wish& wish, const opened_model& model) {
  const dtype stored = engine::stored_type(model.info);
  auto formats = wished_formats(model, wish, stored);
  if (!formats) return formats.error();
  if (wish.state_dtype != "fp32")
    return error{error_kind::invalid_argument,
                 "state-dtype: " + wish.state_dtype + " is not supported on the CPU; accepted: fp32", "state-dtype"};
  engine::cpu_engine_options options;
  options.formats = std::move(*formats);
  options.slots = wish.slots;
  options.max_tick_tokens = wish.max_tick_tokens;
  options.max_tick_rows = wish.slots;
  options.threads = wish.threads;
  options.model_identity = wish.model_identity;
  return options;
}

result<engine::gpu_engine_options> gpu_options(const device_choice& device, const engine_wish& wish,
                                               const opened_model& model) {
  const auto formats = wished_formats(model, wish, dtype::f16);
  if (!formats) return formats.error();
  const auto invariance = invariance_of(wish.invariance);
  if (!invariance) return invariance.error();
  engine::gpu_engine_options options;
  options.invariance = *invariance;
  options.row_max = wish.row_max;
  options.moving_bytes_max = wish.moving_bytes_max;
  options.device = device.index;
  const auto named = kernels::parse_weight_format(wish.dtype);
  if (named && !named->quantised()) options.matrix_type = formats->base();
  if (formats->quantised()) options.formats = *formats;
  options.state_type = wish.state_dtype == "fp16" ? dtype::f16 : dtype::f32;
  options.slots = wish.slots;
  options.max_tick_tokens = wish.max_tick_tokens;
  options.max_tick_rows = wish.slots;
  options.model_identity = wish.model_identity;
  return options;
}

dtype activation_type(const engine::gpu_engine_options& options, const opened_model& model) {
  return options.matrix_type.value_or(model.info.matrix_type == dtype::bf16 ? dtype::bf16 : dtype::f16);
}

result<tuning_key> key_of(const device_choice& device, const opened_model& model,
                          const engine::gpu_engine_options& options) {
  const auto properties = device.gpu->describe_device(device.index);
  if (!properties) return properties.error();
  return tuning_key{properties->name, options.formats ? options.formats->name()
                                                      : std::string(to_string(activation_type(options, model)))};
}

/// A file that cannot be used is no reason not to load the model.
kernels::gpu::gpu_tuning tuning_of(const device_choice& device, const opened_model& model,
                                   const engine::gpu_engine_options& options) {
  const auto path = tuning_file_of(model.file);
  if (!is_file(path)) return {};
  const auto key = key_of(device, model, options);
  const auto tuning = key ? read_tuning(path, *key) : key.error();
  if (!tuning) {
    log::warning("the tuning file is not used", {{"why", tuning.error().message}});
    return {};
  }
  if (*tuning != kernels::gpu::gpu_tuning{})
    log::info("the model is tuned for this GPU", {{"file", path.string()}, {"weights", key->weights}});
  return *tuning;
}

result<std::unique_ptr<engine::engine>> open_on(const device_choice& device, const opened_model& model,
                                                const engine_wish& wish, const kernels::load_progress& progress) {
  if (device.gpu) {
    auto options = gpu_options(device, wish, model);
    if (!options) return options.error();
    options->progress = progress;
    options->tuning = wish.tuning ? *wish.tuning : tuning_of(device, model, *options);
    return engine::make_gpu_engine(*device.gpu, model.file, model.info, *options);
  }
  auto options = cpu_options(wish, model);
  if (!options) return options.error();
  options->progress = progress;
  return engine::make_cpu_engine(model.file, model.info, *options);
}

}  // namespace

result<opened_model> open_model(const std::filesystem::path& path, std::span<const std::string> adapters) {
  std::vector<model::adapter_choice> choices;
  for (const auto& text : adapters) {
    auto choice = model::parse_adapter(text);
    if (!choice) return choice.error();
    choices.push_back(std::move(*choice));
  }
  std::filesystem::path chosen = path.empty() ? demo_model() : path;
  if (chosen.empty())
    return error{error_kind::missing_file, "model: missing; pass --model PATH (the demo model is not installed)",
                 "model"};
  std::error_code ignored;
  if (auto with_ending = chosen;
      !is_file(chosen) && !std::filesystem::is_directory(chosen, ignored) && is_file(with_ending += ".pth"))
    chosen = with_ending;
  auto file = model::checkpoint::open(chosen, choices);
  if (!file) return file.error();
  auto info = model::describe(*file);
  if (!info) return info.error();
  if (const auto complete = model::bind(*file, *info); !complete) return complete.error();
  return opened_model{std::move(*file), std::move(*info)};
}

engine_wish wish_of(const model_options& model) {
  engine_wish wish{model.device, model.dtype, model.weight_format, model.threads, model.state_dtype, model.invariance};
  wish.refuse_nonfinite = !model.allow_nonfinite;
  return wish;
}

result<std::shared_ptr<const tokenizer::vocabulary>> open_vocabulary(const std::string& given) {
  return given.empty() ? find_world(data_folders()) : named(given);
}

result<std::shared_ptr<const tokenizer::vocabulary>> open_vocabulary(const std::string& given,
                                                                     const opened_model& model) {
  const auto& path = model.file.path();
  auto folders = data_folders();
  folders.insert(folders.begin(), path.parent_path());
  const auto own = path.parent_path() / (model.file.name() + ".vocab.txt");
  auto vocabulary = [&]() -> result<std::shared_ptr<const tokenizer::vocabulary>> {
    if (!given.empty()) return named(given);
    if (is_file(own)) return tokenizer::vocabulary::load(own);
    if (const auto text = model.file.vocabulary(); !text.empty())
      return tokenizer::vocabulary::parse_whole(text, path.string());
    if (const auto foreign = model.file.foreign_vocabulary(); !foreign.empty())
      return error{error_kind::unsupported,
                   "vocab: the tokenizer " + std::string(foreign) + " inside " + path.string() +
                       " is not supported; accepted: rwkv; pass --vocab FILE or --vocab bytes",
                   "vocab"};
    if (model.info.vocab == byte_vocab) return tokenizer::vocabulary::bytes();
    if (model.file.is_folder())
      if (auto inside = repository_vocabulary(path); !inside || *inside) return inside;
    if (model.info.vocab == pile_vocab)
      return error{
          error_kind::unsupported,
          "vocab: " + path.string() +
              " has the 50277 tokens of the Pile's 20B tokenizer, which is not supported; use a model with the "
              "World vocabulary, or pass --vocab FILE with the tokens",
          "vocab"};
    auto world = find_world(folders);
    const auto beside = path.parent_path() / "tokenizer.json";
    return !world && is_file(beside) ? world_of(beside) : world;
  }();
  if (vocabulary && (*vocabulary)->size() > model.info.vocab)
    return error{error_kind::conflict,
                 "vocabulary " + (*vocabulary)->name() + " has " + std::to_string((*vocabulary)->size()) +
                     " tokens, more than the model (" + std::to_string(model.info.vocab) + ')',
                 "vocab"};
  if (vocabulary && (*vocabulary)->size() < model.info.vocab / 2)
    log::warning("the vocabulary may not be the model's: it has far fewer tokens",
                 {{"vocabulary", (*vocabulary)->name()},
                  {"tokens", static_cast<std::uint64_t>((*vocabulary)->size())},
                  {"model_tokens", model.info.vocab}});
  return vocabulary;
}

result<std::unique_ptr<engine::engine>> open_engine(const opened_model& model, const engine_wish& wish) {
  const auto device = choose_device(wish.device);
  if (!device) return device.error();
  if (const auto formats = wished_formats(model, wish, dtype::f16); !formats) return formats.error();
  if (wish.refuse_nonfinite)
    if (const auto found = model::identify(model.file, "").nonfinite; !found.empty()) {
      if (const auto same = model.file.check_unchanged(); !same) return same.error();
      return model::nonfinite_tensor(model.file, found);
    }
  struct watchers {
    progress_bar bar{"loading"};
    const engine_wish& wish;
  } watching{.wish = wish};
  const kernels::load_progress progress{[](void* to, std::uint64_t done, std::uint64_t total) {
                                          auto& all = *static_cast<watchers*>(to);
                                          all.bar.show(done, total);
                                          if (all.wish.progress) all.wish.progress(done, total);
                                        },
                                        &watching};
  auto engine = open_on(*device, model, wish, progress);
  if (const auto same = model.file.check_unchanged(); !same) return same.error();
  return engine;
}

result<tuning_key> tuning_key_of(const opened_model& model, const device_choice& device, const engine_wish& wish) {
  const auto options = gpu_options(device, wish, model);
  if (!options) return options.error();
  return key_of(device, model, *options);
}

result<kernels::gpu::tile_times> measure_tiles(const opened_model& model, const device_choice& device,
                                               const engine_wish& wish) {
  const auto options = gpu_options(device, wish, model);
  if (!options) return options.error();
  const auto properties = device.gpu->describe_device(device.index);
  if (!properties) return properties.error();
  const dtype type = activation_type(*options, model);
  using kernels::gpu::element;
  return device.gpu->measure_tiles(device.index, type == dtype::f32                            ? element::f32
                                                 : type == dtype::bf16 && properties->has_bf16 ? element::bf16
                                                                                               : element::f16);
}

result<memory_plan> plan_engine(const opened_model& model, const device_choice& device, const engine_wish& wish) {
  if (device.gpu) {
    const auto options = gpu_options(device, wish, model);
    if (!options) return options.error();
    return engine::plan_gpu_engine(*device.gpu, model.file, model.info, *options);
  }
  const auto options = cpu_options(wish, model);
  if (!options) return options.error();
  return engine::plan_cpu_engine(model.file, model.info, *options);
}

}  // namespace skein::cli
