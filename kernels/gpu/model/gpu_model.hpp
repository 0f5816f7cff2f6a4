#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/ids.hpp"
#include "base/memory_plan.hpp"
#include "base/result.hpp"
#include "kernels/gpu/gemm/matmul_library.hpp"
#include "kernels/gpu/runtime/stream.hpp"
#include "kernels/gpu/types/batch.hpp"
#include "kernels/gpu/types/gpu_options.hpp"
#include "kernels/stages.hpp"
#include "kernels/weights/model_weights.hpp"

namespace skein::kernels::gpu {

/// The sizes that buffers are allocated for.
struct model_room {
  std::uint32_t rows = 0;        ///< of the largest tick
  std::uint32_t logit_rows = 0;  ///< of the largest head call
  std::uint32_t slots = 0;       ///< including slots that are never assigned
};

/// A model of any version on a GPU, or in the emulator: decides which kernel runs over which buffers. Owns weights,
/// activations and the states of all slots, allocated at construction. All work is queued in the given stream. No call
/// waits or reads a batch on the host, and all addresses are fixed, so a call may be captured in a CUDA graph.
///
/// The results and the state of a row depend only on the tokens of its own sequence, as stages.hpp promises.
class gpu_model {
 public:
  virtual ~gpu_model() = default;

  /// Runs all layers over the batch's rows: prepares the residual stream of each for queue_head and advances the states
  /// of all runs. `runs` is the host's copy of the batch's runs, of which only the lengths are read; empty if nothing
  /// is chunked.
  [[nodiscard]] virtual result<void> queue_forward(const device_batch& rows, std::span<const sequence_run> runs,
                                                   stream_handle in) = 0;
  /// logits()[i] = head * layer_norm(x[wanted_rows[i]], ln_out) for the batch's wanted rows; [wanted, V] fp32.
  [[nodiscard]] virtual result<void> queue_head(const device_batch& rows, stream_handle in) = 0;
  [[nodiscard]] virtual float* logits() const = 0;

  /// Resets a slot to the model's initial state.
  [[nodiscard]] virtual result<void> queue_clear(slot_id slot, stream_handle in) = 0;
  [[nodiscard]] virtual result<void> queue_copy(slot_id from, slot_id to, stream_handle in) = 0;
  /// Copy between a slot and slot_bytes() in the canonical order of model/state_layout, also on the device, bit
  /// for bit: each array keeps the type that it has in the slot.
  [[nodiscard]] virtual result<void> queue_read(slot_id slot, void* canonical, stream_handle in) const = 0;
  [[nodiscard]] virtual result<void> queue_write(slot_id slot, const void* canonical, stream_handle in) = 0;

  /// Tokens of a chunk; 0 if no row may be chunked, also if a tick has no space for a chunk beside a decode row.
  [[nodiscard]] virtual std::uint32_t chunk_tokens() const = 0;
  [[nodiscard]] virtual std::size_t slot_bytes() const = 0;  ///< of one state, in a slot and in canonical order
  [[nodiscard]] virtual std::size_t weight_bytes() const = 0;
  [[nodiscard]] virtual std::size_t activation_bytes() const = 0;
  [[nodiscard]] virtual std::size_t state_bytes() const = 0;  ///< of all slots
  /// Human-readable: the GEMMs that a library runs, or why none does; empty if no library was requested.
  [[nodiscard]] virtual const std::string& library() const = 0;
  /// How long measuring the library took.
  [[nodiscard]] virtual double library_seconds() const = 0;
};

/// Errors: unsupported (head size, width or vocabulary too large, width not a multiple of 64), bad_file (element
/// types).
[[nodiscard]] result<void> check_model(const model_weights& weights, const weight_plan& formats = dtype::f16);

/// The model of the weights' version, which check_model has accepted. Throws device_failure. The weights are on the
/// device when this returns.
[[nodiscard]] std::unique_ptr<gpu_model> make_model(const model_weights& weights, const gpu_options& options,
                                                    const model_room& room, stream_handle in,
                                                    const library_opener& open_library = open_matmul_library);

/// The memory that make_model will take, computed without allocating any on the device. Slots beyond
/// options.limits.slots count as workspace. For the current device.
[[nodiscard]] memory_plan plan_model(const model_weights& weights, const gpu_options& options, const model_room& room,
                                     const library_opener& open_library = open_matmul_library);

}  // namespace skein::kernels::gpu
