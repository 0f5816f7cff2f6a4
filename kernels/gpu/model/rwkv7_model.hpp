#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/memory_plan.hpp"
#include "kernels/gpu/gemm/tuned_matmul.hpp"
#include "kernels/gpu/model/device_weights.hpp"
#include "kernels/gpu/model/gpu_model.hpp"
#include "kernels/gpu/model/sparse_value.hpp"
#include "kernels/gpu/time_mix/state.hpp"
#include "kernels/gpu/time_mix/wkv_chunks.hpp"
#include "kernels/gpu/types/batch.hpp"
#include "kernels/gpu/types/gpu_options.hpp"

namespace skein::kernels::gpu {

/// Activations [rows, stride] of the element type. Rows are padded with zeros to whole tiles and no kernel writes to
/// the padding, so a GEMM may read whole rows.
class activation {
 public:
  activation(std::size_t rows, std::uint32_t width, element type)
      : stride_(padded(width)), memory_(planned_bytes(rows, width, type), "activations") {}
  [[nodiscard]] void* data() const { return memory_.data(); }
  [[nodiscard]] std::uint32_t stride() const { return stride_; }
  [[nodiscard]] std::size_t bytes() const { return memory_.bytes(); }
  [[nodiscard]] static constexpr std::size_t planned_bytes(std::size_t rows, std::uint32_t width, element type) {
    return rows * padded(width) * element_bytes(type);
  }

 private:
  std::uint32_t stride_;
  device_buffer<std::byte> memory_;
};

/// RWKV-7. The residual stream x, sums and norms are fp32. States, including those of token shift, have the state type.
/// Matrices and the inputs and outputs of their GEMMs have the element type, except for the outputs of the low-rank
/// pairs (gate_element).
class rwkv7_model final : public gpu_model {
 public:
  /// Throws device_failure. The weights are on the device when this returns.
  rwkv7_model(const rwkv7_weights& weights, const gpu_options& options, const model_room& room, stream_handle in,
              const library_opener& open_library = open_matmul_library);
  /// As plan_model.
  [[nodiscard]] static memory_plan plan(const rwkv7_weights& weights, const gpu_options& options,
                                        const model_room& room,
                                        const library_opener& open_library = open_matmul_library);

  [[nodiscard]] result<void> queue_forward(const device_batch& rows, std::span<const sequence_run> runs,
                                           stream_handle in) override;
  [[nodiscard]] result<void> queue_head(const device_batch& rows, stream_handle in) override;
  [[nodiscard]] float* logits() const override { return logits_.data(); }

  /// To zeros, or the model's own time_state.
  [[nodiscard]] result<void> queue_clear(slot_id slot, stream_handle in) override {
    return queue_copy(room_.slots, slot, in);
  }
  [[nodiscard]] result<void> queue_copy(slot_id from, slot_id to, stream_handle in) override;
  [[nodiscard]] result<void> queue_read(slot_id slot, float* canonical, stream_handle in) const override;
  [[nodiscard]] result<void> queue_write(slot_id slot, const float* canonical, stream_handle in) override;

  [[nodiscard]] std::uint32_t chunk_tokens() const override { return chunks_ ? gpu::chunk_tokens : 0; }
  [[nodiscard]] std::size_t state_floats() const override { return layout_.canonical_floats(); }
  [[nodiscard]] std::size_t slot_bytes() const override { return layout_.slot_bytes(); }
  [[nodiscard]] std::size_t weight_bytes() const override {
    return weights_.memory.bytes() + (sparse_ ? sparse_->bytes() : 0);
  }
  [[nodiscard]] std::size_t activation_bytes() const override;
  [[nodiscard]] std::size_t state_bytes() const override { return states_.bytes(); }
  [[nodiscard]] const std::string& library() const override { return library_; }
  [[nodiscard]] double library_seconds() const override { return library_seconds_; }
  [[nodiscard]] std::uint32_t vocab() const { return dims_.vocab; }

