#include "model/forms/converted_tensors.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skein::model {
namespace {

constexpr std::string_view version_key = "skein.version", dtype_key = "skein.dtype",
                           weight_format_key = "skein.weight_format", own_keys = "skein.";
constexpr std::uint16_t row_scale_group = 64;  // of fp8: all groups of a row have the same scale

struct named_codes {
  code_type type;
  std::string_view name;
};
constexpr named_codes code_names[] = {
    {code_type::int8, "int8"}, {code_type::int4, "int4"}, {code_type::nf4, "nf4"}, {code_type::fp8, "fp8"}};

/// What the metadata says of one tensor: "int4 64 bf16 512x128 <digest>", or "bf16 0 bf16 512x128 <digest>".
struct conversion_note {
  code_type codes = code_type::none;
  std::uint16_t group = 0;
  dtype type = dtype::f32;  ///< of the matrices that are not quantised
  std::int64_t rows = 0, columns = 0;
  std::string digest;
};

std::optional<std::int64_t> count_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), number);
  return trouble == std::errc() && end == text.data() + text.size() && number >= 0 ? std::optional(number)
                                                                                   : std::nullopt;
}

std::vector<std::string_view> note_words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty() && words.size() < 8) {
    const auto blank = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, blank));
    text.remove_prefix(std::min(text.size(), blank + 1));
  }
  return words;
}

std::optional<conversion_note> parse_note(std::string_view text) {
  const auto words = note_words(text);
  if (words.size() != 5) return std::nullopt;
  conversion_note note;
  for (const auto& [type, name] : code_names)
    if (words[0] == name) note.codes = type;
  const bool quantised = note.codes != code_type::none;
  const auto group = count_in(words[1]);
  if (!group || (quantised ? *group != 32 && *group != 64 && *group != 128 : *group != 0)) return std::nullopt;
  note.group = static_cast<std::uint16_t>(*group);
  bool known = false;
  for (const dtype type : {dtype::f32, dtype::bf16, dtype::f16})
    if (words[2] == to_string(type)) note.type = type, known = true;
  const std::size_t cross = words[3].find('x');
  const auto rows = count_in(words[3].substr(0, cross));
  const auto columns = cross == words[3].npos ? std::nullopt : count_in(words[3].substr(cross + 1));
  const bool is_digest = words[4].size() == 32 && words[4].find_first_not_of("0123456789abcdef") == words[4].npos;
  if (!known || !is_digest || (quantised && (!rows || !columns || *rows == 0 || *columns == 0))) return std::nullopt;
  note.rows = rows.value_or(0), note.columns = columns.value_or(0);
  note.digest = words[4];
  return note;
}

/// Matrices that may be quantised: head.weight, blocks.N.att.X.weight, blocks.N.ffn.X.weight.
bool may_be_quantised(std::string_view name) {
  if (name == "head.weight") return true;
  const bool in_layer = name.find(".att.") != name.npos || name.find(".ffn.") != name.npos;
  return name.starts_with("blocks.") && name.ends_with(".weight") && in_layer;
}

/// The first row of scales (rows, groups) in bf16 whose scales differ, or are not a normal power of two, 0 or NaN.
std::optional<std::int64_t> row_without_one_scale(const tensor_view& scales) {
  constexpr std::uint16_t magnitude = 0x7fff, infinity = 0x7f80, fraction = 0x7f;
  const std::size_t groups = static_cast<std::size_t>(scales.shape[1]), bytes = groups * sizeof(std::uint16_t);
  const std::byte* at = scales.data;
  for (std::int64_t row = 0; row < scales.shape[0]; ++row, at += bytes) {
    std::uint16_t first;
    std::memcpy(&first, at, sizeof first);
    const bool is_nan = (first & magnitude) > infinity, is_power_or_zero = first < infinity && (first & fraction) == 0;
    const bool are_equal = std::memcmp(at, at + sizeof first, bytes - sizeof first) == 0;  // each and the next
    if (!are_equal || !(is_nan || is_power_or_zero)) return row;
  }
  return std::nullopt;
}

class joining {
 public:
  joining(found_model& found, bool half_scales) : found_(found), half_scales_(half_scales) {
    for (std::size_t i = 0; i < found.tensors.size(); ++i) by_name_.emplace(found.tensors[i].name, i);
  }

