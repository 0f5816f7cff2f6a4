#include "kernels/gpu/model/device_weights.hpp"

#include <optional>
#include <utility>

#include "kernels/gpu/model/weight_upload.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr std::size_t alignment = 256;

/// A view with rows and columns: vectors are one row, (H, N) and the like one row of all their elements.
tensor_view as_matrix(const tensor_view& view, bool transposed) {
  tensor_view matrix = view;
  if (transposed) {
    std::swap(matrix.shape[0], matrix.shape[1]);
    std::swap(matrix.stride[0], matrix.stride[1]);
  }
  return matrix;
}

/// Assigns every tensor its place and, in a second pass, hands it to the upload. Both passes request the same tensors
/// in the same order.
class loader {
 public:
  loader(element type, const load_progress& progress, std::uint64_t total)
      : type_(type), progress_(progress), total_(total) {}

  /// Ends the first pass.
  device_buffer<std::byte> allocate() {
    device_buffer<std::byte> memory(used_, "the weights");
    base_ = memory.data();
    used_ = 0;
    upload_.emplace(progress_, total_);
    return memory;
  }
  void finish() { upload_->run(); }
  /// The size of the places assigned so far in this pass.
  [[nodiscard]] std::size_t bytes() const { return used_; }

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
    if (upload_) upload_->add(at, from, type, height, width);
    return at;
  }

  const element type_;
  const load_progress progress_;
  const std::uint64_t total_;
  std::byte* base_ = nullptr;
  std::size_t used_ = 0;
  std::optional<weight_upload> upload_;  ///< from the second pass on
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

/// The size of the checkpoint; a state that belongs to a model is not a weight.
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

std::size_t device_weight_bytes(const rwkv7_weights& weights, element type) {
  device_rwkv7 places;
  loader load(type, {}, 0);
  load_model(weights, load, places);
  return load.bytes();
}

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
