#include "cli/convert/tensor_writer.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "kernels/cpu/matrix_format.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "kernels/weights/file_blocks.hpp"

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

bool is_quantised(const conversion& each) { return each.to && each.to->quantised(); }

std::uint64_t elements_of(const conversion& each) { return static_cast<std::uint64_t>(each.from->view.elements()); }

/// The elements of a view in row-major order, as lines with a constant distance between elements.
class row_major_lines {
 public:
  explicit row_major_lines(const tensor_view& view)
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

/// Some elements of one tensor, or some rows of one that is quantised: the work of one thread at a time.
struct tensor_part {
  const conversion* of;
  std::uint64_t begin, end;
  std::uint64_t first_byte;   ///< of the elements or codes, in the data of the file
  std::uint64_t first_scale;  ///< likewise; of a quantised tensor
};

constexpr std::uint64_t part_elements = 1u << 20;

struct quantised_sizes {
  explicit quantised_sizes(const conversion& of)
      : rows(static_cast<std::uint64_t>(of.from->view.shape[0])),
        columns(static_cast<std::uint64_t>(of.from->view.shape[1])),
        code_bytes((columns * kernels::code_bits(of.to->element) + 7) / 8),
        groups((columns + of.to->group - 1) / of.to->group) {}
  std::uint64_t rows, columns;
  std::uint64_t code_bytes, groups;  ///< of a row
};

std::vector<tensor_part> parts_of(std::span<const conversion> all) {
  std::vector<tensor_part> parts;
  std::uint64_t at = 0;
  for (const auto& each : all) {
    if (is_quantised(each)) {
      const quantised_sizes of(each);
      const std::uint64_t scales = at + of.rows * of.code_bytes;
      const std::uint64_t step = std::max<std::uint64_t>(part_elements / of.columns, 1);
      for (std::uint64_t begin = 0; begin < of.rows; begin += step)
        parts.push_back({&each, begin, std::min(of.rows, begin + step), at + begin * of.code_bytes,
                         scales + begin * of.groups * sizeof(std::uint16_t)});
      at = scales + of.rows * of.groups * sizeof(std::uint16_t);
      continue;
    }
    const std::uint64_t elements = elements_of(each), bytes = dtype_bytes(type_of(each));
    for (std::uint64_t begin = 0; begin < elements; begin += part_elements)
      parts.push_back({&each, begin, std::min(elements, begin + part_elements), at + begin * bytes, 0});
    at += elements * bytes;
  }
  return parts;
}

/// False if a finite element became infinite.
bool write_elements(const tensor_part& what, safetensors_writer& to, std::vector<std::byte>& buffer) {
  const dtype type = type_of(*what.of);
  const auto format = what.of->to ? kernels::cpu::format_for(type) : std::nullopt;
  const std::size_t bytes = dtype_bytes(type);
  buffer.resize(static_cast<std::size_t>(what.end - what.begin) * bytes);
  std::byte* at = buffer.data();
  bool fits = true;
  row_major_lines(what.of->from->view).each(what.begin, what.end, [&](const element_line& line) {
    if (format)
      fits &= kernels::cpu::copy_elements(line, *format, at);
    else
      copy_bits(line, at);
    at += line.count * bytes;
  });
  to.write(what.first_byte, buffer);
  return fits;
}

/// Writes one row in a quantised format: its codes, and a scale for each group. group_of(first, codes) makes the codes
/// of a group and returns the bits of its scale.
template <typename Group>
void write_row(std::size_t columns, kernels::weight_format format, std::byte* codes, std::byte* scales,
               const Group& group_of) {
  std::uint8_t of_group[128];
  for (std::size_t first = 0; first < columns; first += format.group) {
    const auto group = std::span(of_group).first(std::min<std::size_t>(format.group, columns - first));
    const std::uint16_t scale = group_of(first, group);
    std::memcpy(scales, &scale, sizeof scale);
    scales += sizeof scale;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::size_t at = first + i;
      if (kernels::code_bits(format.element) == 8)
        codes[at] = static_cast<std::byte>(group[i]);
      else if (at % 2 == 0)
        codes[at / 2] = static_cast<std::byte>(group[i]);
      else
        codes[at / 2] |= static_cast<std::byte>(group[i] << 4);
    }
  }
}

