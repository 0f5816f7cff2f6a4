#include "model/adapters/adapter_file.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "model/adapters/peft_config.hpp"
#include "model/files/checkpoint_limits.hpp"

namespace skein::model {
namespace {

/// Ranks of known adapters are at most 512.
constexpr std::int64_t adapter_rank_max = 2048;

enum class piece : std::uint8_t { down, up, columns, rows, start_down, start_up, block, bat_block };

struct known_ending {
  std::string_view text;
  piece what;
};
constexpr known_ending piece_endings[] = {{".lora_A", piece::down},
                                          {".lora_B", piece::up},
                                          {".lora_M", piece::columns},
                                          {".lora_magnitude_vector", piece::rows},
                                          {".init_lora_A", piece::start_down},
                                          {".init_lora_B", piece::start_up},
                                          {".bone", piece::block},
                                          {".disha", piece::block},
                                          {".miss_block", piece::bat_block},
                                          {".bone_block", piece::bat_block}};

/// Removes what trainers and PEFT put before and after a name.
std::string_view bare(std::string_view name) {
  constexpr std::string_view before[] = {"base_model.model.", "module.", "_orig_mod.",
                                         "_forward_module.",  "rwkv7.",  "model."};
  for (bool any = true; any;) {
    any = false;
    for (const auto prefix : before)
      if (name.starts_with(prefix)) name.remove_prefix(prefix.size()), any = true;
  }
  return name;
}

std::string_view without_ending(std::string_view name, std::string_view ending) {
  return name.ends_with(ending) ? name.substr(0, name.size() - ending.size()) : name;
}

/// The tensors of one matrix.
struct matrix_pieces {
  const found_tensor *down = nullptr, *up = nullptr, *columns = nullptr, *rows = nullptr, *start_down = nullptr,
                     *start_up = nullptr, *block = nullptr, *bat_block = nullptr;

