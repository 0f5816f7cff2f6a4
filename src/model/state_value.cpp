#include "model/state_value.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "base/check.hpp"
#include "base/finite_half.hpp"

namespace skein::model {

state_format::state_format(const state_layout& layout, dtype type)
    : layout(layout), shifts(type), memory(layout.channels > 0 ? dtype::f32 : type) {
  check(type == dtype::f32 || type == dtype::f16, "the type of states is fp32 or fp16");
}

std::size_t state_format::bytes() const {
  const std::size_t shift_floats = 2 * std::size_t{layout.embd};
  return layout.layers *
         (shift_floats * dtype_bytes(shifts) + (layout.layer_floats() - shift_floats) * dtype_bytes(memory));
}

void convert_elements(const void* from, dtype from_type, void* to, dtype to_type, std::size_t count) {
  if (count == 0) return;
  if (from_type == to_type) {
    std::memcpy(to, from, count * dtype_bytes(to_type));
    return;
  }
  auto* const in = static_cast<const std::byte*>(from);
  auto* const out = static_cast<std::byte*>(to);
  const auto each = [&]<typename From, typename To>(From, To, auto convert) {
    for (std::size_t i = 0; i < count; ++i) {
      From element;
      std::memcpy(&element, in + i * sizeof element, sizeof element);
      const To result = convert(element);
      std::memcpy(out + i * sizeof result, &result, sizeof result);
    }
  };
  if (to_type == dtype::f16)
    each(float{}, std::uint16_t{}, f32_to_finite_f16);
  else
    each(std::uint16_t{}, float{}, f16_to_f32);
}

void copy_state(const state_view& from, const state_format& format, std::span<std::byte> to) {
  check(from.format.layout == format.layout, "a state of another layout");
  check(from.bytes.size() == from.format.bytes(), "a state of the wrong size");
  check(to.size() == format.bytes(), "a buffer of the wrong size for a state");
  if (from.format == format) {
    if (!to.empty()) std::memcpy(to.data(), from.bytes.data(), to.size());
    return;
  }
  const std::byte* in = from.bytes.data();
  std::byte* out = to.data();
  const auto part = [&](std::size_t count, dtype from_type, dtype to_type) {
    convert_elements(in, from_type, out, to_type, count);
    in += count * dtype_bytes(from_type), out += count * dtype_bytes(to_type);
  };
  const std::size_t shift_floats = 2 * std::size_t{format.layout.embd};
  for (std::uint32_t layer = 0; layer < format.layout.layers; ++layer) {
    part(shift_floats, from.format.shifts, format.shifts);
    part(format.layout.layer_floats() - shift_floats, from.format.memory, format.memory);
  }
}

state_value converted(const state_view& from, const state_format& format) {
  state_value to{format, {}};
  reserve_state(to.bytes, format.bytes());
  to.bytes.resize(format.bytes());
  copy_state(from, format, to.bytes);
  return to;
}

std::span<const float> floats_in(const state_view& state) {
  check(state.format == state.format.layout, "a state that is not fp32");
  return {reinterpret_cast<const float*>(state.bytes.data()), state.bytes.size() / sizeof(float)};
}

std::span<float> floats_in(state_value& state) {
  const auto floats = floats_in(state.view());
  return {const_cast<float*>(floats.data()), floats.size()};
}

std::vector<float> floats_of(const state_view& state) {
  std::vector<float> floats(state.format.floats());
  copy_state(state, state.format.layout, std::as_writable_bytes(std::span(floats)));
  return floats;
}

state_value state_of(const state_format& format, std::span<const float> floats) {
  return converted({format.layout, std::as_bytes(floats)}, format);
}

void reserve_state(std::vector<std::byte>& memory, std::size_t bytes) {
  constexpr std::size_t worth_it = std::size_t{4} << 20;
  memory.reserve(bytes);
  if (memory.capacity() < worth_it) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t begin = first / page * page, end = first + memory.capacity();
  static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));  // advisory
}

}  // namespace skein::model
