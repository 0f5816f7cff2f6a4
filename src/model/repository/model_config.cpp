#include "model/repository/model_config.hpp"

#include <simdjson.h>

#include <cmath>
#include <string>
#include <string_view>

#include "model/repository/json_file.hpp"

namespace skein::model {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t config_bytes_max = 1u << 20;
constexpr double norm_eps = 1e-5;

/// Numbers that tensors have as a dimension; stated_sizes.cpp compares them.
constexpr std::string_view sizes[] = {
    "hidden_size",        "num_hidden_layers", "vocab_size",     "intermediate_size",
    "head_dim",           "head_size",         "num_heads",      "attention_hidden_size",
    "decay_low_rank_dim", "a_low_rank_dim",    "v_low_rank_dim", "gate_low_rank_dim"};

/// Keys whose value must be absent, null, false or empty, and what other values mean.
struct refused_key {
  std::string_view key, what;
};
constexpr refused_key refused[] = {
    {"attn", "layers with softmax attention (hybrid models)"},
    {"tie_word_embeddings", "embeddings that are also the head"},
    {"quantization", "quantised weights"},
    {"quantization_config", "quantised weights"},
    {"embedding_layer_norm_fused", "embeddings with the first layer norm already applied"},
    {"use_deep_embed", "the research variant RWKV-7a (DeepEmbed)"},
};

bool is_off(dom::element value) {
  bool flag = false;
  dom::object object;
  dom::array array;
  if (value.is_null()) return true;
  if (value.get(flag) == simdjson::SUCCESS) return !flag;
  if (value.get(object) == simdjson::SUCCESS) return object.size() == 0;
  return value.get(array) == simdjson::SUCCESS && array.size() == 0;
}

error not_supported(const std::filesystem::path& path, std::string_view key, std::string_view what) {
  return {error_kind::unsupported,
          path.string() + ": " + std::string(key) + ": " + std::string(what) + " are not supported",
          {}};
}

}  // namespace

result<std::vector<stated_size>> read_model_config(const std::filesystem::path& path) {
  const auto text = read_json_text(path, config_bytes_max);
  if (!text) return text.error();
  dom::parser parser(config_bytes_max);
  dom::element document;
  if (const auto fault = parser.parse(*text).get(document); fault)
    return json_fault(path, std::string("is not valid JSON: ") + simdjson::error_message(fault));
  dom::object config;
  if (document.get(config) != simdjson::SUCCESS) return json_fault(path, "is not an object");

  for (const auto& [key, what] : refused) {
    dom::element value;
    if (config[key].get(value) == simdjson::SUCCESS && !is_off(value)) return not_supported(path, key, what);
  }
  bool norm_bias = true;
  if (config["norm_bias"].get(norm_bias) == simdjson::SUCCESS && !norm_bias)
    return not_supported(path, "norm_bias", "norms without a bias");
  for (const std::string_view key : {"norm_eps", "layer_norm_epsilon", "layer_norm_eps"}) {
    double eps = 0;
    if (config[key].get(eps) == simdjson::SUCCESS && std::abs(eps - norm_eps) > norm_eps * 1e-3)
      return error{
          error_kind::unsupported,
          path.string() + ": " + std::string(key) + ": " + std::to_string(eps) + " is not supported; accepted: 1e-5",
          {}};
  }
  std::vector<stated_size> stated;
  for (const std::string_view key : sizes) {
    dom::element value;
    std::uint64_t number = 0;
    if (config[key].get(value) != simdjson::SUCCESS || value.is_null()) continue;
    if (value.get(number) != simdjson::SUCCESS)
      return json_fault(path, std::string(key) + " is not a non-negative integer");
    stated.push_back({std::string(key), number});
  }
  return stated;
}

}  // namespace skein::model
