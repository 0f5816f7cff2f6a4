#include "kernels/gpu/device_weights.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr std::size_t piece_bytes = std::size_t{16} << 20;  // of pinned memory; two are in flight
constexpr std::size_t alignment = 256;

constexpr dtype stored_as(element e) {
  return e == element::f32 ? dtype::f32 : e == element::f16 ? dtype::f16 : dtype::bf16;
}

/// Two pinned pieces that take turns: one is filled while the other is copied.
class staging {
 public:
  explicit staging(std::size_t bytes) : pieces_{piece(bytes), piece(bytes)} {}

  /// Memory to fill; what lay there is on the device.
  [[nodiscard]] std::span<std::byte> next() {
    turn_ ^= 1;
    require(pieces_[turn_].copied.synchronize());
    return pieces_[turn_].memory.all();
  }
  /// Sends the first `bytes` of what next() gave.
  void send(std::byte* to, std::size_t bytes) {
    require(copy_to_device(to, pieces_[turn_].memory.data(), bytes, stream_));
    require(pieces_[turn_].copied.record(stream_));
  }
  void finish() const { require(stream_.synchronize()); }

 private:
  struct piece {
    explicit piece(std::size_t bytes) : memory(bytes) {}
    pinned_buffer<std::byte> memory;
    event copied;
  };
  stream stream_;
  std::array<piece, 2> pieces_;
  std::size_t turn_ = 0;
};

/// A view with rows and columns: vectors are one row, (H, N) and the like one row of all their elements.
tensor_view as_matrix(const tensor_view& view, bool transposed) {
  tensor_view matrix = view;
  if (transposed) {
    std::swap(matrix.shape[0], matrix.shape[1]);
    std::swap(matrix.stride[0], matrix.stride[1]);
  }
  return matrix;
}

/// Rows `first` .. `first` + `count` of a two-dimensional view.
tensor_view rows_of(const tensor_view& matrix, std::int64_t first, std::int64_t count) {
  tensor_view rows = matrix;
  rows.data += first * matrix.stride[0] * static_cast<std::int64_t>(dtype_bytes(matrix.type));
  rows.shape[0] = count;
  return rows;
}

void encode(std::span<const float> values, element type, std::byte* to) {
  const auto put = [&](auto convert) {
    for (const float value : values) {
      const auto element = convert(value);
      std::memcpy(to, &element, sizeof element);
      to += sizeof element;
    }
  };
  switch (type) {
    case element::f32: return put([](float v) { return v; });
    case element::f16: return put(f32_to_f16);
    case element::bf16: return put(f32_to_bf16);
  }
}

/// Gives every tensor its place, and in a second pass fills it. Both passes ask for the same tensors in the same order.
class loader {
 public:
  loader(element type, const load_progress& progress, std::uint64_t total)
      : type_(type), progress_(progress), total_(total) {}

  /// Ends the first pass.
  device_buffer<std::byte> allocate() {
    device_buffer<std::byte> memory(used_, "the weights");
    base_ = memory.data();
    used_ = 0;
    staging_.emplace(piece_bytes);
    return memory;
  }
  void finish() const { staging_->finish(); }

  device_matrix matrix(const tensor_view& view, bool transposed = false) {
    const tensor_view from = as_matrix(view, transposed);
    const auto outputs = static_cast<std::uint32_t>(from.shape[0]), inputs = static_cast<std::uint32_t>(from.shape[1]);
    return {place(from, type_, padded(outputs), padded(inputs)), outputs, inputs};
  }
  const float* values(const tensor_view& view) {
    tensor_view line = view;
    if (line.shape.size() == 1) line.shape.insert(line.shape.begin(), 1), line.stride.insert(line.stride.begin(), 0);
    const auto height = static_cast<std::uint32_t>(line.shape[0]), width = static_cast<std::uint32_t>(line.shape[1]);
    return reinterpret_cast<const float*>(place(line, element::f32, height, width));
  }
  norm_weights norm(const tensor_view& weight, const tensor_view& bias) { return {values(weight), values(bias)}; }

 private:
  std::byte* place(const tensor_view& from, element type, std::uint32_t height, std::uint32_t width) {
    std::byte* const at = base_ + used_;
    used_ += (std::size_t{height} * width * element_bytes(type) + alignment - 1) / alignment * alignment;
    if (staging_) fill(at, from, type, height, width);
    return at;
  }