  const found_tensor*& at(piece which) {
    switch (which) {
      case piece::down: return down;
      case piece::up: return up;
      case piece::columns: return columns;
      case piece::rows: return rows;
      case piece::start_down: return start_down;
      case piece::start_up: return start_up;
      case piece::block: return block;
      case piece::bat_block: break;
    }
    return bat_block;
  }
};

std::string shape_of(const tensor_view& view) {
  std::string text;
  for (const auto extent : view.shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return '(' + text + ')';
}

/// A view without dimensions of 1, to compare vectors.
tensor_view flat(const tensor_view& view) {
  tensor_view made{view.data, view.type, {}, {}};
  for (std::size_t d = 0; d < view.shape.size(); ++d) {
    if (view.shape[d] == 1) continue;
    made.shape.push_back(view.shape[d]);
    made.stride.push_back(view.stride[d]);
  }
  if (made.shape.empty()) made.shape = {1}, made.stride = {1};
  return made;
}

/// Sorts the tensors of one adapter into parts.
class adapter_reader {
 public:
  adapter_reader(const adapter_choice& choice, const std::optional<peft_config>& config, adapter_file& into)
      : choice_(choice), config_(config), into_(into) {}

  result<void> run() {
    std::map<std::string, matrix_pieces> matrices;
    for (const found_tensor& tensor : into_.memory.tensors) {
      if (tensor.view.type > dtype::f64)
        return misfit(tensor.name,
                      "has type " + std::string(to_string(tensor.view.type)) + ", expected a floating-point type");
      const std::string_view name = bare(tensor.name);
      const std::string_view stem = without_ending(without_ending(name, ".weight"), ".default");
      const auto known = std::ranges::find_if(piece_endings, [&](const auto& e) { return stem.ends_with(e.text); });
      if (known == std::end(piece_endings)) {
        into_.parts.push_back({std::string(name), tensor.name, adapter_kind::replacement, 1, tensor.view, {}, {}});
        continue;
      }
      const std::string target(without_ending(stem, known->text));
      const found_tensor*& place = matrices[target].at(known->what);
      if (place) return misfit(tensor.name, "is there twice");
      place = &tensor;
    }
    for (const auto& [target, pieces] : matrices)
      if (const auto added = add(target, pieces); !added) return added.error();
    return {};
  }

 private:
  [[nodiscard]] error misfit(const std::string& name, const std::string& what) const {
    return {error_kind::bad_file, choice_.path.string() + ": tensor " + printable(name) + " " + what, {}};
  }

  result<void> add(const std::string& target, const matrix_pieces& of) {
    const bool any_lora = of.down || of.up;
    if (any_lora || of.columns || of.rows)
      if (const auto added = add_lora(target, of); !added) return added.error();
    if (of.start_down || of.start_up) {
      const auto added = add_pair(target, of.start_down, of.start_up, ".init_lora_A", ".init_lora_B");
      if (!added) return added.error();
      into_.parts.back().kind = adapter_kind::pissa_start;
    }
    for (const found_tensor* block : {of.block, of.bat_block})
      if (block)
        if (const auto added = add_block(target, *block, block == of.bat_block); !added) return added.error();
    return {};
  }

  /// A part with both factors of a product.
  result<void> add_pair(const std::string& target, const found_tensor* down, const found_tensor* up,
                        std::string_view name_down, std::string_view name_up) {
    if (!down || !up) return misfit(target + std::string(down ? name_up : name_down), "is missing");
    const auto &a = down->view, &b = up->view;
    if (a.shape.size() != 2 || b.shape.size() != 2 || a.shape[0] != b.shape[1])
      return misfit(down->name, "has shape " + shape_of(a) + " and " + printable(up->name) + " " + shape_of(b) +
                                    "; expected (r, inputs) and (outputs, r)");
    if (a.shape[0] > adapter_rank_max)
      return misfit(down->name,
                    "has shape " + shape_of(a) + "; ranks may be " + std::to_string(adapter_rank_max) + " at most");
    into_.parts.push_back({target, down->name, adapter_kind::lora, 1, a, b, {}});
    return {};
  }

  result<void> add_lora(const std::string& target, const matrix_pieces& of) {
    if (const auto added = add_pair(target, of.down, of.up, ".lora_A", ".lora_B"); !added) return added.error();
    adapter_part& part = into_.parts.back();
    const auto rank = static_cast<double>(part.first.shape[0]);
    if (config_ && config_->type != peft_config::method::lora)
      return misfit(part.name, "is of LoRA, but adapter_config.json names another peft_type");
    if (config_ && config_->rank != 0 && !config_->rank_varies && config_->rank != part.first.shape[0])
      return misfit(part.name, "has rank " + std::to_string(part.first.shape[0]) + ", but adapter_config.json says " +
                                   std::to_string(config_->rank));
    if (choice_.scale)
      part.scale = *choice_.scale;
    else if (config_)
      part.scale = config_->alpha / (config_->root_of_rank ? std::sqrt(rank) : rank);
    else
      part.scale = std::numeric_limits<double>::quiet_NaN();  // until all adapters are known
    if (of.columns && of.rows) return misfit(of.rows->name, "is there beside " + printable(of.columns->name));
    if (config_ && config_->dora && !of.rows) return misfit(target + ".lora_magnitude_vector", "is missing");
    if (const found_tensor* norms = of.columns ? of.columns : of.rows) {
      part.kind = of.columns ? adapter_kind::dora_columns : adapter_kind::dora_rows;
      part.third = flat(norms->view);
      const std::int64_t expected = of.columns ? part.first.shape[1] : part.second.shape[0];
      if (part.third.shape != std::vector{expected})
        return misfit(norms->name,
                      "has shape " + shape_of(norms->view) + ", expected (" + std::to_string(expected) + ")");
    }
    return {};
  }

  result<void> add_block(const std::string& target, const found_tensor& block, bool by_rows) {
    const auto& shape = block.view.shape;
    const bool square = shape.size() == 3 && shape[1] == shape[2];
    if (!square && shape.size() != 2)
      return misfit(block.name, "has shape " + shape_of(block.view) + ", expected (n, r, r) or (r, outputs)");
    if ((square ? shape[1] : shape[0]) > adapter_rank_max)
      return misfit(block.name, "has shape " + shape_of(block.view) + "; ranks may be " +
                                    std::to_string(adapter_rank_max) + " at most");
    const adapter_kind kind = !square   ? adapter_kind::miss
                              : by_rows ? adapter_kind::bone_rows
                                        : adapter_kind::bone_columns;
    adapter_part part{target, block.name, kind, choice_.scale.value_or(1), block.view, {}, {}};
    part.repeats = config_ && config_->mini;
    into_.parts.push_back(std::move(part));
    return {};
  }

  const adapter_choice& choice_;
  const std::optional<peft_config>& config_;
  adapter_file& into_;
};

/// The file with the tensors and, for an adapter of PEFT, its configuration.
struct adapter_paths {
  std::filesystem::path tensors, config;
};

result<adapter_paths> paths_of(const std::filesystem::path& path) {
  std::error_code none;
  if (!std::filesystem::is_directory(path, none)) {
    const auto beside = path.parent_path() / "adapter_config.json";
    const bool peft = path.filename().string().starts_with("adapter_model.") && std::filesystem::exists(beside, none);
    return adapter_paths{path, peft ? beside : std::filesystem::path()};
  }
  for (const char* name : {"adapter_model.safetensors", "adapter_model.bin"})
    if (std::filesystem::exists(path / name, none)) return adapter_paths{path / name, path / "adapter_config.json"};
  return error{error_kind::missing_file, path.string() + ": has no adapter_model.safetensors", "adapter"};
}

result<adapter_file> read_adapter(const adapter_choice& choice) {
  const auto paths = paths_of(choice.path);
  if (!paths) return paths.error();
  std::optional<peft_config> config;
  if (!paths->config.empty()) {
    auto read = read_peft_config(paths->config);
    if (!read) return read.error();
    config = *read;
  }
  adapter_file made{choice.path, {}, {}};
  if (const auto added = add_file(made.memory, paths->tensors); !added) return added.error();
  if (const auto read = adapter_reader(choice, config, made).run(); !read) return read.error();
  return made;
}

bool is_start_of_pissa(const adapter_part& part) { return part.kind == adapter_kind::pissa_start; }
bool adds_a_product(const adapter_part& part) {
  return part.kind == adapter_kind::lora || part.kind == adapter_kind::dora_columns ||
         part.kind == adapter_kind::dora_rows;
}

using target_names = std::set<std::string_view>;

target_names targets_of(const std::vector<adapter_file>& files, bool (*counts)(const adapter_part&)) {
  target_names targets;
  for (const auto& file : files)
    for (const auto& part : file.parts)
      if (counts(part)) targets.insert(part.target);
  return targets;
}

/// PiSSA subtracts the pair with which its training began and adds the trained one, both without a scale. The two pairs
/// are in two files, of which one alone would give other weights.
result<void> scale_pissa(std::vector<adapter_file>& files) {
  const auto started = targets_of(files, is_start_of_pissa), trained = targets_of(files, adds_a_product);
  for (auto& file : files)
    for (auto& part : file.parts) {
      if (is_start_of_pissa(part) && !trained.contains(part.target))
        return error{error_kind::bad_file,
                     file.path.string() + ": tensor " + printable(part.name) +
                         " is the start of a PiSSA adapter; pass the file with the trained lora_A and lora_B too",
                     {}};
      if (!std::isnan(part.scale)) continue;
      if (!started.contains(part.target))
        return error{error_kind::invalid_argument,
                     "adapter: " + file.path.string() +
                         " does not say how to scale what it adds; pass FILE:SCALE (adapter_scaling on /loadmodel), "
                         "where SCALE is alpha / rank of the training, or for PiSSA the file with init_lora_A too",
                     "adapter"};
      part.scale = 1;
    }
  return {};
}

}  // namespace

result<std::vector<adapter_file>> read_adapters(std::span<const adapter_choice> choices) {
  std::vector<adapter_file> all;
  for (const auto& choice : choices) {
    auto read = read_adapter(choice);
    if (!read) return read.error();
    all.push_back(std::move(*read));
  }
  if (const auto scaled = scale_pissa(all); !scaled) return scaled.error();
  return all;
}

}  // namespace skein::model
