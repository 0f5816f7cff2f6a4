#include "model/adapters/merge.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "model/adapters/adapter_file.hpp"
#include "model/adapters/merged_tensor.hpp"

namespace skein::model {
namespace {

using part_list = std::vector<const adapter_part*>;

std::string text_of(std::span<const std::int64_t> shape) {
  std::string text;
  for (const auto extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return '(' + text + ')';
}

std::vector<std::int64_t> without_ones(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> more;
  std::ranges::copy_if(shape, std::back_inserter(more), [](std::int64_t d) { return d != 1; });
  return more;
}

/// The shape that the part's first tensor must have for a tensor of the model; empty text: it fits.
std::string misfit_of(const adapter_part& part, const tensor_view& to) {
  const auto& first = part.first.shape;
  if (part.kind == adapter_kind::replacement)
    return without_ones(first) == without_ones(to.shape) ? "" : text_of(to.shape);
  if (to.shape.size() != 2) return "a matrix in the model";
  const std::int64_t outputs = to.shape[0], inputs = to.shape[1];
  switch (part.kind) {
    case adapter_kind::replacement:
    case adapter_kind::lora:
    case adapter_kind::pissa_start:
    case adapter_kind::dora_columns:
    case adapter_kind::dora_rows:
      return first[1] == inputs && part.second.shape[0] == outputs
                 ? ""
                 : "(r, " + std::to_string(inputs) + ") and (" + std::to_string(outputs) + ", r)";
    case adapter_kind::bone_columns:
    case adapter_kind::bone_rows: {
      const std::int64_t r = first[1], along = part.kind == adapter_kind::bone_rows ? outputs : inputs;
      return outputs % r == 0 && inputs % r == 0 && first[0] == along / r
                 ? ""
                 : "(" + std::to_string(along) + " / r, r, r), where r divides both sides";
    }
    case adapter_kind::miss: break;
  }
  const bool fits = part.repeats ? outputs % first[1] == 0 : outputs == first[1];
  return fits && first[0] <= inputs ? "" : "(r, " + std::to_string(outputs) + ")";
}

bool is_finite(const tensor_view& view) {
  std::vector<float> values(static_cast<std::size_t>(view.elements()));
  copy_to_f32(view, values);
  return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

/// A tensor of the model, and what the adapters do to it.
using changes = std::map<std::size_t, part_list>;

class merging {
 public:
  explicit merging(found_model& model) : model_(model) {
    for (std::size_t i = 0; i < model.tensors.size(); ++i) by_name_.emplace(model.tensors[i].name, i);
  }

  result<void> plan(const adapter_file& adapter) {
    for (const adapter_part& part : adapter.parts) {
      const auto found = find(part.target, part.kind == adapter_kind::replacement);
      const auto refuse = [&](const std::string& why) {
        return error{error_kind::bad_file, adapter.path.string() + ": tensor " + printable(part.name) + " " + why, {}};
      };
      const std::string in_model = model_.paths.empty() ? "the model" : model_.paths.front().string();
      if (found == by_name_.end()) return refuse("fits no tensor of " + in_model);
      const tensor_view& to = model_.tensors[found->second].view;
      if (to.type > dtype::f64) return refuse("fits a tensor without a floating-point type in " + in_model);
      if (to.quantised())
        return refuse("changes a quantised tensor of " + in_model + "; merge it while converting the original model");
      if (std::string expected = misfit_of(part, to); !expected.empty())
        return refuse("has shape " + text_of(part.first.shape) + "; the tensor " + printable(found->first) + " " +
                      text_of(to.shape) + " of " + in_model + " needs " + std::move(expected));
      for (const tensor_view* view : {&part.first, &part.second, &part.third})
        if (view->data && !is_finite(*view)) return refuse("or one that belongs to it has NaN or infinity");
      changes_[found->second].push_back(&part);
    }
    return {};
  }

  void run() {
    kernels::cpu::thread_pool pool(0);
    for (const auto& [index, parts] : changes_) {
      tensor_view& view = model_.tensors[index].view;
      std::byte* const merged = model_.own(static_cast<std::size_t>(view.elements()) * dtype_bytes(view.type));
      write_merged(view, parts, merged, pool);
      view.data = merged;
      view.blocks = {};
      model_.tensors[index].digest.clear();
      std::exclusive_scan(view.shape.rbegin(), view.shape.rend(), view.stride.rbegin(), std::int64_t{1},
                          std::multiplies<>());
    }
  }

 private:
  using name_list = std::map<std::string, std::size_t, std::less<>>;

  [[nodiscard]] name_list::const_iterator find(const std::string& target, bool whole_name) const {
    const auto found = whole_name ? by_name_.end() : by_name_.find(target + ".weight");
    return found != by_name_.end() ? found : by_name_.find(target);
  }

  found_model& model_;
  name_list by_name_;
  changes changes_;
};

}  // namespace

result<void> merge_adapters(found_model& model, std::span<const adapter_choice> choices) {
  if (choices.empty()) return {};
  const auto adapters = read_adapters(choices);
  if (!adapters) return adapters.error();
  merging all(model);
  for (const auto& adapter : *adapters)
    if (const auto planned = all.plan(adapter); !planned) return planned.error();
  all.run();
  for (const auto& adapter : *adapters)
    model.notes.push_back("merged " + adapter.path.string() + " (" + std::to_string(adapter.parts.size()) +
                          " tensors changed)");
  return {};
}

}  // namespace skein::model
