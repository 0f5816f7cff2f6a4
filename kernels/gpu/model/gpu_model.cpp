#include "kernels/gpu/model/gpu_model.hpp"

#include "base/check.hpp"
#include "kernels/gpu/model/rwkv7_model.hpp"

namespace skein::kernels::gpu {
namespace {

const rwkv7_weights& weights_of_7(const model_weights& weights) {
  const auto* of_7 = std::get_if<rwkv7_weights>(&weights);
  check(of_7 != nullptr, "a version without GPU kernels");
  return *of_7;
}

}  // namespace

result<void> check_model(const model_weights& weights) {
  if (auto types = check_element_types(weights); !types) return types;
  if (const auto* of_7 = std::get_if<rwkv7_weights>(&weights)) return check_sizes(of_7->dims);
  return error{error_kind::unsupported, "only RWKV-7 runs on the GPU; versions 4 to 6 run on the CPU (--device cpu)",
               "device"};
}

std::unique_ptr<gpu_model> make_model(const model_weights& weights, const gpu_options& options, const model_room& room,
                                      stream_handle in) {
  return std::make_unique<rwkv7_model>(weights_of_7(weights), options, room, in);
}

memory_plan plan_model(const model_weights& weights, const gpu_options& options, const model_room& room) {
  return rwkv7_model::plan(weights_of_7(weights), options, room);
}

std::size_t planned_state_floats(const model_dims& dims) {
  return dims.layers * std::size_t{dims.embd} * (2 + std::size_t{dims.head_size});
}

}  // namespace skein::kernels::gpu
