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

  void load(const tensor_view& view, bool transposed, device_matrix& to) {
    const tensor_view from = as_matrix(view, transposed);
    const auto outputs = static_cast<std::uint32_t>(from.shape[0]), inputs = static_cast<std::uint32_t>(from.shape[1]);
    to = {place(from, type_, padded(outputs), padded(inputs)), outputs, inputs};
  }
  void load(const tensor_view& view, bool, device_vector& to) {
    tensor_view line = view;
    if (line.shape.size() == 1) line.shape.insert(line.shape.begin(), 1), line.stride.insert(line.stride.begin(), 0);
    const auto height = static_cast<std::uint32_t>(line.shape[0]), width = static_cast<std::uint32_t>(line.shape[1]);
    to.data = reinterpret_cast<const float*>(place(line, element::f32, height, width));
  }

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

/// A state that belongs to a model is not a weight.
bool is_weight(const tensor_spec& spec) { return spec.name != "att.time_state"; }

void load_model(const rwkv7_weights& from, loader& load, device_rwkv7& to) {
  const auto load_one = [&](const tensor_spec& spec, const tensor_view& view, auto& tensor) {
    if (view.data && is_weight(spec)) load.load(view, spec.transposed, tensor);
  };
  to.layers.clear();
  outer_weights_of<device_types>::for_each_tensor(load_one, from, to);
  for (const rwkv7_layer& layer : from.layers) device_layer::for_each_tensor(load_one, layer, to.layers.emplace_back());
}

/// The size of the weights in the checkpoint.
std::uint64_t source_bytes(const rwkv7_weights& weights) {
  std::uint64_t bytes = 0;
  for_each_view(weights, [&](const tensor_spec& spec, const tensor_view& view) {
    if (is_weight(spec)) bytes += static_cast<std::uint64_t>(view.elements()) * dtype_bytes(view.type);
  });
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
