#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace skein::model {

/// In which form the matrices of some layers are kept.
enum class weight_form : std::uint8_t { as_stored, fp32, fp16, bf16, int8, int4, nf4, sf4, fp8, fp6, fp5 };
enum class activation_form : std::uint8_t { chosen, fp32, fp16, bf16 };

/// How a model shall run: for its layers from the first on, in order, where and in which form.
struct strategy {
  struct part {
    std::string device;        ///< "cpu", "cuda", "cuda:1", ...; empty: as configured
    std::uint32_t layers = 0;  ///< how many; 0: all that are left
    weight_form attention = weight_form::as_stored, ffn = weight_form::as_stored;
    activation_form activations = activation_form::chosen;
    bool streamed = false;  ///< the layers behind these come to the device each time they are used
    bool operator==(const part&) const = default;
  };
  std::vector<part> parts;  ///< at least one
  std::uint32_t replicas = 1;
  bool operator==(const strategy&) const = default;
};

/// Every spelling of the older servers:
///   "", None, auto                                as configured
///   fp32 fp16 bf16 int8 fp16i8 nf4 quant fp8 ...  one form for all layers; also gemlite, cutlass
///   attn_int8_ffn_int4                            one for each half of a layer
///   cuda:0 fp16i8 *20 -> cpu fp32, ... *20+       devices, with the layers each of them gets
///   albatross workers=1 batch=32, chirrup ...     batching engines
///   quant=8 quant_type=NF4 precision=Fp16         the first layers in another form
/// Errors: invalid_argument (model_strategy) for anything else, naming what is available.
[[nodiscard]] result<strategy> parse_strategy(std::string_view text);

/// A strategy that this version can run: in the words of the configuration, empty where that decides.
struct plain_strategy {
  std::string device, dtype;
};
/// Errors: unsupported (model_strategy) for those that it cannot, naming what is available. Never another precision.
[[nodiscard]] result<plain_strategy> buildable(const strategy& wanted);

}  // namespace skein::model
