#include "kernels/gpu/model/device_weights.hpp"

#include <optional>
#include <tuple>
#include <utility>

#include "kernels/gpu/gemm/round_rows.hpp"
#include "kernels/gpu/model/upload/weight_upload.hpp"
#include "kernels/gpu/types/coded_layout.hpp"

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
  loader(const matrix_formats& formats, const load_progress& progress, std::uint64_t total)
      : formats_(formats), progress_(progress), total_(total) {}

  /// The layer of the tensors that follow; 0 for those outside of the layers.
  void begin_layer(std::uint32_t layer) { layer_ = layer; }

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

  void load(const tensor_spec& spec, const tensor_view& view, device_matrix& to) {
    const tensor_view from = as_matrix(view, spec.transposed);
    if (spec.shape[1] == extent::five_rank_x) return load_pairs(from, to);
    const auto outputs = static_cast<std::uint32_t>(from.shape[0]), inputs = static_cast<std::uint32_t>(from.shape[1]);
    const weight_format planned = formats_.plan ? formats_.plan->of(spec, layer_) : weight_format{};
    to = {nullptr, outputs, inputs, planned.quantised() ? planned : row_format(formats_.type), nullptr};
    const bool rounds = formats_.rounds_inputs && inputs <= rounded_inputs_max;  // a file may have wider ones
    if (planned.element == weight_element::fp8 && rounds) return place_rows(from, to);
    to.data = planned.quantised() ? place(from, planned, padded(outputs), padded(inputs))
                                  : place(from, formats_.type, padded(outputs), padded(inputs));
  }
  void load(const tensor_spec& spec, const tensor_view& view, device_types::stack& to) {
    for (std::size_t i = 0; i < to.size(); ++i)
      load({spec.name, {spec.shape[1], spec.shape[2]}, spec.when, spec.transposed}, matrix_of(view, i), to[i]);
  }
  void load(const tensor_spec&, const tensor_view& view, device_vector& to) {
    tensor_view line = view;
    if (line.shape.size() == 1) line.shape.insert(line.shape.begin(), 1), line.stride.insert(line.stride.begin(), 0);
    const auto height = static_cast<std::uint32_t>(line.shape[0]), width = static_cast<std::uint32_t>(line.shape[1]);
    to.data = reinterpret_cast<const float*>(place(line, element::f32, height, width));
  }

 private:
  /// Five matrices, one behind the other.
  void load_pairs(const tensor_view& from, device_matrix& to) {
    constexpr std::uint32_t pairs = std::tuple_size_v<device_types::stack>;
    const auto rank = static_cast<std::uint32_t>(from.shape[0]) / pairs;
    const auto inputs = static_cast<std::uint32_t>(from.shape[1]);
    for (std::uint32_t i = 0; i < pairs; ++i) {
      tensor_view pair = from;
      pair.shape[0] = rank;
      pair.data += i * rank * from.stride[0] * static_cast<std::int64_t>(dtype_bytes(from.type));
      const std::byte* const at = place(pair, formats_.type, padded(rank), padded(inputs));
      if (i == 0) to = {at, pairs * padded(rank), inputs, row_format(formats_.type), nullptr};
    }
  }
  [[nodiscard]] std::byte* next() const { return base_ == nullptr ? nullptr : base_ + used_; }  // nullptr: only counts
  std::byte* place(const tensor_view& from, element type, std::uint32_t height, std::uint32_t width) {
    std::byte* const at = next();
    used_ += (std::size_t{height} * width * element_bytes(type) + alignment - 1) / alignment * alignment;
    if (upload_) upload_->add(at, from, type, height, width);
    return at;
  }

  std::byte* place(const tensor_view& from, weight_format format, std::uint32_t height, std::uint32_t width) {
    std::byte* const at = next();
    used_ += (coded_bytes(format, height, width) + alignment - 1) / alignment * alignment;
    if (upload_) upload_->add_coded(at, from, formats_.type, format, height, width);
    return at;
  }

  /// fp8 rows, and behind them their scales.
  void place_rows(const tensor_view& from, device_matrix& to) {
    std::byte* const at = next();
    const std::uint32_t height = padded(to.outputs), width = padded(to.inputs, 2 * matrix_tile);
    const std::size_t scale_bytes = scaled_outputs(to.outputs) * sizeof(float);
    const std::size_t code_bytes = (std::size_t{height} * width + alignment - 1) / alignment * alignment;
    used_ += code_bytes + (scale_bytes + alignment - 1) / alignment * alignment;
    to.data = at, to.row_scales = reinterpret_cast<const float*>(at ? at + code_bytes : any_address);
    if (upload_) upload_->add_rows(at, at + code_bytes, from, height, width);
  }

  static inline std::byte any_address[sizeof(float)];  ///< of scales that are only counted

  const matrix_formats formats_;
  const load_progress progress_;
  const std::uint64_t total_;
  std::uint32_t layer_ = 0;
  std::byte* base_ = nullptr;
  std::size_t used_ = 0;
  std::optional<weight_upload> upload_;  ///< from the second pass on
};

