#pragma once
#include <memory>
#include <span>
#include <vector>

#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/model/packing.hpp"
#include "kernels/cpu/model/row_buffer.hpp"
#include "kernels/cpu/model/slot_layout.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "kernels/stages.hpp"

namespace skein::kernels::cpu {

/// The parts of the CPU back end that all versions share: embedding, head, states, norms with token shift. A version
/// adds its layers. A stage is one to three phases of the thread pool, each a barrier: over rows (norms, token shift),
/// over panels of matrices, or over pieces of states. Vectors, activations, sums and states are fp32; matrices are
/// packed in the format the user chose.
class cpu_stages : public stages {
 public:
  void embed(const batch& rows) override;
  void head(const batch& rows, std::span<const std::uint32_t> wanted, std::span<float> logits) override;

  [[nodiscard]] std::size_t state_floats() const override { return dims_.layers * slot_.canonical_floats(); }
  void clear_state(slot_id slot) override;
  void copy_state(slot_id from, slot_id to) override;
  void read_state(slot_id slot, std::span<float> out) const override;
  void write_state(slot_id slot, std::span<const float> in) override;

  void parallel_for(std::size_t count, range_body body, void* context) override;
  [[nodiscard]] memory_plan memory() const override;

  /// The memory that these parts will take, without weights; `of_version`: the activations of the version.
  [[nodiscard]] static memory_plan plan(const model_dims& dims, const weight_plan& formats, const stage_limits& limits,
                                        std::size_t weight_bytes, std::size_t of_version);

 protected:
  using vector = aligned_buffer<float>;

  cpu_stages(const model_dims& dims, const stage_limits& limits);

  /// Packs all weights, then makes the states. Called once, at the end of the constructor of a version, so that all
  /// activations are allocated before the slow packing starts.
  template <template <typename> typename Layer>
  void load(const weights_of<checkpoint_views, Layer>& from, const weight_plan& plan, const load_progress& progress,
            std::vector<Layer<packed_types>>& layers) {
    if (plan.quantised()) make_coded_rows();
    packer with(progress, pool_);
    weight_bytes_ = pack_weights(from, plan, with, outer_, layers);
  }
  void make_coded_rows();
  void make_states();

  /// The initial state of a layer without the two x_prev, in canonical order; the argument is filled with zeros.
  virtual void set_initial(std::uint32_t layer, std::span<float> memory) const = 0;

  /// One token shift: its mix and its output.
  struct shift {
    const vector* mix;
    const row_buffer* out;
  };
  /// normed = layer_norm(x), out = token_shift(normed, normed of the row before) for each shift and, unless null, delta
  /// = that row - normed; then the last row of each run becomes the slot's x_prev, at offset `x_prev` (in floats).
  void norm_and_shift(const batch& rows, const vector& weight, const vector& bias, std::size_t x_prev,
                      std::span<const shift> shifts, const row_buffer* delta = nullptr);
  /// x += matrix * in
  void add_product(const batch& rows, const packed_matrix& matrix, const row_buffer& in);

  [[nodiscard]] float* state(slot_id slot) const { return states_[slot].data(); }

  const model_dims dims_;
  const slot_layout slot_;
  const std::size_t max_rows_;
  mutable thread_pool pool_;  // read_state uses it too
  matmul matmul_;
  row_room room_;      ///< makes the buffers of the version too
  row_buffer x_;       ///< the residual stream
  row_buffer normed_;  ///< after ln1, ln2 or ln_out
  std::size_t weight_bytes_ = 0;

 private:
  const std::size_t slots_, max_logit_rows_;
  row_buffer before_;  ///< per thread: the normalised row before a piece
  std::vector<vector> states_;
  outer_weights_of<packed_types> outer_;
};

/// Each version: makes its stages, and finds the memory that they will take.
[[nodiscard]] std::unique_ptr<stages> make(const rwkv4_weights& weights, const weight_plan& plan,
                                           const stage_limits& limits, const load_progress& progress);
[[nodiscard]] std::unique_ptr<stages> make(const rwkv5_weights& weights, const weight_plan& plan,
                                           const stage_limits& limits, const load_progress& progress);
[[nodiscard]] std::unique_ptr<stages> make(const rwkv6_weights& weights, const weight_plan& plan,
                                           const stage_limits& limits, const load_progress& progress);
[[nodiscard]] std::unique_ptr<stages> make(const rwkv7_weights& weights, const weight_plan& plan,
                                           const stage_limits& limits, const load_progress& progress);
[[nodiscard]] memory_plan plan(const rwkv4_weights& weights, const weight_plan& formats, const stage_limits& limits);
[[nodiscard]] memory_plan plan(const rwkv5_weights& weights, const weight_plan& formats, const stage_limits& limits);
[[nodiscard]] memory_plan plan(const rwkv6_weights& weights, const weight_plan& formats, const stage_limits& limits);
[[nodiscard]] memory_plan plan(const rwkv7_weights& weights, const weight_plan& formats, const stage_limits& limits);

}  // namespace skein::kernels::cpu
