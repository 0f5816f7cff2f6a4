#include "kernels/gpu/model/gpu_model.hpp"

#include "kernels/gpu/model/versions.hpp"
#include "kernels/gpu/ops/embed.hpp"
#include "kernels/gpu/sampling/sampling.hpp"
#include "kernels/gpu/time_mix/time_mix.hpp"
#include "kernels/weights/stored_formats.hpp"

namespace skein::kernels::gpu {
namespace {

// Kernels keep rows in registers, and the vectors of a token of one head in shared memory.
result<void> check_sizes(const model_dims& dims) {
  const auto refuse = [](const char* what, std::uint32_t is, const char* limit) {
    return error{error_kind::unsupported, std::string(what) + ' ' + std::to_string(is) + limit, ""};
  };
  static_assert(head_size_max == 256 && width_max == 6144 && vocab_max == 524288, "the messages below contain these");
  if (dims.head_size > head_size_max)
    return refuse("head size", dims.head_size, " is above the GPU engine's limit of 256");
  if (dims.embd > width_max) return refuse("width", dims.embd, " is above the GPU engine's limit of 6144");
  if (dims.embd % head_size != 0)
    return refuse("width", dims.embd, " is not a multiple of 64, which the GPU engine requires");
  if (dims.att() % head_size != 0)
    return refuse("width of the attention", dims.att(), " is not a multiple of 64, which the GPU engine requires");
  if (dims.vocab > vocab_max) return refuse("vocabulary", dims.vocab, " is above the GPU engine's limit of 524288");
  return {};
}

}  // namespace

result<void> check_model(const model_weights& weights, const weight_plan& formats) {
  if (auto types = check_element_types(weights, true); !types) return types;
  if (auto stored = check_stored_formats(weights, formats); !stored) return stored;
  return check_sizes(dims_of(weights));
}

std::unique_ptr<gpu_model> make_model(const model_weights& weights, const gpu_options& options, const model_room& room,
                                      stream_handle in, const library_opener& open_library) {
  return std::visit([&](const auto& of) { return make(of, options, room, in, open_library); }, weights);
}

memory_plan plan_model(const model_weights& weights, const gpu_options& options, const model_room& room,
                       const library_opener& open_library) {
  return std::visit([&](const auto& of) { return plan(of, options, room, open_library); }, weights);
}

}  // namespace skein::kernels::gpu
