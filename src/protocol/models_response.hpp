#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace skein::protocol {

/// A model as /v1/models shows it; all from `version` to `state_bytes` stands in its object `rwkv`.
struct model_card {
  std::string id;
  std::int64_t created = 0;  ///< Unix seconds of loading
  std::string version;       ///< "7"
  std::string device;        ///< "cpu"; with weight_type, the strategy
  std::string weight_type;   ///< "bf16"
  std::string identity;      ///< hash over tensors and vocabulary
  std::uint32_t layers = 0, embd = 0, vocab = 0;
  std::uint64_t parameters = 0;
  std::uint64_t state_bytes = 0;  ///< of one sequence, whatever its length
  std::string parent{};           ///< of a tuned state: the model that it is for
  std::string initial_state{};    ///< its identity, as sessions that began with it have it; a mixture has none
  std::string_view status = "loaded";
};

/// {"object":"list","data":[...],"loaded":id|null,"available":[ids]}: `loaded` answers who names no model, empty: none
/// does; `available` may be loaded.
[[nodiscard]] std::string models_list(std::span<const model_card> models, std::string_view loaded,
                                      std::span<const std::string> available);

/// The bare array of the older servers: [{"object":"models","id":"..."}]
[[nodiscard]] std::string models_array(std::span<const model_card> models);

/// The answer of /v1/models/{id}.
[[nodiscard]] std::string model_body(const model_card& model);

}  // namespace skein::protocol
