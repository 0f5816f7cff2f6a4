#include "model/stored_formats.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "kernels/weights/file_blocks.hpp"

namespace skein::model {
namespace {

using kernels::weight_element, kernels::weight_format, kernels::weight_plan;

weight_format format_near(std::string_view type) {
  if (type == "Q8_0") return {weight_element::int8, 32};
  const bool is_larger = type.starts_with("Q5_") || type.starts_with("Q6_");
  return is_larger ? weight_format{weight_element::int8, kernels::default_group}
                   : weight_format{weight_element::int4, 32};
}

/// A rule for one matrix; nullopt for tensors that are no matrices of a plan.
std::optional<weight_plan::rule> rule_for_tensor(const named_tensor& tensor, weight_format format) {
  std::string_view name = tensor.name;
  if (tensor.view.shape.size() != 2 || !name.ends_with(".weight") || name == "emb.weight") return std::nullopt;
  name.remove_suffix(7);
  constexpr std::string_view blocks = "blocks.";
  if (!name.starts_with(blocks)) return weight_plan::rule{std::string(name), format};
  name.remove_prefix(blocks.size());
  std::uint32_t layer = 0;
  const auto [rest, trouble] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (trouble != std::errc() || rest == name.data() + name.size() || layer == ~0u) return std::nullopt;
  name.remove_prefix(static_cast<std::size_t>(rest - name.data()) + 1);
  return weight_plan::rule{std::string(name), format, layer, layer + 1};
}

/// The keys, those with the largest number first.
template <typename Key>
std::vector<Key> by_size(const std::map<Key, std::uint64_t>& sizes) {
  std::vector<std::pair<std::uint64_t, Key>> order;
  order.reserve(sizes.size());
  for (const auto& [key, size] : sizes) order.emplace_back(size, key);
  std::ranges::stable_sort(order, std::greater<>(), [](const auto& each) { return each.first; });
  std::vector<Key> keys;
  keys.reserve(order.size());
  for (auto& [size, key] : order) keys.push_back(std::move(key));
  return keys;
}

}  // namespace

stored_formats formats_in_file(const checkpoint& file) {
  stored_formats found;
  std::map<std::string, std::uint64_t> formats, types;  // elements
  for (const named_tensor& tensor : file.tensors()) {
    const bool quantised = !tensor.quantised_as.empty();
    const auto plain = kernels::format_of(tensor.view.type);
    if (!quantised && !plain) continue;
    auto rule = rule_for_tensor(tensor, quantised ? format_near(tensor.quantised_as) : *plain);
    if (!rule) continue;
    if (quantised) {
      const auto elements = static_cast<std::uint64_t>(tensor.view.elements());
      formats[kernels::to_string(rule->format)] += elements;
      types[std::string(tensor.quantised_as)] += elements;
    }
    found.rules.push_back(std::move(*rule));
  }
  if (types.empty()) return {};
  std::string from;
  for (const auto& type : by_size(types)) from += (from.empty() ? "" : ", ") + type;
  found.name = by_size(formats).front() + " (" + from + ')';
  return found;
}

stored_formats formats_kept(const checkpoint& file) {
  constexpr weight_format of_blocks[] = {{weight_element::int8, code_blocks::elements},
                                         {weight_element::int4, code_blocks::elements}};
  stored_formats found;
  std::map<std::string, std::uint64_t> formats;  // elements
  for (const named_tensor& tensor : file.tensors()) {
    auto format =
        tensor.view.quantised() ? kernels::format_of(tensor.view.codes) : kernels::format_of(tensor.view.type);
    for (const weight_format& each : of_blocks)
      if (kernels::stored_in(each, tensor.view)) format = each;
    auto rule = format ? rule_for_tensor(tensor, *format) : std::nullopt;
    if (!rule) continue;
    if (format->quantised()) formats[kernels::to_string(*format)] += static_cast<std::uint64_t>(tensor.view.elements());
    found.rules.push_back(std::move(*rule));
  }
  if (!formats.empty()) found.name = by_size(formats).front();
  return found;
}

}  // namespace skein::model
