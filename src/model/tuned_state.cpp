#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "model/model_info.hpp"
#include "model/nonfinite.hpp"
#include "model/tensor_lookup.hpp"

namespace skein::model {
namespace {

std::string state_name(std::uint32_t layer) { return block_name(layer, "att.time_state"); }

error with_model(error e, const state_layout& state) {
  e.message += " (the model has " + std::to_string(state.layers) + " layers of " + std::to_string(state.heads) +
               " heads of " + std::to_string(state.head_size) + ")";
  return e;
}

}  // namespace

result<std::vector<float>> load_tuned_state(const std::filesystem::path& path, const model_info& info,
                                            bool allow_nonfinite) {
  const state_layout& state = info.state;
  if (state.heads == 0)
    return error{
        error_kind::unsupported,
        path.string() + ": RWKV-" + std::string(to_string(info.version)) + " does not support state-tuning files",
        {}};
  const auto file = checkpoint::open(path);
  if (!file) return file.error();
  if (file->find(state_name(state.layers)))
    return with_model(misfit(*file, state_name(state.layers), "belongs to a model with more layers"), state);

  std::vector<float> values(state.floats(), 0.0f);
  const std::int64_t shape[] = {state.heads, state.head_size, state.head_size};
  for (std::uint32_t layer = 0; layer < state.layers; ++layer) {
    const auto view = find_shaped(*file, state_name(layer), shape);
    if (!view) return with_model(view.error(), state);
    const auto matrices = std::span(values).subspan(state.wkv(layer), state.wkv_floats());
    copy_to_f32(*view, matrices);
    if (const auto same = file->check_unchanged(); !same) return same.error();
    if (!allow_nonfinite && holds_nonfinite(std::as_bytes(matrices), dtype::f32))
      return nonfinite_tensor(*file, state_name(layer));
  }
  return values;
}

std::string state_identity(std::span<const float> state) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, XXH3_128bits(state.data(), state.size_bytes()));
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes.digest) (text += digits[byte >> 4]) += digits[byte & 15];
  return text;
}

}  // namespace skein::model