/// A state that belongs to a model is not a weight.
bool is_weight(const tensor_spec& spec) { return spec.name != "att.time_state"; }

template <template <typename> typename Layer>
void load_model(const weights_of<checkpoint_views, Layer>& from, loader& load, device_weights_of<Layer>& to) {
  const auto load_one = [&](const tensor_spec& spec, const tensor_view& view, auto& tensor) {
    if (view.data && is_weight(spec)) load.load(spec, view, tensor);
  };
  to.dims = from.dims;
  to.layers.clear();
  load.begin_layer(0);
  outer_weights_of<device_types>::for_each_tensor(load_one, from, to);
  for (std::uint32_t layer = 0; layer < from.layers.size(); ++layer) {
    load.begin_layer(layer);
    Layer<device_types>::for_each_tensor(load_one, from.layers[layer], to.layers.emplace_back());
  }
}

/// The size of the weights in the checkpoint.
template <template <typename> typename Layer>
std::uint64_t source_bytes(const weights_of<checkpoint_views, Layer>& weights) {
  std::uint64_t bytes = 0;
  for_each_view(weights, [&](const tensor_spec& spec, const tensor_view& view) {
    if (is_weight(spec)) bytes += static_cast<std::uint64_t>(view.elements()) * dtype_bytes(view.type);
  });
  return bytes;
}

}  // namespace

matrix_formats::matrix_formats(const gpu_options& options) : type(options.matrix_type), plan(&options.formats) {
  const auto rounds = rounds_inputs_of_fp8(options.device, type);
  if (!rounds) throw device_failure(rounds.error());
  rounds_inputs = *rounds;
}

template <template <typename> typename Layer>
std::size_t device_weight_bytes(const weights_of<checkpoint_views, Layer>& weights, const matrix_formats& formats) {
  device_weights_of<Layer> places;
  loader load(formats, {}, 0);
  load_model(weights, load, places);
  return load.bytes();
}

template <template <typename> typename Layer>
device_weights_of<Layer> upload(const weights_of<checkpoint_views, Layer>& weights, const matrix_formats& formats,
                                const load_progress& progress) {
  device_weights_of<Layer> model;
  loader load(formats, progress, source_bytes(weights));
  load_model(weights, load, model);
  model.memory = load.allocate();
  load_model(weights, load, model);
  load.finish();
  return model;
}

template std::size_t device_weight_bytes(const rwkv4_weights&, const matrix_formats&);
template std::size_t device_weight_bytes(const rwkv5_weights&, const matrix_formats&);
template std::size_t device_weight_bytes(const rwkv6_weights&, const matrix_formats&);
template std::size_t device_weight_bytes(const rwkv7_weights&, const matrix_formats&);
template device_weights_of<rwkv4_layer_of> upload(const rwkv4_weights&, const matrix_formats&, const load_progress&);
template device_weights_of<rwkv5_layer_of> upload(const rwkv5_weights&, const matrix_formats&, const load_progress&);
template device_weights_of<rwkv6_layer_of> upload(const rwkv6_weights&, const matrix_formats&, const load_progress&);
template device_weights_of<rwkv7_layer_of> upload(const rwkv7_weights&, const matrix_formats&, const load_progress&);

}  // namespace skein::kernels::gpu
