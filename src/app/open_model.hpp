#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "app/tuning/tuning_file.hpp"
#include "base/result.hpp"
#include "engine/engine.hpp"
#include "model/checkpoint.hpp"
#include "model/model_info.hpp"
#include "tokenizer/vocabulary.hpp"

namespace skein::cli {

struct opened_model {
  model::checkpoint file;
  model::model_info info;
};

/// Opens a checkpoint, a file or the folder of a repository, and reads its sizes. If the path is neither, tries it with
/// ".pth" appended; an empty path means the demo model. Errors: missing_file without a demo model, those of
/// checkpoint::open, describe and bind. `adapters`: FILE or FILE:SCALE each, merged in order.
[[nodiscard]] result<opened_model> open_model(const std::filesystem::path& path,
                                              std::span<const std::string> adapters = {});

/// The vocabulary named by `given` (a file, or "bytes"). If that is empty: NAME.vocab.txt next to a model NAME.pth,
/// else the one inside the model's file, else bytes for a model of 256 tokens, else rwkv_vocab_v*.txt or tokenizer.json
/// in the model's folder, else rwkv_vocab_v20230424.txt next to the model or in one of data_folders(), else
/// tokenizer.json next to the model. Errors: missing_file if there is none, those of vocabulary::load, unsupported if
/// the folder has a tokenizer.json, or the file a tokenizer, of another vocabulary, conflict if it has more tokens than
/// the model.
[[nodiscard]] result<std::shared_ptr<const tokenizer::vocabulary>> open_vocabulary(const std::string& given,
                                                                                   const opened_model& model);
/// The same without a model; searches only the data folders.
[[nodiscard]] result<std::shared_ptr<const tokenizer::vocabulary>> open_vocabulary(const std::string& given);

struct device_choice;
struct model_options;

/// Options of an engine; texts as on the command line.
struct engine_wish {
  std::string device = "auto";
  std::string dtype = "auto";
  std::string weight_format = {};  ///< formats of single matrices (kernels::weight_plan)
  std::uint32_t threads = 0;
  std::string state_dtype = "fp32";
  std::string invariance = "default";
  std::uint32_t slots = 1;
  std::uint32_t max_tick_tokens = 512;
  sampling::row_limits row_max = {};
  std::uint64_t moving_bytes_max = 256ull << 20;        ///< of states in transfer between a GPU and the host
  std::string model_identity = {};                      ///< label of states that are stored or exported; empty: unknown
  std::optional<kernels::gpu::gpu_tuning> tuning = {};  ///< none: as in the tuning file of the model, if there is one
  bool refuse_unmatched_patterns = true;                ///< those of weight_format that match no matrix of the model
  bool refuse_nonfinite = false;                        ///< read all tensors first; reject NaN and infinity
  std::function<void(std::uint64_t done, std::uint64_t total)> progress =
      {};  ///< called during the load of the weights
};

/// The engine options that all commands share.
[[nodiscard]] engine_wish wish_of(const model_options& model);

/// Under which the tuning of such an engine is kept. Errors: as for open_engine.
[[nodiscard]] result<tuning_key> tuning_key_of(const opened_model& model, const device_choice& device,
                                               const engine_wish& wish);
/// kernels::gpu::measure_tiles for the type of that engine's activations.
[[nodiscard]] result<kernels::gpu::tile_times> measure_tiles(const opened_model& model, const device_choice& device,
                                                             const engine_wish& wish);

/// Builds the engine, with a progress bar on stderr if that is a terminal. Errors: those of choose_device, bad_file for
/// a rejected tensor, io if the file changed meanwhile, invalid_argument for a dtype that the device does not support
/// or an unknown invariance, those of make_cpu_engine and make_gpu_engine.
[[nodiscard]] result<std::unique_ptr<engine::engine>> open_engine(const opened_model& model, const engine_wish& wish);

/// The memory that such an engine would use on the chosen device; allocates none. Errors: as for open_engine, except
/// those for memory and rejected tensors.
[[nodiscard]] result<memory_plan> plan_engine(const opened_model& model, const device_choice& device,
                                              const engine_wish& wish);

}  // namespace skein::cli
