#include "model/forms/prefixes.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace skein::model {
namespace {

// Prefixes that torch wrappers and trainers add to each name, and those of conversions that keep original names.
constexpr std::string_view wrapper_prefixes[] = {"module.", "_orig_mod.", "_forward_module."};
constexpr std::string_view conversions[] = {"rwkv7.", "model."};

bool is_prefix(std::string_view text, bool may_convert) {
  while (!text.empty()) {
    const auto begins = [&](std::string_view p) { return text.starts_with(p); };
    const auto* found = std::ranges::find_if(wrapper_prefixes, begins);
    if (found == std::end(wrapper_prefixes)) {
      found = std::ranges::find_if(conversions, begins);
      if (found == std::end(conversions) || !may_convert) return false;
    }
    text.remove_prefix(found->size());
  }
  return true;
}

/// A name that some form has, and whether the prefix of a conversion may stand before it.
struct anchor {
  std::string_view name;
  bool may_convert;
};
constexpr anchor anchors[] = {
    {"emb.weight", true},                // original names
    {"blocks.0.att.time_state", true},   // a tuned state
    {"model.embeddings.weight", false},  // Hugging Face
    {"model.embed_tokens.weight", false},
    {"rwkv7.embeddings.weight", false},
    {"rwkv.embeddings.weight", false},
};

/// The shortest prefix before the names that a model or a state-tuning file must have; empty: none.
std::string prefix_of(const std::vector<found_tensor>& tensors) {
  std::optional<std::string_view> shortest;
  for (const auto& [anchor, may_convert] : anchors)
    for (const auto& tensor : tensors) {
      const std::string_view name = tensor.name;
      if (!name.ends_with(anchor)) continue;
      const auto before = name.substr(0, name.size() - anchor.size());
      if (is_prefix(before, may_convert) && (!shortest || before.size() < shortest->size())) shortest = before;
    }
  return std::string(shortest.value_or(""));
}

}  // namespace

void strip_prefix(found_model& found) {
  const std::string prefix = prefix_of(found.tensors);
  if (prefix.empty()) return;
  if (prefix.find("rwkv7.") != std::string::npos) found.form = "Hugging Face, rwkv7. prefix";
  if (prefix == "model." && std::ranges::find(found.tensors, "head.weight", &found_tensor::name) != found.tensors.end())
    found.form = "Hugging Face, any-to-rwkv";
  for (auto& tensor : found.tensors)
    if (tensor.name.starts_with(prefix) && tensor.name.size() > prefix.size()) tensor.name.erase(0, prefix.size());
}

}  // namespace skein::model
