#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/memory_plan.hpp"
#include "kernels/gpu/fused/led_matmul.hpp"
#include "kernels/gpu/gemm/tuned_matmul.hpp"
#include "kernels/gpu/model/activation.hpp"
#include "kernels/gpu/model/decoding_room.hpp"
#include "kernels/gpu/model/device_weights.hpp"
#include "kernels/gpu/model/gpu_model.hpp"
#include "kernels/gpu/model/rounding_room.hpp"
#include "kernels/gpu/ops/token_shift.hpp"
#include "kernels/gpu/time_mix/state.hpp"
#include "kernels/gpu/types/batch.hpp"
#include "kernels/gpu/types/gpu_options.hpp"

namespace skein::kernels::gpu {

/// The parts of a model that all versions share: embedding, head, residual stream, states, and how GEMMs are launched.
/// A version adds its layers, in the stages of model/forward.cpp.
///
/// The residual stream x, sums and norms are fp32. States, including those of token shift, have the state type.
/// Matrices and the inputs and outputs of their GEMMs have the element type, with exceptions that a version names.
class base_model : public gpu_model {
 public:
  [[nodiscard]] result<void> queue_forward(const device_batch& rows, std::span<const sequence_run> runs,
                                           stream_handle in) final;
  [[nodiscard]] result<void> queue_head(const device_batch& rows, stream_handle in) final;
  [[nodiscard]] float* logits() const final { return logits_.data(); }

  [[nodiscard]] result<void> queue_clear(slot_id slot, stream_handle in) final {
    return queue_copy(room_.slots, slot, in);
  }
  [[nodiscard]] result<void> queue_copy(slot_id from, slot_id to, stream_handle in) final;
  [[nodiscard]] result<void> queue_read(slot_id slot, void* canonical, stream_handle in) const final;
  [[nodiscard]] result<void> queue_write(slot_id slot, const void* canonical, stream_handle in) final;

  [[nodiscard]] std::uint32_t chunk_tokens() const override { return 0; }
  [[nodiscard]] std::size_t slot_bytes() const final { return layout_.slot_bytes(); }
  [[nodiscard]] std::size_t activation_bytes() const override;
  [[nodiscard]] std::size_t state_bytes() const final { return states_.bytes(); }
  [[nodiscard]] const std::string& library() const final { return library_; }
  [[nodiscard]] double library_seconds() const final { return library_seconds_; }

 protected:
  /// One tick. `outcome` keeps the first error.
  struct pass {
    const device_batch& rows;
    stream_handle in;
    bool has_chunks, has_other_rows;
    result<void> outcome;
    bool learns = false;  ///< only its GEMMs are queued, to be measured
    bool is_led = false;  ///< token shift and time mixing lead the next launch of products (fused/led_matmul.hpp)
    std::optional<leader> leads = {};  ///< that launch
    std::optional<gemm> begins = {};   ///< a product of it, which the next ones read
    void note(result<void> done) {
      if (outcome && !done) outcome = std::move(done);
    }
  };

  /// Throws device_failure.
  base_model(const model_dims& dims, const gpu_options& options, const model_room& room,
             const library_opener& open_library);
  /// As plan_model. `activation_bytes`: of the version's own activations.
  [[nodiscard]] static memory_plan plan(const model_dims& dims, const gpu_options& options, const model_room& room,
                                        const library_opener& open_library, std::size_t weight_bytes,
                                        std::size_t activation_bytes);

  /// Writes a layer's initial state without the two x_prev, which is zeros before.
  using initial_state = std::function<void(std::uint32_t layer, std::span<float> canonical)>;
  /// Ends the construction of a version: measures GEMMs, clears activations and states, and waits.
  void start(stream_handle in, const initial_state& initial);
  /// The tensor of a layer as its initial state; zeros if there is none.
  static void copy_initial(const tensor_view& time_state, std::span<float> canonical) {
    if (time_state.data) copy_to_f32(time_state, canonical);
  }

  [[nodiscard]] virtual const outer_weights_of<device_types>& outer() const = 0;
  /// Whether a version lets kernels lead launches of products.
  [[nodiscard]] virtual bool has_leaders() const { return false; }
  /// Lists the tick's chunks.
  virtual void plan_chunks(std::span<const sequence_run>, pass&) {}
  virtual void time_mix_in(std::uint32_t layer, pass& tick) = 0;
  virtual void time_mix_state(std::uint32_t layer, pass& tick) = 0;
  virtual void time_mix_out(std::uint32_t layer, pass& tick) = 0;
  virtual void channel_mix_in(std::uint32_t layer, pass& tick) = 0;
  virtual void channel_mix_out(std::uint32_t layer, pass& tick) = 0;

