#pragma once
#include <optional>

#include "kernels/gpu/model/gated_model.hpp"
#include "kernels/gpu/time_mix/chunks/wkv6_chunks.hpp"

namespace skein::kernels::gpu {

/// What versions 5 and 6 share: states by heads, through which prompts go in chunks.
class headed_model : public gated_model {
 public:
  [[nodiscard]] std::uint32_t chunk_tokens() const final { return chunks_ ? gpu::chunk_tokens : 0; }
  [[nodiscard]] std::size_t activation_bytes() const final {
    return base_model::activation_bytes() + (chunks_ ? chunks_->bytes() : 0);
  }

 protected:
  headed_model(const model_dims& dims, const gpu_options& options, const model_room& room,
               const library_opener& open_library);
  /// As base_model::plan.
  [[nodiscard]] static memory_plan plan(const model_dims& dims, const gpu_options& options, const model_room& room,
                                        const library_opener& open_library, std::size_t weight_bytes,
                                        std::size_t activation_bytes);

  void plan_chunks(std::span<const sequence_run> runs, pass& tick) final;
  /// All rows of a layer; fills in the states.
  void mix_states(std::uint32_t layer, wkv6_parameters of, pass& tick);

 private:
  std::optional<chunked_wkv6> chunks_;  ///< none: no row may be chunked
};

}  // namespace skein::kernels::gpu
