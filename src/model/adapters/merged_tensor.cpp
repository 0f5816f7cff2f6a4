#include "model/adapters/merged_tensor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

namespace skein::model {
namespace {

constexpr std::size_t block_rows = 32;  // a task; 4 MiB of fp64 at the widest released matrix

double element_at(const std::byte* from, dtype type) {
  if (type == dtype::f64) {
    double value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  if (type == dtype::f32) {
    float value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return type == dtype::bf16 ? bf16_to_f32(bits) : f16_to_f32(bits);
}

/// Elements [begin, begin + count) in row-major order.
void widen(const tensor_view& view, std::size_t begin, std::size_t count, double* to) {
  const auto bytes = static_cast<std::ptrdiff_t>(dtype_bytes(view.type));
  std::vector<std::size_t> index(view.shape.size());
  std::size_t rest = begin;
  for (std::size_t d = index.size(); d-- > 0;) {
    index[d] = rest % static_cast<std::size_t>(view.shape[d]);
    rest /= static_cast<std::size_t>(view.shape[d]);
  }
  for (std::size_t i = 0; i < count;) {
    std::ptrdiff_t at = 0;
    for (std::size_t d = 0; d < index.size(); ++d)
      at += static_cast<std::ptrdiff_t>(index[d]) * static_cast<std::ptrdiff_t>(view.stride[d]);
    const std::size_t last = index.size() - 1;
    const std::size_t line = index.empty() ? 1 : static_cast<std::size_t>(view.shape[last]) - index[last];
    const std::ptrdiff_t distance = index.empty() ? 0 : static_cast<std::ptrdiff_t>(view.stride[last]) * bytes;
    const std::size_t here = std::min(line, count - i);
    const std::byte* from = view.data + at * bytes;
    for (std::size_t j = 0; j < here; ++j, from += distance) to[i + j] = element_at(from, view.type);
    i += here;
    if (index.empty()) continue;
    index[last] = 0;
    for (std::size_t d = last; d-- > 0;) {
      if (++index[d] < static_cast<std::size_t>(view.shape[d])) break;
      index[d] = 0;
    }
  }
}

std::vector<double> widened(const tensor_view& view) {
  std::vector<double> values(view.data ? static_cast<std::size_t>(view.elements()) : 0);
  if (!values.empty()) widen(view, 0, values.size(), values.data());
  return values;
}

/// The fp32 value from which a 16-bit type rounds to the value nearest to `exact`: rounded to odd, so that the second
/// rounding decides as if it were the only one.
float rounded_to_odd(double exact) {
  const auto nearest = static_cast<float>(exact);
  const auto back = static_cast<double>(nearest);
  if (back == exact || !std::isfinite(nearest)) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::abs(back) > std::abs(exact)) --bits;  // towards zero
  return std::bit_cast<float>(bits | 1u);
}

void store(double value, dtype type, std::byte* to) {
  if (type == dtype::f64) {
    std::memcpy(to, &value, sizeof value);
  } else if (type == dtype::f32) {
    const auto rounded = static_cast<float>(value);
    std::memcpy(to, &rounded, sizeof rounded);
  } else {
    const float odd = rounded_to_odd(value);
    const std::uint16_t rounded = type == dtype::bf16 ? f32_to_bf16(odd) : f32_to_f16(odd);
    std::memcpy(to, &rounded, sizeof rounded);
  }
}

/// One part with its tensors in fp64.
struct wide_part {
  explicit wide_part(const adapter_part& from)
      : part(&from),
        first(from.kind == adapter_kind::replacement ? std::vector<double>() : widened(from.first)),
        second(widened(from.second)),
        third(widened(from.third)) {}
  const adapter_part* part;
  std::vector<double> first, second, third;
  std::vector<double> norms;  ///< dora_columns: of the columns, after LoRA
};

/// Some rows of the matrix.
struct row_block {
  std::size_t first = 0, rows = 0, width = 0;
  std::vector<double> values;
  double* row(std::size_t r) { return values.data() + r * width; }
};

void add_product(const wide_part& of, double scale, row_block& to) {
  const auto rank = static_cast<std::size_t>(of.part->first.shape[0]);
  for (std::size_t r = 0; r < to.rows; ++r) {
    double* const row = to.row(r);
    for (std::size_t k = 0; k < rank; ++k) {
      const double factor = scale * of.second[(to.first + r) * rank + k];
      const double* const down = of.first.data() + k * to.width;
      for (std::size_t i = 0; i < to.width; ++i) row[i] += factor * down[i];
    }
  }
}

/// block += scale * (block G + G): each row of a block depends on itself only.
void add_blocks(const wide_part& of, row_block& to) {
  const auto r = static_cast<std::size_t>(of.part->first.shape[1]);
  const bool by_rows = of.part->kind == adapter_kind::bone_rows;
  std::vector<double> change(r);
  for (std::size_t at = 0; at < to.rows; ++at) {
    const std::size_t output = to.first + at;
    for (std::size_t b = 0; b < to.width / r; ++b) {
      const double* const g = of.first.data() + (by_rows ? output / r : b) * r * r;
      double* const part = to.row(at) + b * r;
      std::copy_n(g + output % r * r, r, change.data());
      for (std::size_t k = 0; k < r; ++k)
        for (std::size_t c = 0; c < r; ++c) change[c] += part[k] * g[k * r + c];
      for (std::size_t c = 0; c < r; ++c) part[c] += of.part->scale * change[c];
    }
  }
}

void add_repeated(const wide_part& of, row_block& to) {
  const auto r = static_cast<std::size_t>(of.part->first.shape[0]);
  const auto columns = static_cast<std::size_t>(of.part->first.shape[1]);
  for (std::size_t at = 0; at < to.rows; ++at)
    for (std::size_t i = 0; i < to.width; ++i)
      to.row(at)[i] += of.part->scale * of.first[i % r * columns + (to.first + at) % columns];
}

void apply(const wide_part& of, row_block& to) {
  switch (of.part->kind) {
    case adapter_kind::replacement:
      return widen(of.part->first, to.first * to.width, to.values.size(), to.values.data());
    case adapter_kind::pissa_start: return add_product(of, -1, to);
    case adapter_kind::bone_columns:
    case adapter_kind::bone_rows: return add_blocks(of, to);
    case adapter_kind::miss: return add_repeated(of, to);
    case adapter_kind::lora:
    case adapter_kind::dora_columns:
    case adapter_kind::dora_rows: add_product(of, of.part->scale, to);
  }
  for (std::size_t r = 0; r < to.rows && of.part->kind != adapter_kind::lora; ++r) {
    double* const row = to.row(r);
    if (of.part->kind == adapter_kind::dora_columns) {
      for (std::size_t i = 0; i < of.norms.size(); ++i) row[i] *= of.third[i] / (of.norms[i] + 1e-6);
    } else {
      double square = 0;
      for (std::size_t i = 0; i < to.width; ++i) square += row[i] * row[i];
      const double factor = of.third[to.first + r] / std::sqrt(square);
      for (std::size_t i = 0; i < to.width; ++i) row[i] *= factor;
    }
  }
}

/// The rows of a matrix, a block at a time; a tensor of another shape is one row for each of its lines.
class merger {
 public:
  merger(const tensor_view& base, std::span<const adapter_part* const> parts, kernels::cpu::thread_pool& pool)
      : base_(base), pool_(pool) {
    width_ = base.shape.empty() ? 1 : static_cast<std::size_t>(base.shape.back());
    rows_ = static_cast<std::size_t>(base.elements()) / width_;
    for (const adapter_part* part : parts) {
      wide_part next(*part);
      if (part->kind == adapter_kind::dora_columns) next.norms = norms_after(next);
      parts_.push_back(std::move(next));
    }
  }

  void write(std::byte* out) const {
    const std::size_t bytes = dtype_bytes(base_.type);
    each_block([&](const row_block& block, std::size_t) {
      std::byte* to = out + block.first * width_ * bytes;
      for (const double value : block.values) store(value, base_.type, to), to += bytes;
    });
  }

 private:
  /// visit(block after all parts so far, its number), with all cores.
  template <typename Visit>
  void each_block(const Visit& visit) const {
    pool_.run((rows_ + block_rows - 1) / block_rows, [&](std::size_t number, std::uint32_t) {
      row_block block{number * block_rows, std::min(block_rows, rows_ - number * block_rows), width_, {}};
      block.values.resize(block.rows * width_);
      widen(base_, block.first * width_, block.values.size(), block.values.data());
      for (const wide_part& part : parts_) apply(part, block);
      visit(block, number);
    });
  }

  /// Of the columns once this part has added its product. Summed in an order that does not depend on the cores.
  [[nodiscard]] std::vector<double> norms_after(const wide_part& next) const {
    std::vector<std::vector<double>> squares((rows_ + block_rows - 1) / block_rows);
    each_block([&](row_block& block, std::size_t number) {
      add_product(next, next.part->scale, block);
      squares[number].assign(width_, 0);
      for (std::size_t r = 0; r < block.rows; ++r)
        for (std::size_t i = 0; i < width_; ++i) squares[number][i] += block.row(r)[i] * block.row(r)[i];
    });
    std::vector<double> norms(width_, 0);
    for (const auto& some : squares)
      for (std::size_t i = 0; i < width_; ++i) norms[i] += some[i];
    for (double& norm : norms) norm = std::sqrt(norm);
    return norms;
  }

  const tensor_view& base_;
  kernels::cpu::thread_pool& pool_;
  std::size_t rows_, width_;
  std::vector<wide_part> parts_;
};

}  // namespace

void write_merged(const tensor_view& base, std::span<const adapter_part* const> parts, std::byte* out,
                  kernels::cpu::thread_pool& pool) {
  merger(base, parts, pool).write(out);
}

}  // namespace skein::model
