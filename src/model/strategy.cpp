#include "model/strategy.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

namespace skein::model {
namespace {

constexpr std::string_view available =
    "available: fp32, fp16, bf16, int8, fp8, int4, nf4, their combinations by halves or ranges of layers, and \"\" (as "
    "configured), alone or after one device (cpu, cuda, cuda:N, hip or hip:N)";

struct named_form {
  std::string_view name;
  weight_form attention, ffn;
  activation_form activations = activation_form::chosen;
};

using w = weight_form;
using a = activation_form;
constexpr std::array forms{
    named_form{"", w::as_stored, w::as_stored},
    named_form{"none", w::as_stored, w::as_stored},
    named_form{"auto", w::as_stored, w::as_stored},
    named_form{"fp32", w::fp32, w::fp32, a::fp32},
    named_form{"fp16", w::fp16, w::fp16, a::fp16},
    named_form{"bf16", w::bf16, w::bf16, a::bf16},
    named_form{"int8", w::int8, w::int8},
    named_form{"fp32i8", w::int8, w::int8, a::fp32},
    named_form{"fp16i8", w::int8, w::int8, a::fp16},
    named_form{"bf16i8", w::int8, w::int8, a::bf16},
    named_form{"gemlite", w::int8, w::int8, a::fp16},
    named_form{"cutlass", w::int8, w::int8, a::fp16},
    named_form{"int4", w::int4, w::int4},
    named_form{"bnb_int4", w::int4, w::int4},
    named_form{"hqq4", w::int4, w::int4},
    named_form{"nf4", w::nf4, w::nf4},
    named_form{"quant", w::nf4, w::nf4},
    named_form{"fp8", w::fp8, w::fp8},
    named_form{"fp6", w::fp6, w::fp6},
    named_form{"fp5", w::fp5, w::fp5},
    named_form{"fp5c", w::fp5, w::fp5},
    named_form{"attn_int8_ffn_int4", w::int8, w::int4},
    named_form{"attn_int8_ffn_fp5", w::int8, w::fp5},
    named_form{"attn_int8_ffn_fp6", w::int8, w::fp6},
    named_form{"attn_fp8_ffn_int4", w::fp8, w::int4},
};

const named_form* find_form(std::string_view name) {
  const auto found = std::ranges::find(forms, name, &named_form::name);
  return found == forms.end() ? nullptr : &*found;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words{""};
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)))
      words.emplace_back();
    else
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  std::erase(words, "");
  return words;
}

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool is_device(std::string_view word) {
  constexpr std::array<std::string_view, 5> kinds{"cpu", "cuda", "hip", "mps", "dml"};
  const std::string_view kind = word.substr(0, word.find(':'));
  if (std::ranges::find(kinds, kind) == kinds.end()) return false;
  return kind.size() == word.size() || number_in(word.substr(kind.size() + 1));
}

/// "cuda:0 fp16i8 *20+" or "fp16"; nullopt for anything else.
std::optional<strategy::part> read_part(std::string_view text) {
  auto words = words_of(text);
  strategy::part part;
  if (!words.empty() && !is_device(words.front()) && words.size() > 1) return std::nullopt;
  if (!words.empty() && is_device(words.front())) {
    part.device = words.front();
    words.erase(words.begin());
  }
  if (words.size() > 1 && words.back().starts_with('*')) {
    std::string_view count = words.back();
    part.streamed = count.ends_with('+');
    count = count.substr(1, count.size() - (part.streamed ? 2 : 1));
    const auto layers = number_in(count);
    if (!layers || *layers == 0) return std::nullopt;
    part.layers = *layers;
    words.pop_back();
  }
  if (words.size() > 1) return std::nullopt;
  const named_form* const form = find_form(words.empty() ? std::string_view() : std::string_view(words.front()));
  if (!form) return std::nullopt;
  part.attention = form->attention;
  part.ffn = form->ffn;
  part.activations = form->activations;
  return part;
}

/// The values of the "key=value" words after `from` for the known keys; nullopt if there are others.
std::optional<std::vector<std::string>> read_fields(const std::vector<std::string>& words, std::size_t from,
                                                    const std::vector<std::string_view>& keys) {
  std::vector<std::string> values(keys.size());
  for (std::size_t i = from; i < words.size(); ++i) {
    const auto sign = words[i].find('=');
    const auto key = std::ranges::find(keys, std::string_view(words[i]).substr(0, sign));
    if (sign == std::string::npos || key == keys.end()) return std::nullopt;
    values[static_cast<std::size_t>(key - keys.begin())] = words[i].substr(sign + 1);
  }
  return values;
}

std::optional<strategy> read_batching_engine(const std::vector<std::string>& words) {
  const auto fields = read_fields(words, 1, {"workers", "batch"});
  if (!fields) return std::nullopt;
  const auto workers = fields->front().empty() ? std::optional(1u) : number_in(fields->front());
  if (!workers || *workers == 0 || (!fields->back().empty() && !number_in(fields->back()))) return std::nullopt;
  strategy made{{strategy::part{}}, *workers};
  made.parts.front().attention = made.parts.front().ffn = weight_form::fp16;
  made.parts.front().activations = activation_form::fp16;
  return made;
}

