#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/aligned_buffer.hpp"
#include "kernels/cpu/embedding.hpp"
#include "kernels/cpu/matrix_format.hpp"
#include "kernels/cpu/packed_matrix.hpp"
#include "kernels/weights/model_weights.hpp"
#include "kernels/weights/weight_plan.hpp"

/// Copies the weights of any version to the CPU's format: packed matrices, vectors in fp32.
namespace skein::kernels::cpu {

struct packed_types {
  using vector = aligned_buffer<float>;
  using table = embedding;
  using matrix = packed_matrix;
  using stack = std::vector<packed_matrix>;
};

/// The format of a tensor: that of the file if it is quantised there, else that of the plan.
[[nodiscard]] inline weight_format packed_format(const tensor_view& view, const weight_plan& plan,
                                                 const tensor_spec& spec, std::uint32_t layer) {
  return view.quantised() ? format_of(view.codes) : plan.of(spec, layer);
}

/// Thrown for a tensor that its format cannot hold.
struct beyond_range {
  error why;
};

/// Packs tensors with all threads of the pool, counts their bytes and reports progress after each.
class packer {
 public:
  packer(const load_progress& progress, thread_pool& pool) : progress_(progress), pool_(pool) {}

  /// Of the tensor that is packed next, for errors.
  void set_name(std::string name) { name_ = std::move(name); }
  /// Adds a tensor to the total of the progress.
  void expect(const tensor_view& view) { total_ += source_bytes(view); }
  void pack(const tensor_view& view, bool transposed, weight_format format, aligned_buffer<float>& to);
  void pack(const tensor_view& view, bool transposed, weight_format format, embedding& to);
  void pack(const tensor_view& view, bool transposed, weight_format format, packed_matrix& to);
  void pack(const tensor_view& view, bool transposed, weight_format format, std::vector<packed_matrix>& to);

  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  static std::uint64_t source_bytes(const tensor_view& view) {
    return static_cast<std::uint64_t>(view.elements()) * dtype_bytes(view.type);
  }
  void require(bool fits, matrix_format format) const {
    if (!fits) throw beyond_range{beyond_format(name_, format)};
  }
  void count(const tensor_view& view, std::size_t bytes);

  const load_progress progress_;
  thread_pool& pool_;
  std::string name_;
  std::size_t bytes_ = 0;
  std::uint64_t done_ = 0, total_ = 0;
};

/// The bytes that packer::pack takes for a tensor of the type that it would fill.
[[nodiscard]] std::size_t planned_bytes(const tensor_view& view, bool transposed, weight_format format,
                                        const aligned_buffer<float>*);
[[nodiscard]] std::size_t planned_bytes(const tensor_view& view, bool transposed, weight_format format,
                                        const embedding*);
[[nodiscard]] std::size_t planned_bytes(const tensor_view& view, bool transposed, weight_format format,
                                        const packed_matrix*);
[[nodiscard]] std::size_t planned_bytes(const tensor_view& view, bool transposed, weight_format format,
                                        const std::vector<packed_matrix>*);

/// Packs all weights; returns the bytes that they take. Throws std::bad_alloc, and beyond_range for the first tensor
/// that does not fit its format.
template <template <typename> typename Layer>
std::size_t pack_weights(const weights_of<checkpoint_views, Layer>& from, const weight_plan& plan, packer& with,
                         outer_weights_of<packed_types>& outer, std::vector<Layer<packed_types>>& layers) {
  for_each_view(from, [&](const tensor_spec&, const tensor_view& view) { with.expect(view); });
  std::uint32_t layer = 0;
  bool outside = true;
  const auto pack_one = [&](const tensor_spec& spec, const tensor_view& view, auto& to) {
    if (!view.data) return;
    with.set_name((outside ? "" : "blocks." + std::to_string(layer) + '.') + std::string(spec.name));
    with.pack(view, spec.transposed, packed_format(view, plan, spec, layer), to);
  };
  outer_weights_of<packed_types>::for_each_tensor(pack_one, from, outer);
  outside = false;
  for (; layer < from.layers.size(); ++layer)
    Layer<packed_types>::for_each_tensor(pack_one, from.layers[layer], layers.emplace_back());
  return with.bytes();
}

/// The result of pack_weights before anything is packed.
template <template <typename> typename Layer>
std::size_t planned_weight_bytes(const weights_of<checkpoint_views, Layer>& from, const weight_plan& plan) {
  std::size_t bytes = 0;
  std::uint32_t index = 0;
  const auto count_one = [&](const tensor_spec& spec, const tensor_view& view, const auto& to) {
    if (view.data) bytes += planned_bytes(view, spec.transposed, packed_format(view, plan, spec, index), &to);
  };
  const outer_weights_of<packed_types> outer;
  const Layer<packed_types> layer;
  outer_weights_of<packed_types>::for_each_tensor(count_one, from, outer);
  for (; index < from.layers.size(); ++index)
    Layer<packed_types>::for_each_tensor(count_one, from.layers[index], layer);
  return bytes;
}

}  // namespace skein::kernels::cpu
