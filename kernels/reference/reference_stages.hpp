#pragma once
#include <vector>

#include "kernels/ops.hpp"
#include "kernels/stages.hpp"
#include "kernels/weights/model_weights.hpp"

namespace skein::kernels::reference {

/// Weights in fp32.
struct types {
  using vector = std::vector<float>;
  using table = dense_matrix;
  using matrix = dense_matrix;
  using stack = std::vector<dense_matrix>;
};

/// The results of a stage for the next one, [T, width].
class row_buffer {
 public:
  row_buffer(std::size_t rows, std::size_t width) : width_(width), values_(rows * width) {}
  [[nodiscard]] std::span<float> operator[](std::size_t r) { return std::span(values_).subspan(r * width_, width_); }
  [[nodiscard]] std::size_t bytes() const { return values_.size() * sizeof(float); }

 private:
  std::size_t width_;
  std::vector<float> values_;
};

/// The parts of the reference that all versions share: embedding, head, states, and the loops over rows. A version adds
/// its layers. States are stored in the canonical order of model/state_layout, so reading one is a copy.
class reference_stages : public stages {
 public:
  void embed(const batch& rows) override;
  void head(const batch& rows, std::span<const std::uint32_t> wanted, std::span<float> logits) override;

  [[nodiscard]] std::size_t state_floats() const override { return dims_.layers * layer_floats(); }
  void clear_state(slot_id slot) override;
  void copy_state(slot_id from, slot_id to) override { states_[to] = states_[from]; }
  void read_state(slot_id slot, std::span<float> out) const override;
  void write_state(slot_id slot, std::span<const float> in) override;

  void parallel_for(std::size_t count, range_body body, void* context) override {
    if (count > 0) body(context, 0, count);
  }
  [[nodiscard]] memory_plan memory() const override;

 protected:
  /// `memory_floats`: the size of a layer's state without the two x_prev.
  reference_stages(const model_dims& dims, std::size_t memory_floats, const stage_limits& limits);

  /// Loads all weights and clears the states. Called once by the constructor of a version.
  template <template <typename> typename Layer>
  void load(const weights_of<checkpoint_views, Layer>& from, std::vector<Layer<types>>& layers) {
    const auto one = [&](const tensor_spec& spec, const tensor_view& view, auto& to) {
      if (view.data) load_tensor(view, spec.transposed, to);
    };
    outer_weights_of<types>::for_each_tensor(one, from, outer_);
    for (const auto& layer : from.layers) Layer<types>::for_each_tensor(one, layer, layers.emplace_back());
    for (slot_id slot = 0; slot < states_.size(); ++slot) clear_state(slot);
  }

  /// The initial state of a layer without the two x_prev; the argument is filled with zeros.
  virtual void set_initial(std::uint32_t layer, std::span<float> memory) const = 0;

  /// body(slot, row) for all rows, each sequence in order.
  template <typename Body>
  static void for_each_row(const batch& rows, const Body& body) {
    for (const sequence_run& run : rows.runs)
      for (std::uint32_t i = 0; i < run.rows; ++i) body(run.slot, run.first_row + i);
  }

  /// x += matrix * in
  void add_linear(const dense_matrix& matrix, row_buffer& in, const batch& rows);

  /// Rows of activations, counted by memory().
  row_buffer& buffer(std::size_t width) {
    return *buffers_.emplace_back(std::make_unique<row_buffer>(max_rows_, width));
  }

  std::span<float> att_x_prev(slot_id slot, std::uint32_t layer) { return part(slot, layer, 0, dims_.embd); }
  std::span<float> ffn_x_prev(slot_id slot, std::uint32_t layer) { return part(slot, layer, dims_.embd, dims_.embd); }
  std::span<float> memory_of(slot_id slot, std::uint32_t layer) {
    return part(slot, layer, std::size_t{2} * dims_.embd, memory_floats_);
  }

  const model_dims dims_;

 private:
  void load_tensor(const tensor_view& view, bool transposed, std::vector<float>& to);
  void load_tensor(const tensor_view& view, bool transposed, dense_matrix& to);
  void load_tensor(const tensor_view& view, bool transposed, std::vector<dense_matrix>& to);
  [[nodiscard]] std::size_t layer_floats() const { return 2 * std::size_t{dims_.embd} + memory_floats_; }
  std::span<float> part(slot_id slot, std::uint32_t layer, std::size_t offset, std::size_t floats) {
    return std::span(states_[slot]).subspan(layer * layer_floats() + offset, floats);
  }

  const std::size_t memory_floats_, max_rows_, max_logit_rows_;
  std::size_t weight_bytes_ = 0;
  outer_weights_of<types> outer_;
  std::vector<std::vector<float>> states_;
  std::vector<std::unique_ptr<row_buffer>> buffers_;

 protected:
  row_buffer& x_;  ///< the residual stream
};

/// The reference of each version.
[[nodiscard]] std::unique_ptr<stages> make(const rwkv4_weights& weights, const stage_limits& limits);
[[nodiscard]] std::unique_ptr<stages> make(const rwkv5_weights& weights, const stage_limits& limits);
[[nodiscard]] std::unique_ptr<stages> make(const rwkv6_weights& weights, const stage_limits& limits);
[[nodiscard]] std::unique_ptr<stages> make(const rwkv7_weights& weights, const stage_limits& limits);

}  // namespace skein::kernels::reference
