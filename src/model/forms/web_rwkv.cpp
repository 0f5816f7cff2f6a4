#include "model/forms/web_rwkv.hpp"

#include <algorithm>
#include <string>

#include "model/forms/renaming.hpp"

// The changes are those of web-rwkv's assets/scripts/convert_safetensors.py.
namespace skein::model {
namespace {

constexpr std::string_view pairs_7[] = {"att.w1", "att.w2", "att.a1", "att.a2", "att.v1", "att.v2", "att.g1", "att.g2"};
constexpr std::string_view pairs_6[] = {"att.time_maa_w1", "att.time_maa_w2", "att.time_decay_w1", "att.time_decay_w2"};
constexpr std::string_view state = "att.time_state";

/// The width of the model; 0 if it is unknown.
std::int64_t width_of(const found_model& found) {
  const found_tensor* emb = find_tensor(found, "emb.weight");
  return emb && emb->view.shape.size() == 2 ? emb->view.shape[1] : 0;
}

/// Which orientations the first matrices of the pairs have, as far as shapes tell.
struct orientations {
  bool original = false, transposed = false;
};
orientations orientations_of(const found_model& found, std::span<const std::string_view> firsts) {
  const std::int64_t width = width_of(found);
  orientations seen;
  for (const auto& tensor : found.tensors) {
    std::string_view number;
    const auto name = below_layer(tensor.name, "blocks.", number);
    const auto& shape = tensor.view.shape;
    if (name.empty() || shape.size() != 2 || shape[0] == shape[1] || std::ranges::find(firsts, name) == firsts.end())
      continue;
    seen.original = seen.original || shape[0] == width;
    seen.transposed = seen.transposed || shape[1] == width;
  }
  return seen;
}

bool is_version_7(const found_model& found) {
  constexpr std::string_view firsts[] = {"att.w1", "att.a1", "att.v1", "att.g1"};
  if (!find_tensor(found, "blocks.0.att.r_k")) return false;
  const auto seen = orientations_of(found, firsts);
  return seen.transposed && !seen.original;
}

bool is_version_6(const found_model& found) { return find_tensor(found, "blocks.0.att.time_mix_w1") != nullptr; }

/// Files of version 5 have the bonus itself under the name of its logarithm, which only version 5.1 has, one a head.
bool is_version_5(const found_model& found) {
  const found_tensor* bonus = find_tensor(found, "blocks.0.att.time_first");
  const found_tensor* decay = find_tensor(found, "blocks.0.att.time_decay");
  return bonus && decay && find_tensor(found, "blocks.0.att.ln_x.weight") &&
         !find_tensor(found, "blocks.0.att.time_faaaa") && bonus->view.type == dtype::f16 &&
         bonus->view.shape.size() == 2 && bonus->view.shape[1] > 1 && bonus->view.shape == decay->view.shape;
}

void replace(std::string& name, std::string_view theirs, std::string_view original) {
  if (const auto at = name.find(theirs); at != std::string::npos) name.replace(at, theirs.size(), original);
}

}  // namespace

bool is_web_rwkv(const found_model& found) { return is_version_7(found) || is_version_6(found) || is_version_5(found); }

result<void> from_web_rwkv(found_model& found) {
  constexpr std::string_view firsts_6[] = {"att.time_mix_w1", "att.time_decay_w1"};
  const bool six = is_version_6(found), seven = is_version_7(found);
  const bool transposed = seven || (six && !orientations_of(found, firsts_6).original);
  found.form = "web-rwkv .st";
  change_notes notes;
  for (auto& tensor : found.tensors) {
    std::string_view number;
    if (below_layer(tensor.name, "blocks.", number).empty()) continue;
    if (!seven) replace(tensor.name, ".time_first", ".time_faaaa");
    if (six) replace(tensor.name, ".time_mix_", ".time_maa_");
    const auto name = below_layer(tensor.name, "blocks.", number);
    const bool is_pair = std::ranges::find(pairs_7, name) != std::end(pairs_7) ||
                         std::ranges::find(pairs_6, name) != std::end(pairs_6) || name == state;
    if (!transposed || !is_pair) continue;
    if (const auto applied = apply(found, tensor, change::transpose); !applied) return applied;
    notes.add("transposed:", below_layer(tensor.name, "blocks.", number));
  }
  notes.write(found);
  return {};
}

}  // namespace skein::model