 private:
  // One tick, in the terms of model/forward.cpp. `outcome` keeps the first error.
  struct pass {
    const device_batch& rows;
    stream_handle in;
    bool has_chunks, has_other_rows;
    result<void> outcome;
    bool learns = false;  ///< only its GEMMs are queued, to be measured
    void note(result<void> done) {
      if (outcome && !done) outcome = std::move(done);
    }
  };
  void embed(pass& tick);
  void time_mix_in(std::uint32_t layer, pass& tick);
  void time_mix_state(std::uint32_t layer, pass& tick);
  void time_mix_out(std::uint32_t layer, pass& tick);
  void channel_mix_in(std::uint32_t layer, pass& tick);
  void channel_mix_out(std::uint32_t layer, pass& tick);

  void shift(pass& tick, const norm_weights& norm, std::size_t x_prev, std::span<const float* const> mixes);
  void multiply_rows(pass& tick, std::span<const gemm> gemms);
  void multiply_wanted(pass& tick);
  void multiply(pass& tick, std::span<const gemm> gemms, const std::uint32_t* count, std::uint32_t room);
  /// Measures the GEMMs of ticks of many rows, in this model's buffers.
  void learn_gemms(stream_handle in);
  void add_to_x(pass& tick, const device_matrix& matrix, const activation& in);
  /// Whether channel mixing ends with sparse_values.
  [[nodiscard]] bool is_sparse(const pass& tick) const {
    return sparse_ && tick.rows.room.rows <= sparse_values::rows_max && !tick.learns;
  }
  /// Sets the segments of some products of a launch; returns true if their partial sums are to be stored.
  [[nodiscard]] bool cut_into_segments(std::span<gemm> some, std::span<const gemm> launch, const pass& tick) const;
  /// Makes a product store its partial sums; returns them as its consumer reads them.
  [[nodiscard]] gemm_rows store_parts(gemm& p, const device_buffer<float>& parts, const pass& tick) const;
  [[nodiscard]] device_buffer<float> rows_buffer(std::size_t rows) const {
    return device_buffer<float>(rows * dims_.embd, "activations");
  }
  [[nodiscard]] std::size_t parts_rows() const { return parts_rows(room_); }
  [[nodiscard]] static std::size_t parts_rows(const model_room& room) {
    return 4 * std::size_t{std::min(room.rows, split_rows_max)};
  }

  [[nodiscard]] std::array<const activation*, 16> activations() const;
  /// Slot room_.slots holds the model's initial state.
  void set_initial_state(const rwkv7_weights& weights, stream_handle in);
  void make_sparse(stream_handle in);

  const model_dims dims_;
  const element type_;
  const model_room room_;
  const slot_layout layout_;

  std::string library_;
  double library_seconds_ = 0;
  tuned_matmul matmul_;
  // The residual stream, [rows, C], and what is yet to be added to it. A norm that adds writes the sum to the other
  // buffer, because a block also reads its neighbour's row.
  const std::array<device_buffer<float>, 2> x_;
  const std::array<device_buffer<float>, 3> parts_;
  unsigned now_ = 0;
  gemm_rows added_;
  std::array<gemm_rows, 3> projections_;        ///< r k v of the current layer
  const device_buffer<std::uint32_t> done_{2};  ///< counters for products that others of their launch wait for
  const std::array<activation, 6> mixed_;
  const activation r_, k_, v_, v_out_, v_first_, inner_w_, inner_a_, inner_v_, inner_g_, hidden_;
  std::optional<chunked_time_mix> chunks_;  ///< none: no row may be chunked
  device_buffer<float> logits_;
  device_buffer<std::byte> states_;
  const device_rwkv7 weights_;           ///< last of the buffers: a lack of memory shows before the long upload
  std::optional<sparse_values> sparse_;  ///< if invariance is fast and enough memory is free
};

/// Errors: unsupported (head size, width or vocabulary too large, width not a multiple of 64).
[[nodiscard]] result<void> check_sizes(const model_dims& dims);

}  // namespace skein::kernels::gpu