  [[nodiscard]] static gemm gemm_of(const device_matrix& matrix, const activation& in, void* out,
                                    std::uint32_t out_stride, epilogue how) {
    return {matrix, in.data, out, in.stride, out_stride, how};
  }
  [[nodiscard]] static gemm gemm_of(const device_matrix& matrix, const activation& in, const activation& out,
                                    epilogue how = {}) {
    return gemm_of(matrix, in, out.data, out.stride, how);
  }
  [[nodiscard]] static gemm_rows rows_of(const activation& out) { return {out.data, out.stride, 0, 0}; }
  /// The epilogue for rows of gate_element.
  [[nodiscard]] epilogue store_gate() const {
    return {.to = type_ == element::bf16 ? destination::f16 : destination::elements};
  }

  /// A token shift of the residual stream, after what is yet to be added to it; x moves to the other buffer then.
  [[nodiscard]] token_shift_parameters shift_of(const norm_weights& norm, std::size_t x_prev);
  /// out[i] = row + (row before - row) * mix[i]. `spent` are rows that no kernel reads before they are written again,
  /// or null; their stride is a number of whole lines (device/discard.cuh).
  void shift(pass& tick, const norm_weights& norm, std::size_t x_prev, std::span<const float* const> mixes,
             std::span<const activation> outs, const activation* spent = nullptr);

  void multiply_rows(pass& tick, std::span<const gemm> gemms);
  /// x += matrix * in
  void add_to_x(pass& tick, const device_matrix& matrix, const activation& in);
  /// Splits some products of a launch, at most projections_max, along k. `outs` are their outputs as a consumer reads
  /// them: rows, or partial sums in parts_. `beside`: tiles of outputs of the others, if these take as long.
  void split(std::span<gemm> some, std::span<const gemm> launch, std::span<gemm_rows> outs, const pass& tick,
             std::uint32_t beside = 0) const;
  /// Sets the segments of some products of a launch; returns true if their partial sums are to be stored.
  [[nodiscard]] bool cut_into_segments(std::span<gemm> some, std::span<const gemm> launch, const pass& tick,
                                       std::uint32_t beside = 0) const;
  /// Makes a product store its partial sums; returns them as its consumer reads them.
  [[nodiscard]] gemm_rows store_parts(gemm& p, const device_buffer<float>& parts, const pass& tick) const;

  /// Two counters (gemm::done) for a launch of a layer, of which there are at most two: `which` is 0 or 1. No other
  /// launch of a tick uses them, because the blocks of a launch may look at them before all launches of the layer
  /// before have ended.
  [[nodiscard]] std::uint32_t* done_of(std::uint32_t layer, std::uint32_t which = 0) const {
    return done_.data() + 4 * std::size_t{layer} + 2 * which;
  }

  [[nodiscard]] std::byte* state_of(std::uint32_t layer) const { return states_.data() + layout_.wkv(layer); }

  static constexpr std::size_t projections_max = 3;

  const model_dims dims_;
  const element type_;
  const model_room room_;
  const slot_layout layout_;
  activation_room activations_;

  // The residual stream, [rows, C], and what is yet to be added to it. A norm that adds writes the sum to the other
  // buffer, because a block also reads its neighbour's row.
  unsigned now_ = 0;
  gemm_rows added_;
  activation gate_;  ///< fp32, of what is added; without data: 1
  [[nodiscard]] float* x() const { return x_[now_].data(); }
  [[nodiscard]] float* other_x() const { return x_[now_ ^ 1].data(); }
  [[nodiscard]] residual current() const { return {x(), added_, static_cast<const float*>(gate_.data), gate_.stride}; }

 private:
  void embed(pass& tick);
  void multiply_wanted(pass& tick);
  void multiply(pass& tick, std::span<const gemm> gemms, const std::uint32_t* count, std::uint32_t room);
  [[nodiscard]] bool is_led(const device_batch& rows) const;
  /// Runs what leads the next launch, and these products, in that launch or in several.
  void multiply_led(pass& tick, std::span<const gemm> gemms);
  /// Measures the GEMMs of ticks of many rows, in this model's buffers.
  void learn_gemms(stream_handle in);
  /// Slot room_.slots holds the model's initial state.
  void set_initial_state(stream_handle in, const initial_state& initial);

  std::string library_;
  double library_seconds_ = 0;
  tuned_matmul matmul_;
  const std::uint32_t split_blocks_;             ///< of a launch whose products are split along k
  const std::optional<std::uint32_t> led_rows_;  ///< of gpu_tuning
  const bool has_led_matmul_;
  const rounding_room rounding_;
  const decoding_room decoding_;
  const std::array<device_buffer<float>, 2> x_;

 protected:
  const std::array<device_buffer<float>, projections_max> parts_;
  const device_buffer<std::uint32_t> done_;  ///< see done_of
  const device_buffer<std::uint32_t> led_{led_counters};
  const activation normed_;  ///< [rows, C]: the input of the head; free while layers run

 private:
  device_buffer<float> logits_;
  device_buffer<std::byte> states_;
};

}  // namespace skein::kernels::gpu
