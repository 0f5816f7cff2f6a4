#include "model/stated_sizes.hpp"

#include <string>
#include <string_view>

#include "model/files/found_model.hpp"

namespace skein::model {
namespace {

/// What the tensors say about a size; nullopt: nothing.
std::optional<std::uint64_t> found_size(std::string_view key, const model_info& info) {
  const bool seven = info.version == rwkv_version::v7;
  if (key == "hidden_size") return info.embd;
  if (key == "num_hidden_layers") return info.layers;
  if (key == "vocab_size") return info.vocab;
  if (key == "intermediate_size") return info.ffn;
  if (key == "head_dim" || key == "head_size") return info.head_size;
  if (key == "num_heads") return info.heads;
  if (key == "attention_hidden_size") return info.att;
  if (key == "decay_low_rank_dim" && seven) return info.rank_w;
  if (key == "a_low_rank_dim" && seven) return info.rank_a;
  if (key == "v_low_rank_dim" && seven && info.layers > 1) return info.rank_v;
  if (key == "gate_low_rank_dim" && seven) return info.rank_g;
  return std::nullopt;
}

}  // namespace

std::optional<error> stated_size_fault(const checkpoint& file, const model_info& info) {
  for (const auto& [key, value] : file.stated())
    if (const auto found = found_size(key, info); found && *found != value)
      return error{error_kind::bad_file,
                   file.path().string() + "/config.json: " + key + " is " + std::to_string(value) +
                       ", but the tensors have " + std::to_string(*found),
                   {}};
  return std::nullopt;
}

}  // namespace skein::model