  void fill(std::byte* to, const tensor_view& from, element type, std::uint32_t height, std::uint32_t width) {
    const std::size_t row_bytes = width * element_bytes(type);
    check(row_bytes <= piece_bytes);
    const auto rows_each = static_cast<std::uint32_t>(piece_bytes / row_bytes);
    for (std::uint32_t first = 0; first < height; first += rows_each) {
      const std::uint32_t count = std::min(rows_each, height - first);
      const std::span<std::byte> piece = staging_->next().first(count * row_bytes);
      fill_rows(piece, from, type, first, count, row_bytes);
      staging_->send(to + first * row_bytes, piece.size());
    }
    done_ += static_cast<std::uint64_t>(from.elements()) * dtype_bytes(from.type);
    if (progress_.report) progress_.report(progress_.context, done_, total_);
  }

  void fill_rows(std::span<std::byte> piece, const tensor_view& from, element type, std::uint32_t first,
                 std::uint32_t count, std::size_t row_bytes) {
    const std::int64_t present = std::clamp<std::int64_t>(from.shape[0] - first, 0, count);
    const auto columns = static_cast<std::size_t>(from.shape[1]), bytes = columns * element_bytes(type);
    const bool as_it_is = from.type == stored_as(type) && from.stride[1] == 1;
    if (present < count || bytes < row_bytes) std::ranges::fill(piece, std::byte{0});
    scratch_.resize(columns);
    for (std::int64_t r = 0; r < present; ++r) {
      std::byte* const to = piece.data() + static_cast<std::size_t>(r) * row_bytes;
      const tensor_view row = rows_of(from, first + r, 1);
      if (as_it_is) {
        std::memcpy(to, row.data, bytes);
      } else {
        copy_to_f32(row, scratch_);
        encode(scratch_, type, to);
      }
    }
  }

  const element type_;
  const load_progress progress_;
  const std::uint64_t total_;
  std::uint64_t done_ = 0;
  std::byte* base_ = nullptr;
  std::size_t used_ = 0;
  std::optional<staging> staging_;  ///< from the second pass on
  std::vector<float> scratch_;
};

device_layer load_layer(const rwkv7_layer& from, bool first, loader& load) {
  device_layer l;
  l.ln1 = load.norm(from.ln1_weight, from.ln1_bias), l.ln2 = load.norm(from.ln2_weight, from.ln2_bias);
  l.x_r = load.values(from.x_r), l.x_w = load.values(from.x_w), l.x_k = load.values(from.x_k);
  l.x_v = load.values(from.x_v), l.x_a = load.values(from.x_a), l.x_g = load.values(from.x_g);
  l.w0 = load.values(from.w0), l.w1 = load.matrix(from.w1, true), l.w2 = load.matrix(from.w2, true);
  l.a0 = load.values(from.a0), l.a1 = load.matrix(from.a1, true), l.a2 = load.matrix(from.a2, true);
  if (!first) l.v0 = load.values(from.v0), l.v1 = load.matrix(from.v1, true), l.v2 = load.matrix(from.v2, true);
  l.g1 = load.matrix(from.g1, true), l.g2 = load.matrix(from.g2, true);
  l.k_k = load.values(from.k_k), l.k_a = load.values(from.k_a), l.r_k = load.values(from.r_k);
  l.receptance = load.matrix(from.receptance), l.key = load.matrix(from.key);
  l.value = load.matrix(from.value), l.output = load.matrix(from.output);
  l.ln_x_weight = load.values(from.ln_x_weight), l.ln_x_bias = load.values(from.ln_x_bias);
  l.ffn_x_k = load.values(from.ffn_x_k);
  l.ffn_key = load.matrix(from.ffn_key), l.ffn_value = load.matrix(from.ffn_value);
  return l;
}

void load_model(const rwkv7_weights& from, loader& load, device_rwkv7& to) {
  to.layers.clear();
  to.emb = load.matrix(from.emb);
  to.ln0 = load.norm(from.ln0_weight, from.ln0_bias);
  for (const rwkv7_layer& layer : from.layers) to.layers.push_back(load_layer(layer, to.layers.empty(), load));
  to.ln_out = load.norm(from.ln_out_weight, from.ln_out_bias);
  to.head = load.matrix(from.head);
}

/// Of the checkpoint; states that come with a model are not weights.
std::uint64_t source_bytes(const rwkv7_weights& weights) {
  std::uint64_t bytes = 0;
  for (const tensor_view* view : all_views(weights))
    bytes += static_cast<std::uint64_t>(view->elements()) * dtype_bytes(view->type);
  for (const rwkv7_layer& layer : weights.layers)
    if (layer.time_state.data)
      bytes -= static_cast<std::uint64_t>(layer.time_state.elements()) * dtype_bytes(layer.time_state.type);
  return bytes;
}

}  // namespace

device_rwkv7 upload(const rwkv7_weights& weights, element type, const load_progress& progress) {
  device_rwkv7 model;
  loader load(type, progress, source_bytes(weights));
  load_model(weights, load, model);
  model.memory = load.allocate();
  load_model(weights, load, model);
  load.finish();
  return model;
}

}  // namespace skein::kernels::gpu
