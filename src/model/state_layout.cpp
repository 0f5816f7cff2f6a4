#include "model/state_layout.hpp"

namespace skein::model {

std::vector<state_layout::array> state_layout::arrays() const {
  std::vector<array> all;
  all.reserve(3 * static_cast<std::size_t>(layers));
  const std::int64_t c = embd, h = heads, n = head_size;
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    const std::string block = "blocks." + std::to_string(layer);
    all.push_back({block + ".att.x_prev", {c}, att_x_prev(layer), true});
    all.push_back({block + ".ffn.x_prev", {c}, ffn_x_prev(layer), true});
    if (channels == 0) {
      all.push_back({block + ".att.wkv", {h, n, n}, wkv(layer), false});
      continue;
    }
    const std::int64_t a = channels;
    all.push_back({block + ".att.aa", {a}, wkv(layer), false});
    all.push_back({block + ".att.bb", {a}, wkv(layer) + channels, false});
    all.push_back({block + ".att.pp", {a}, wkv(layer) + std::size_t{2} * channels, false});
  }
  return all;
}

}  // namespace skein::model
