#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

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

/// Opens a checkpoint and reads its sizes. A path that is no file is tried with ".pth" appended; an empty one means the
/// demo model. Errors: missing_file without a demo model, those of checkpoint::open and describe.
[[nodiscard]] result<opened_model> open_model(const std::filesystem::path& path);

/// The vocabulary named by `given` (a file, or "bytes"). When that is empty: NAME.vocab.txt beside a model NAME.pth,
/// else bytes for a model of 256 tokens, else rwkv_vocab_v20230424.txt beside the model or in one of data_folders().
/// Errors: missing_file when there is none, those of vocabulary::load, conflict when it has more tokens than the model.
[[nodiscard]] result<std::shared_ptr<const tokenizer::vocabulary>> open_vocabulary(const std::string& given,
                                                                                   const opened_model& model);
/// The same without a model: only the data folders are searched.
[[nodiscard]] result<std::shared_ptr<const tokenizer::vocabulary>> open_vocabulary(const std::string& given);

struct device_choice;
struct model_options;

/// What an engine is asked to be; texts as on the command line.
struct engine_wish {
  std::string device = "auto";
  std::string dtype = "auto";
  std::uint32_t threads = 0;
  std::string state_dtype = "fp32";
  std::string invariance = "default";
  std::uint32_t slots = 1;
  std::uint32_t max_tick_tokens = 512;
  sampling::row_limits row_max = {};
  std::uint64_t moving_bytes_max = 256ull << 20;  ///< of states on their way between a GPU and the host
  std::string model_identity = {};                ///< for states that leave the process; empty: unknown
  bool refuse_nonfinite = false;                  ///< read all tensors first; refuse NaN and infinity
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};  ///< also told how far the weights are
};

/// What the options that all commands share ask for.
[[nodiscard]] engine_wish wish_of(const model_options& model);

/// Builds the engine, with a progress bar on stderr when that is a terminal. Errors: those of choose_device,
/// bad_file for a tensor
/// that is refused, invalid_argument for a dtype that the device does not have or an unknown invariance, those of
/// make_cpu_engine and make_gpu_engine.
[[nodiscard]] result<std::unique_ptr<engine::engine>> open_engine(const opened_model& model, const engine_wish& wish);

/// The memory that such an engine will take on the device that was chosen, found without taking any. Errors: as above,
/// without those of memory and of tensors that are refused.
[[nodiscard]] result<memory_plan> plan_engine(const opened_model& model, const device_choice& device,
                                              const engine_wish& wish);

}  // namespace skein::cli
