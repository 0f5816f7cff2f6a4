#pragma once
#include <string_view>

/// Names of the formats of weight matrices, for settings, help and messages. kernels/weights/weight_format.cpp checks
/// that the list is complete.
namespace skein {

/// What a setting accepts: auto is the format of the file.
inline constexpr std::string_view weight_format_words =
    "auto, fp32, bf16, fp16, int8, int8-32, int8-128, fp8, int4, int4-32, int4-128, nf4, nf4-32, nf4-128";
inline constexpr std::string_view weight_format_names = weight_format_words.substr(weight_format_words.find("fp32"));

}  // namespace skein
