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

/// How much of the text is prefixes of wrappers.
std::size_t wrapper_bytes(std::string_view text) {
  std::size_t bytes = 0;
  const auto begins = [&](std::string_view p) { return text.substr(bytes).starts_with(p); };
  for (const auto* found = std::begin(wrapper_prefixes);
       (found = std::ranges::find_if(wrapper_prefixes, begins)) != std::end(wrapper_prefixes);)
    bytes += found->size();
  return bytes;
}

bool is_prefix(std::string_view text, bool may_convert) {
  while (!text.empty()) {
    const auto begins = [&](std::string_view p) { return text.starts_with(p); };
    std::size_t bytes = wrapper_bytes(text);
    if (bytes == 0) {
      const auto* const found = std::ranges::find_if(conversions, begins);
      if (found == std::end(conversions) || !may_convert) return false;
      bytes = found->size();
    }
    text.remove_prefix(bytes);
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
  std::string prefix = prefix_of(found.tensors);
  // The head is beside the rest of a conversion, so a wrapper's prefix may be all that its name has.
  if (const std::string wrapper = prefix.substr(0, wrapper_bytes(prefix)); !wrapper.empty()) {
    for (auto& tensor : found.tensors)
      if (tensor.name.starts_with(wrapper) && tensor.name.size() > wrapper.size()) tensor.name.erase(0, wrapper.size());
    prefix.erase(0, wrapper.size());
  }
  if (prefix.empty()) return;
  if (prefix.find("rwkv7.") != std::string::npos) found.form = "Hugging Face, rwkv7. prefix";
  if (prefix == "model." && std::ranges::find(found.tensors, "head.weight", &found_tensor::name) != found.tensors.end())
    found.form = "Hugging Face, any-to-rwkv";
  for (auto& tensor : found.tensors)
    if (tensor.name.starts_with(prefix) && tensor.name.size() > prefix.size()) tensor.name.erase(0, prefix.size());
}

}  // namespace skein::model
