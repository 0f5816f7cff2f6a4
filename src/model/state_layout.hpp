#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace skein::model {

/// The canonical order of a recurrent state, the same on every back end: layer by layer
///   att.x_prev (C)   last token's input of time mixing (after ln1)
///   ffn.x_prev (C)   last token's input of channel mixing (after ln2)
///   att.wkv (H, N, N), indexed [head, value, key], in versions 5 to 7
///   att.aa, att.bb, att.pp (A)  numerator, denominator and exponent of version 4
/// back to back. The layout is independent of the elements' types, which state_format in state_value.hpp adds.
struct state_layout {
  std::uint32_t layers = 0, embd = 0, heads = 0, head_size = 0;
  std::uint32_t channels = 0;  ///< A of version 4, which has no heads; else 0

  struct array {
    std::string name;  ///< e.g. "blocks.3.att.wkv"
    std::vector<std::int64_t> shape;
    std::size_t offset;  ///< in elements
    bool is_shift;       ///< an x_prev
  };

  [[nodiscard]] std::size_t wkv_floats() const { return static_cast<std::size_t>(heads) * head_size * head_size; }
  [[nodiscard]] std::size_t layer_floats() const {
    return 2 * static_cast<std::size_t>(embd) + wkv_floats() + 3 * static_cast<std::size_t>(channels);
  }
  [[nodiscard]] std::size_t floats() const { return layers * layer_floats(); }
  [[nodiscard]] std::size_t att_x_prev(std::uint32_t layer) const { return layer * layer_floats(); }
  [[nodiscard]] std::size_t ffn_x_prev(std::uint32_t layer) const { return att_x_prev(layer) + embd; }
  [[nodiscard]] std::size_t wkv(std::uint32_t layer) const { return att_x_prev(layer) + 2 * embd; }

  /// All arrays in order; for files and reports.
  [[nodiscard]] std::vector<array> arrays() const;
  bool operator==(const state_layout&) const = default;
};

}  // namespace skein::model