  result<void> one(const std::string& name, const std::string& text) {
    const auto fault = [&](const std::string& what) {
      return error{error_kind::bad_file, "the metadata of tensor " + printable(name) + " " + what, {}};
    };
    const auto note = parse_note(text);
    if (!note) return fault("is " + printable(text) + "; expected FORMAT GROUP TYPE ROWSxCOLUMNS DIGEST");
    if (note->codes == code_type::none) {
      const auto same = by_name_.find(name);
      if (same == by_name_.end()) return fault("names no tensor of the file");
      found_.tensors[same->second].digest = note->digest;
      return {};
    }
    if (!may_be_quantised(name)) return fault("names a tensor that cannot be quantised");
    const bool one_scale = note->codes == code_type::fp8;
    if (one_scale && note->group != row_scale_group)
      return fault("has group size " + std::to_string(note->group) + "; accepted for fp8: 64");
    const std::string_view ending = std::ranges::find(code_names, note->codes, &named_codes::type)->name;
    const auto codes = by_name_.find(name + '.' + std::string(ending)), scales = by_name_.find(name + ".scales");
    if (codes == by_name_.end() || scales == by_name_.end()) return fault("names no codes and scales of the file");
    const std::int64_t groups = note->columns / note->group + (note->columns % note->group != 0);
    const std::int64_t width = fills_bytes(note->codes) ? note->columns : note->columns / 2 + note->columns % 2;
    const dtype type = note->codes == code_type::int8 ? dtype::i8 : dtype::u8;
    found_tensor& first = found_.tensors[codes->second];
    const found_tensor& second = found_.tensors[scales->second];
    if (first.view.type != type || !is(first.view, note->rows, width)) return fault("does not fit the codes");
    const dtype scales_type = second.view.type;
    const bool may_be_half = half_scales_ && (note->codes == code_type::int8 || note->codes == code_type::int4);
    const bool permitted = scales_type == dtype::bf16 || (scales_type == dtype::f16 && may_be_half);
    if (!permitted || !is(second.view, note->rows, groups)) return fault("does not fit the scales");
    if (const auto row = one_scale ? row_without_one_scale(second.view) : std::nullopt)
      return error{
          error_kind::bad_file,
          "row " + std::to_string(*row) + " of tensor " + printable(second.name) +
              " has no scales of fp8; accepted: a power of two from 2^-126 on, or 0, the same in the whole row",
          {}};
    tensor_view joined{first.view.data, note->type, {note->rows, note->columns}, {note->columns, 1}};
    joined.codes = {note->codes, note->group, second.view.data, scales_type};
    removed_.push_back(scales->second);
    first.name = name;
    first.view = std::move(joined);
    first.digest = note->digest;
    by_name_.erase(codes);
    by_name_.erase(scales);
    return {};
  }

  void finish() {
    std::ranges::sort(removed_);
    std::size_t to = 0, next = 0;
    for (std::size_t i = 0; i < found_.tensors.size(); ++i) {
      if (next < removed_.size() && removed_[next] == i) {
        ++next;
        continue;
      }
      if (to != i) found_.tensors[to] = std::move(found_.tensors[i]);
      ++to;
    }
    found_.tensors.resize(to);
  }

 private:
  static bool is(const tensor_view& view, std::int64_t rows, std::int64_t columns) {
    return view.shape == std::vector{rows, columns} && view.row_major();
  }

  found_model& found_;
  bool half_scales_;  // of int8 and int4, whose scales are then those of ggml's blocks
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::vector<std::size_t> removed_;
};

}  // namespace

result<void> join_converted(found_model& found) {
  const auto value_of = [&](std::string_view key) -> const std::string* {
    const auto pair = std::ranges::find(found.metadata, key, &file_metadata::value_type::first);
    return pair == found.metadata.end() ? nullptr : &pair->second;
  };
  if (const std::string* chat = value_of("skein.chat_template"); chat && found.chat == chat_form::none)
    found.chat = chat_form_named(*chat);
  const std::string* const version = value_of(version_key);
  if (!version) return {};
  if (*version != "1" && *version != "2")
    return error{error_kind::unsupported,
                 "the file has version " + printable(*version) + " of the format of converted models; accepted: 1, 2",
                 {}};
  joining all(found, *version == "2");
  for (const auto& [name, text] : found.metadata)
    if (!name.starts_with(own_keys))
      if (const auto joined = all.one(name, text); !joined) return joined.error();
  all.finish();
  if (const std::string* dtype = value_of(dtype_key)) found.dtype = *dtype;
  if (const std::string* formats = value_of(weight_format_key)) found.weight_format = *formats;
  return {};
}

}  // namespace skein::model