/// The first `quant` layers in one form, the others in another.
std::optional<strategy> read_layer_fields(const std::vector<std::string>& words) {
  const auto fields = read_fields(words, 0, {"quant", "quant_type", "precision"});
  if (!fields) return std::nullopt;
  const auto count = (*fields)[0].empty() ? std::optional(0u) : number_in((*fields)[0]);
  const named_form* const base = find_form((*fields)[2].empty() ? "fp16" : (*fields)[2]);
  if (!count || !base || (base->attention != w::fp16 && base->attention != w::fp32)) return std::nullopt;
  const strategy::part rest{"", 0, base->attention, base->ffn, base->activations, false};
  if (*count == 0) return strategy{{rest}};
  const std::string_view kind = (*fields)[1].empty() ? std::string_view("int8") : std::string_view((*fields)[1]);
  const weight_form form = kind == "int8" ? w::int8 : kind == "nf4" ? w::nf4 : kind == "sf4" ? w::sf4 : w::as_stored;
  if (form == w::as_stored) return std::nullopt;
  return strategy{{{"", *count, form, form, base->activations, false}, rest}};
}

std::optional<strategy> read(std::string_view text) {
  const auto words = words_of(text);
  if (!words.empty() && (words.front() == "albatross" || words.front() == "chirrup"))
    return read_batching_engine(words);
  if (!words.empty() && words.front().find('=') != std::string::npos) return read_layer_fields(words);
  strategy made;
  constexpr std::string_view arrow = "->";
  for (std::string_view rest = text;;) {
    const auto end = rest.find(arrow);
    auto part = read_part(rest.substr(0, end));
    if (!part) return std::nullopt;
    made.parts.push_back(std::move(*part));
    if (end == std::string_view::npos) break;
    rest = rest.substr(end + arrow.size());
  }
  // With several parts, each names its device, and all but the last give their number of layers.
  for (std::size_t i = 0; made.parts.size() > 1 && i < made.parts.size(); ++i)
    if (made.parts[i].device.empty() || (i + 1 < made.parts.size() && made.parts[i].layers == 0)) return std::nullopt;
  return made;
}

/// The feature of `wanted` that this version does not support; empty: none.
std::string_view lacking(const strategy& wanted) {
  if (wanted.replicas > 1) return "more than one worker";
  for (const auto& part : wanted.parts) {
    if (part.streamed) return "streaming layers to the device";
    if (part.device != wanted.parts.front().device) return "more than one device";
    if (!part.device.empty() && part.device != "cpu" && !part.device.starts_with("cuda") &&
        !part.device.starts_with("hip"))
      return "that device";
  }
  if (wanted.parts.back().layers > 0) return "a number of layers without a form for the others";
  return {};
}

/// The format that is nearest and at least as precise: int8 with groups of 64 takes no more memory than fp8 and has a
/// smaller error than each of the 5 to 8 bit floats.
std::string_view format_of(weight_form form) {
  switch (form) {
    case weight_form::as_stored: return "";
    case weight_form::fp32: return "fp32";
    case weight_form::fp16: return "fp16";
    case weight_form::bf16: return "bf16";
    case weight_form::int4: return "int4";
    case weight_form::nf4:
    case weight_form::sf4: return "nf4";
    case weight_form::fp8: return "fp8";
    case weight_form::int8:
    case weight_form::fp6:
    case weight_form::fp5: break;
  }
  return "int8";
}

/// The formats of the matrices of some layers, in the terms of kernels::weight_plan.
void add_rules(const strategy::part& part, const std::string& layers, std::string& to) {
  for (const auto& [half, form] : {std::pair{"att.*", part.attention}, std::pair{"ffn.*", part.ffn}}) {
    if (form == weight_form::as_stored) continue;
    to += (to.empty() ? "" : ",") + std::string(half) + layers + '=' + std::string(format_of(form));
  }
}

}  // namespace

result<strategy> parse_strategy(std::string_view text) {
  if (auto made = read(text)) return std::move(*made);
  return error{error_kind::invalid_argument,
               "model_strategy '" + std::string(text) + "' is unknown; " + std::string(available), "model_strategy"};
}

result<plain_strategy> buildable(const strategy& wanted) {
  if (const auto what = lacking(wanted); !what.empty())
    return error{error_kind::unsupported,
                 "model_strategy: " + std::string(what) + " is not supported; " + std::string(available),
                 "model_strategy"};
  const auto& last = wanted.parts.back();
  plain_strategy plain{last.device, std::string(format_of(last.attention)), {}};
  std::uint32_t layer = 0;
  for (const auto& part : wanted.parts) {
    if (&part == &last) break;
    add_rules(part, '@' + std::to_string(layer) + '-' + std::to_string(layer + part.layers - 1), plain.weight_format);
    layer += part.layers;
  }
  if (last.attention != last.ffn) add_rules(last, "", plain.weight_format);
  return plain;
}

}  // namespace skein::model
