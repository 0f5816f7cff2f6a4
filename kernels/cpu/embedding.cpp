#include "kernels/cpu/embedding.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/check.hpp"

namespace skein::kernels::cpu {

namespace {

template <float (*kWiden)(std::uint16_t)>
void widen_row(const std::byte* from, std::size_t count, float* to) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, from + i * sizeof bits, sizeof bits);
    to[i] = kWiden(bits);
  }
}

}  // namespace

embedding::embedding(const tensor_view& view, matrix_format format, thread_pool& pool)
    : format_(format), width_(static_cast<std::size_t>(view.shape[1])) {
  check(view.shape.size() == 2);
  const auto rows = static_cast<std::size_t>(view.shape[0]);
  memory_ = aligned_buffer<std::byte>(rows * row_bytes());
  const auto bytes = static_cast<std::ptrdiff_t>(dtype_bytes(view.type));
  constexpr std::size_t piece_rows = 256;
  std::atomic<bool> beyond{false};
  pool.run((rows + piece_rows - 1) / piece_rows, [&](std::size_t piece, std::uint32_t) {
    for (std::size_t row = piece * piece_rows; row < std::min(rows, (piece + 1) * piece_rows); ++row) {
      const std::byte* const first = view.data + static_cast<std::ptrdiff_t>(row) * view.stride[0] * bytes;
      if (!copy_elements({first, view.type, view.stride[1] * bytes, width_}, format_,
                         memory_.data() + row * row_bytes()))
        beyond = true;
    }
  });
  fits_ = !beyond;
}

void embedding::read(std::size_t token, float* out) const {
  const std::byte* from = memory_.data() + token * row_bytes();
  switch (format_) {
    case matrix_format::f32: std::memcpy(out, from, width_ * sizeof(float)); break;
    case matrix_format::bf16: widen_row<bf16_to_f32>(from, width_, out); break;
    case matrix_format::f16: widen_row<f16_to_f32>(from, width_, out); break;
  }
}

}  // namespace skein::kernels::cpu
