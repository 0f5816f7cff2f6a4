#include "model/forms/prefixes.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace skein::model {
namespace {

// Prefixes that torch wrappers and trainers add to each name.
constexpr std::string_view prefixes[] = {"module.", "_orig_mod.", "_forward_module.", "rwkv7.", "model."};

bool is_prefix(std::string_view text) {
  while (!text.empty()) {
    const auto first = std::ranges::find_if(prefixes, [&](std::string_view p) { return text.starts_with(p); });
    if (first == std::end(prefixes)) return false;
    text.remove_prefix(first->size());
  }
  return true;
}

/// The shortest prefix before the names that a model or a state-tuning file must have; empty: none.
std::string prefix_of(const std::vector<found_tensor>& tensors) {
  std::optional<std::string_view> shortest;
  for (const std::string_view anchor : {"emb.weight", "blocks.0.att.time_state"})
    for (const auto& tensor : tensors) {
      const std::string_view name = tensor.name;
      if (!name.ends_with(anchor)) continue;
      const auto before = name.substr(0, name.size() - anchor.size());
      if (is_prefix(before) && (!shortest || before.size() < shortest->size())) shortest = before;
    }
  return std::string(shortest.value_or(""));
}

}  // namespace

void strip_prefix(std::vector<found_tensor>& tensors) {
  const std::string prefix = prefix_of(tensors);
  for (auto& tensor : tensors)
    if (tensor.name.starts_with(prefix) && tensor.name.size() > prefix.size()) tensor.name.erase(0, prefix.size());
}

}  // namespace skein::model
