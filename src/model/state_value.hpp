#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/tensor.hpp"
#include "model/state_layout.hpp"

/// States as typed values: the arrays of state_layout back to back in canonical order, each in its own data type. A
/// value keeps the types of the engine that computed it, so that it is moved and stored without a change of its bits.
namespace skein::model {

struct state_format {
  state_layout layout;
  dtype shifts = dtype::f32;  ///< of att.x_prev and ffn.x_prev: f32 or f16
  dtype memory = dtype::f32;  ///< of att.wkv, or of att.aa, att.bb and att.pp: f32 or f16

  state_format() = default;
  /// The format of an engine whose states have this type. The memory of version 4 stays in fp32: it has an exponent.
  state_format(const state_layout& layout, dtype type = dtype::f32);  // implicit: a layout alone means fp32

  [[nodiscard]] dtype type_of(const state_layout::array& array) const { return array.is_shift ? shifts : memory; }
  [[nodiscard]] std::size_t floats() const { return layout.floats(); }
  /// Bytes of a state.
  [[nodiscard]] std::size_t bytes() const;
  bool operator==(const state_format&) const = default;
};

/// A state in memory of its caller; `bytes` has the alignment of a float.
struct state_view {
  state_format format;
  std::span<const std::byte> bytes;  ///< format.bytes()
};

struct state_value {
  state_format format;
  std::vector<std::byte> bytes;  ///< format.bytes(), or empty: no state

  [[nodiscard]] bool empty() const { return bytes.empty(); }
  [[nodiscard]] state_view view() const { return {format, bytes}; }
  operator state_view() const { return view(); }  // NOLINT: as a string is a string_view
  /// Bit for bit.
  bool operator==(const state_value&) const = default;
};

/// Converts elements of type f32 or f16, which need not be aligned. fp32 to fp16 rounds to nearest even and saturates
/// to the largest finite value; equal types are copied bit for bit.
void convert_elements(const void* from, dtype from_type, void* to, dtype to_type, std::size_t count);

/// Copies a state into another format of the same layout (checked), likewise. `to` has format.bytes().
void copy_state(const state_view& from, const state_format& format, std::span<std::byte> to);
[[nodiscard]] state_value converted(const state_view& from, const state_format& format);

/// The elements of a state that is all fp32 (checked), in place.
[[nodiscard]] std::span<const float> floats_in(const state_view& state);
[[nodiscard]] std::span<float> floats_in(state_value& state);

[[nodiscard]] std::vector<float> floats_of(const state_view& state);
/// `floats` has format.floats() elements in canonical order.
[[nodiscard]] state_value state_of(const state_format& format, std::span<const float> floats);

/// Reserves memory, in huge pages if the system grants them: with small pages, the page faults on fresh memory take
/// many times as long as copying a state into it.
void reserve_state(std::vector<std::byte>& memory, std::size_t bytes);

}  // namespace skein::model
