#include "cli/convert/tensor_writer.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "kernels/cpu/matrix_format.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace skein::cli {
namespace {

using kernels::cpu::element_line;
using kernels::cpu::matrix_format;

dtype type_of(kernels::weight_element element) {
  switch (element) {
    case kernels::weight_element::bf16: return dtype::bf16;
    case kernels::weight_element::f16: return dtype::f16;
    default: return dtype::f32;
  }
}

dtype type_of(const conversion& each) { return each.to ? type_of(each.to->element) : each.from->view.type; }

std::uint64_t elements_of(const conversion& each) { return static_cast<std::uint64_t>(each.from->view.elements()); }

/// The elements of a view in row-major order, as lines with a constant distance between elements.
class lines_of {
 public:
  explicit lines_of(const tensor_view& view)
      : view_(view), width_(view.shape.empty() ? 1 : static_cast<std::uint64_t>(view.shape.back())) {}

  /// visit(line) for each part of a line of the elements [begin, end).
  template <typename Visit>
  void each(std::uint64_t begin, std::uint64_t end, const Visit& visit) const {
    const auto bytes = static_cast<std::ptrdiff_t>(dtype_bytes(view_.type));
    const std::ptrdiff_t distance = view_.shape.empty() ? bytes : view_.stride.back() * bytes;
    while (begin < end) {
      const std::uint64_t column = begin % width_, count = std::min(width_ - column, end - begin);
      visit(element_line{view_.data + start_of(begin / width_) * bytes + static_cast<std::ptrdiff_t>(column) * distance,
                         view_.type, distance, static_cast<std::size_t>(count)});
      begin += count;
    }
  }

 private:
  /// Of a line, in elements.
  [[nodiscard]] std::ptrdiff_t start_of(std::uint64_t line) const {
    std::ptrdiff_t start = 0;
    for (std::size_t d = view_.shape.size(); d-- > 1;) {
      const auto extent = static_cast<std::uint64_t>(view_.shape[d - 1]);
      start += static_cast<std::ptrdiff_t>(line % extent) * static_cast<std::ptrdiff_t>(view_.stride[d - 1]);
      line /= extent;
    }
    return start;
  }

  const tensor_view& view_;
  std::uint64_t width_;
};

void copy_bits(const element_line& from, std::byte* to) {
  const std::size_t bytes = dtype_bytes(from.type);
  if (from.stride == static_cast<std::ptrdiff_t>(bytes)) {
    std::memcpy(to, from.data, from.count * bytes);
    return;
  }
  for (std::size_t i = 0; i < from.count; ++i)
    std::memcpy(to + i * bytes, from.data + static_cast<std::ptrdiff_t>(i) * from.stride, bytes);
}

/// Some elements of one tensor: the work of one thread at a time.
struct piece {
  const conversion* of;
  std::uint64_t begin, end;
  std::uint64_t first_byte;  ///< in the data of the file
};

constexpr std::uint64_t piece_elements = 1u << 20;

std::vector<piece> pieces_of(std::span<const conversion> all) {
  std::vector<piece> pieces;
  std::uint64_t at = 0;
  for (const auto& each : all) {
    const std::uint64_t elements = elements_of(each), bytes = dtype_bytes(type_of(each));
    for (std::uint64_t begin = 0; begin < elements; begin += piece_elements)
      pieces.push_back({&each, begin, std::min(elements, begin + piece_elements), at + begin * bytes});
    at += elements * bytes;
  }
  return pieces;
}

void write_piece(const piece& what, safetensors_writer& to, std::vector<std::byte>& buffer) {
  const dtype type = type_of(*what.of);
  const auto format = what.of->to ? kernels::cpu::format_for(type) : std::nullopt;
  const std::size_t bytes = dtype_bytes(type);
  buffer.resize(static_cast<std::size_t>(what.end - what.begin) * bytes);
  std::byte* at = buffer.data();
  lines_of(what.of->from->view).each(what.begin, what.end, [&](const element_line& line) {
    if (format)
      kernels::cpu::copy_elements(line, *format, at);
    else
      copy_bits(line, at);
    at += line.count * bytes;
  });
  to.write(what.first_byte, buffer);
}

}  // namespace

std::vector<safetensors_writer::entry> entries_of(std::span<const conversion> all) {
  std::vector<safetensors_writer::entry> entries;
  for (const auto& each : all) entries.push_back({each.from->name, type_of(each), each.from->view.shape});
  return entries;
}

void write_tensors(std::span<const conversion> all, safetensors_writer& to,
                   const std::function<void(std::uint64_t done, std::uint64_t total)>& progress) {
  const auto pieces = pieces_of(all);
  std::uint64_t total = 0;
  for (const auto& each : all) total += elements_of(each);
  std::atomic<std::uint64_t> done{0};
  kernels::cpu::thread_pool pool(0);
  std::vector<std::vector<std::byte>> buffers(pool.threads());
  pool.run(pieces.size(), [&](std::size_t i, std::uint32_t thread) {
    write_piece(pieces[i], to, buffers[thread]);
    const std::uint64_t now = done += pieces[i].end - pieces[i].begin;
    if (thread == 0) progress(now, total);
  });
}

}  // namespace skein::cli
