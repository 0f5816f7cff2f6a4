#pragma once
#include <memory>

#include "kernels/gpu/model/gpu_model.hpp"

/// The model of each version: as make_model and plan_model.
namespace skein::kernels::gpu {

[[nodiscard]] std::unique_ptr<gpu_model> make(const rwkv4_weights& weights, const gpu_options& options,
                                              const model_room& room, stream_handle in,
                                              const library_opener& open_library);
[[nodiscard]] std::unique_ptr<gpu_model> make(const rwkv5_weights& weights, const gpu_options& options,
                                              const model_room& room, stream_handle in,
                                              const library_opener& open_library);
[[nodiscard]] std::unique_ptr<gpu_model> make(const rwkv6_weights& weights, const gpu_options& options,
                                              const model_room& room, stream_handle in,
                                              const library_opener& open_library);
[[nodiscard]] std::unique_ptr<gpu_model> make(const rwkv7_weights& weights, const gpu_options& options,
                                              const model_room& room, stream_handle in,
                                              const library_opener& open_library);

[[nodiscard]] memory_plan plan(const rwkv4_weights& weights, const gpu_options& options, const model_room& room,
                               const library_opener& open_library);
[[nodiscard]] memory_plan plan(const rwkv5_weights& weights, const gpu_options& options, const model_room& room,
                               const library_opener& open_library);
[[nodiscard]] memory_plan plan(const rwkv6_weights& weights, const gpu_options& options, const model_room& room,
                               const library_opener& open_library);
[[nodiscard]] memory_plan plan(const rwkv7_weights& weights, const gpu_options& options, const model_room& room,
                               const library_opener& open_library);

}  // namespace skein::kernels::gpu
