#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace skein::protocol {

/// A model in /v1/models; the fields from `version` to `state_bytes` are in its object `rwkv`.
struct model_card {
  std::string id;
  std::int64_t created = 0;  ///< Unix seconds of loading
  std::string version;       ///< "7"
  std::string device;        ///< "cpu"; the strategy is device and weight_type
  std::string weight_type;   ///< "bf16"
  std::string identity;      ///< hash over tensors and vocabulary
  std::uint32_t layers = 0, embd = 0, vocab = 0;
  std::uint64_t parameters = 0;
  std::uint64_t state_bytes = 0;  ///< per sequence, independent of its length
  std::string parent{};           ///< of a tuned state: its model
  std::string initial_state{};    ///< identity of the tuned state, as recorded in sessions; a mixture has none
  std::string_view status = "loaded";
};

/// {"object":"list","data":[...],"loaded":id|null,"available":[ids]}: `loaded` is the model for requests that name none
/// (empty: there is none), `available` are the models that can be loaded.
[[nodiscard]] std::string models_list(std::span<const model_card> models, std::string_view loaded,
                                      std::span<const std::string> available);

/// The bare array of the older servers: [{"object":"models","id":"..."}]
[[nodiscard]] std::string models_array(std::span<const model_card> models);

/// The answer of /v1/models/{id}.
[[nodiscard]] std::string model_body(const model_card& model);

}  // namespace skein::protocol
