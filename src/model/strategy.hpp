#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace skein::model {

/// The form in which the matrices of some layers are stored.
enum class weight_form : std::uint8_t { as_stored, fp32, fp16, bf16, int8, int4, nf4, sf4, fp8, fp6, fp5 };
enum class activation_form : std::uint8_t { chosen, fp32, fp16, bf16 };

/// How to run a model: device and form for consecutive ranges of its layers, from the first on.
struct strategy {
  struct part {
    std::string device;        ///< "cpu", "cuda", "cuda:1", ...; empty: as configured
    std::uint32_t layers = 0;  ///< number of layers; 0: all remaining ones
    weight_form attention = weight_form::as_stored, ffn = weight_form::as_stored;
    activation_form activations = activation_form::chosen;
    bool streamed = false;  ///< the layers after these are copied to the device each time they are used
    bool operator==(const part&) const = default;
  };
  std::vector<part> parts;  ///< at least one
  std::uint32_t replicas = 1;
  bool operator==(const strategy&) const = default;
};

/// Every spelling of the older servers:
///   "", None, auto                                as configured
///   fp32 fp16 bf16 int8 fp16i8 nf4 quant fp8 ...  one form for all layers; also gemlite, cutlass
///   attn_int8_ffn_int4                            one form for each half of a layer
///   cuda:0 fp16i8 *20 -> cpu fp32, ... *20+       devices, with the layers of each
///   albatross workers=1 batch=32, chirrup ...     batching engines
///   quant=8 quant_type=NF4 precision=Fp16         the first layers in another form
/// Errors: invalid_argument (model_strategy) for anything else; the text lists the available spellings.
[[nodiscard]] result<strategy> parse_strategy(std::string_view text);

/// A strategy that this version can run, as values of the configuration keys; empty: as configured.
struct plain_strategy {
  std::string device, dtype, weight_format;
};
/// Errors: unsupported (model_strategy) if this version cannot run it; the text lists what is available. Never falls
/// back to a lower precision: fp6 and fp5 become int8.
[[nodiscard]] result<plain_strategy> buildable(const strategy& wanted);

}  // namespace skein::model