void write_quantised(const tensor_part& what, safetensors_writer& to, std::vector<std::byte>& buffer) {
  const quantised_sizes of(*what.of);
  const auto rows = static_cast<std::size_t>(what.end - what.begin);
  const auto code_bytes = static_cast<std::size_t>(of.code_bytes);
  const std::size_t scale_bytes = static_cast<std::size_t>(of.groups) * sizeof(std::uint16_t);
  buffer.resize(rows * (code_bytes + scale_bytes));
  std::byte *codes = buffer.data(), *scales = codes + rows * code_bytes;
  const auto columns = static_cast<std::size_t>(of.columns);
  const kernels::weight_format format = *what.of->to;
  const tensor_view& view = what.of->from->view;
  if (keeps_codes(*what.of)) {
    for (std::uint64_t row = what.begin; row < what.end; ++row, codes += code_bytes, scales += scale_bytes)
      write_row(columns, format, codes, scales, [&](std::size_t first, std::span<std::uint8_t> group) {
        return f32_to_f16(kernels::read_block(view, static_cast<std::size_t>(row), first, group));
      });
  } else {
    std::vector<float> weights(columns);
    row_major_lines(view).each(what.begin * of.columns, what.end * of.columns, [&](const element_line& line) {
      kernels::cpu::copy_elements(line, matrix_format::f32, reinterpret_cast<std::byte*>(weights.data()));
      const std::uint16_t of_row = kernels::row_scale(format.element, weights);
      write_row(columns, format, codes, scales, [&](std::size_t first, std::span<std::uint8_t> group) {
        return kernels::quantise_group(format.element, std::span(weights).subspan(first, group.size()), group, of_row);
      });
      codes += code_bytes;
      scales += scale_bytes;
    });
  }
  to.write(what.first_byte, std::span(buffer).first(rows * code_bytes));
  to.write(what.first_scale, std::span(buffer).subspan(rows * code_bytes));
}

}  // namespace

bool keeps_codes(const conversion& each) { return is_quantised(each) && kernels::stored_in(*each.to, each.from->view); }

std::vector<safetensors_writer::entry> entries_of(std::span<const conversion> all) {
  std::vector<safetensors_writer::entry> entries;
  for (const auto& each : all) {
    if (!is_quantised(each)) {
      entries.push_back({each.from->name, type_of(each), each.from->view.shape});
      continue;
    }
    const quantised_sizes of(each);
    const auto rows = static_cast<std::int64_t>(of.rows);
    const kernels::weight_format plain{each.to->element, kernels::default_group};
    entries.push_back({each.from->name + '.' + kernels::to_string(plain),
                       each.to->element == kernels::weight_element::int8 ? dtype::i8 : dtype::u8,
                       {rows, static_cast<std::int64_t>(of.code_bytes)}});
    entries.push_back({each.from->name + ".scales",
                       keeps_codes(each) ? dtype::f16 : dtype::bf16,
                       {rows, static_cast<std::int64_t>(of.groups)}});
  }
  return entries;
}

result<void> write_tensors(std::span<const conversion> all, safetensors_writer& to,
                           const std::function<void(std::uint64_t done, std::uint64_t total)>& progress) {
  const auto parts = parts_of(all);
  std::uint64_t total = 0;
  for (const auto& each : all) total += elements_of(each);
  std::atomic<std::uint64_t> done{0};
  kernels::cpu::thread_pool pool(0);
  std::atomic<const conversion*> beyond{nullptr};
  std::vector<std::vector<std::byte>> buffers(pool.threads());
  pool.run(parts.size(), [&](std::size_t i, std::uint32_t thread) {
    const tensor_part& what = parts[i];
    const bool quantised = is_quantised(*what.of);
    if (quantised)
      write_quantised(what, to, buffers[thread]);
    else if (!write_elements(what, to, buffers[thread]))
      beyond = what.of;
    const std::uint64_t each = quantised ? static_cast<std::uint64_t>(what.of->from->view.shape[1]) : 1;
    const std::uint64_t now = done += (what.end - what.begin) * each;
    if (thread == 0) progress(now, total);
  });
  if (const conversion* each = beyond)
    return kernels::cpu::beyond_format(each->from->name, *kernels::cpu::format_for(type_of(*each)));
  return {};
}

}  // namespace skein::cli
