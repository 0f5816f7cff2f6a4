#include "model/forms/renaming.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace skein::model {
namespace {

constexpr std::string_view decimal_digits = "0123456789";

/// The rule for a name, and the name that it gives.
std::optional<std::pair<const rename_rule*, std::string>> rule_for(std::span<const rename_rule> rules,
                                                                   std::string_view name) {
  for (const auto& rule : rules) {
    if (rule.theirs == name) return std::pair(&rule, std::string(rule.original));
    if (!rule.theirs.ends_with('*')) continue;
    const auto before = rule.theirs.substr(0, rule.theirs.size() - 1);
    if (name.starts_with(before) && name.size() > before.size())
      return std::pair(&rule, std::string(rule.original) += name.substr(before.size()));
  }
  return std::nullopt;
}

/// The same for a name below a layer.
std::optional<std::pair<const rename_rule*, std::string>> rule_in_layer(const naming& names, std::string_view name) {
  auto rule = rule_for(names.layer, name);
  for (const auto& module : names.modules) {
    if (rule || !name.starts_with(module.theirs)) continue;
    rule = rule_for(module.rules, name.substr(module.theirs.size()));
    if (rule) rule->second.insert(0, module.original);
  }
  return rule;
}

std::int64_t dimensions_above_one(const tensor_view& view) {
  return std::ranges::count_if(view.shape, [](std::int64_t d) { return d > 1; });
}

/// The view of `elements` consecutive values as (1, 1, elements).
tensor_view vector_at(const std::byte* data, dtype type, std::int64_t elements) {
  return {data, type, {1, 1, elements}, {elements, elements, 1}};
}

std::string dimensions_text(const tensor_view& view) {
  std::string text;
  for (const std::int64_t d : view.shape) (text += text.empty() ? "(" : ", ") += std::to_string(d);
  return text + ")";
}

/// Appends the rows of a tensor under their names, each below `before`.
result<void> split_rows(const found_model& found, const found_tensor& tensor, std::string_view names,
                        const std::string& before, std::vector<found_tensor>& to) {
  const tensor_view& view = tensor.view;
  const std::int64_t rows = 1 + std::ranges::count(names, ' ');
  const bool fits = view.row_major() && !view.shape.empty() && view.shape.front() == rows &&
                    dimensions_above_one(view) <= 2 && view.elements() / rows == view.shape.back();
  if (!fits)
    return tensor_fault(
        found, tensor,
        "has shape " + dimensions_text(view) + ", expected " + std::to_string(rows) + " rows of one vector each");
  const std::int64_t width = view.elements() / rows;
  const auto row_bytes = static_cast<std::size_t>(width) * dtype_bytes(view.type);
  for (const std::byte* row = view.data; !names.empty(); row += row_bytes) {
    const auto name = names.substr(0, names.find(' '));
    names.remove_prefix(std::min(name.size() + 1, names.size()));
    to.push_back({before + std::string(name), vector_at(row, view.type, width), tensor.described_at, tensor.file});
  }
  return {};
}

}  // namespace

void change_notes::add(std::string_view what, std::string_view name) {
  auto at = by_change_.find(what);
  if (at == by_change_.end()) at = by_change_.emplace(what, tensors{}).first;
  at->second.names.emplace(name);
  ++at->second.count;
}

void change_notes::write(found_model& found) const {
  for (const auto& [what, tensors] : by_change_) {
    std::string note = what;
    for (const auto& name : tensors.names) (note += note.size() == what.size() ? " " : ", ") += name;
    found.notes.push_back(note + " (" + std::to_string(tensors.count) + " tensors)");
  }
}

const found_tensor* find_tensor(const found_model& found, std::string_view name) {
  const auto at =
      std::ranges::find(found.tensors, name, [](const found_tensor& t) -> std::string_view { return t.name; });
  return at == found.tensors.end() ? nullptr : &*at;
}

std::string_view below_layer(std::string_view name, std::string_view before, std::string_view& number) {
  if (!name.starts_with(before)) return {};
  name.remove_prefix(before.size());
  const auto end = name.find_first_not_of(decimal_digits);
  if (end == 0 || end == std::string_view::npos || end > 9 || name[end] != '.') return {};
  number = name.substr(0, end);
  if (number.size() > 1 && number.front() == '0') return {};
  return name.substr(end + 1);
}

result<void> apply(const found_model& found, found_tensor& tensor, change how) {
  tensor_view& view = tensor.view;
  if (how == change::vector && view.row_major()) view = vector_at(view.data, view.type, view.elements());
  if (how != change::transpose) return {};
  const std::size_t axes = view.shape.size();
  if (axes < 2) return tensor_fault(found, tensor, "has one dimension, expected a matrix");
  std::swap(view.shape[axes - 2], view.shape[axes - 1]);
  std::swap(view.stride[axes - 2], view.stride[axes - 1]);
  return {};
}

result<void> rename(found_model& found, const naming& names) {
  found.form = names.form;
  change_notes notes;
  std::vector<found_tensor> renamed;
  renamed.reserve(found.tensors.size());
  for (auto& tensor : found.tensors) {
    std::string before;
    auto rule = rule_for(names.outer, tensor.name);
    std::string_view number;
    if (!rule)
      if (const auto below = below_layer(tensor.name, names.layers, number); !below.empty()) {
        rule = rule_in_layer(names, below);
        before = "blocks." + std::string(number) + ".";
      }
    if (!rule)
      return tensor_fault(found, tensor,
                          "is not one of RWKV in the form '" + std::string(names.form) +
                              "'; hybrid, quantised and extended models are not supported",
                          error_kind::unsupported);
    const change how = rule->first->how;
    if (how == change::rows) {
      notes.add("split:", rule->first->theirs);
      if (const auto split = split_rows(found, tensor, rule->first->original, before, renamed); !split)
        return split.error();
      continue;
    }
    if (const auto applied = apply(found, tensor, how); !applied) return applied.error();
    if (how == change::transpose) notes.add("transposed:", rule->second);
    tensor.name = before + rule->second;
    renamed.push_back(std::move(tensor));
  }
  found.tensors = std::move(renamed);
  notes.write(found);
  return {};
}

}  // namespace skein::model
