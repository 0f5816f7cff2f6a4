#include "kernels/reference/reference_stages.hpp"

#include <algorithm>
#include <new>

#include "base/check.hpp"
#include "kernels/make_stages.hpp"

namespace skein::kernels::reference {

reference_stages::reference_stages(const model_dims& dims, std::size_t memory_floats, const stage_limits& limits)
    : dims_(dims),
      memory_floats_(memory_floats),
      max_rows_(limits.max_rows),
      max_logit_rows_(limits.max_logit_rows),
      states_(limits.slots, std::vector<float>(dims.layers * (2 * std::size_t{dims.embd} + memory_floats))),
      x_(buffer(dims.embd)) {}

void reference_stages::embed(const batch& rows) {
  for (std::size_t t = 0; t < rows.tokens.size(); ++t) {
    const auto token = static_cast<std::size_t>(rows.tokens[t]);
    layer_norm(row(outer_.emb.values).subspan(token * dims_.embd, dims_.embd), outer_.ln0_weight, outer_.ln0_bias,
               layer_norm_eps, x_[t]);
  }
}

void reference_stages::head(const batch&, std::span<const std::uint32_t> wanted, std::span<float> logits) {
  check(wanted.size() <= max_logit_rows_);
  check(logits.size() == wanted.size() * dims_.vocab);
  std::vector<float> normed(dims_.embd);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    layer_norm(x_[wanted[i]], outer_.ln_out_weight, outer_.ln_out_bias, layer_norm_eps, normed);
    linear(outer_.head, normed, logits.subspan(i * dims_.vocab, dims_.vocab));
  }
}

void reference_stages::clear_state(slot_id slot) {
  std::ranges::fill(states_[slot], 0.0f);
  for (std::uint32_t layer = 0; layer < dims_.layers; ++layer) set_initial(layer, memory_of(slot, layer));
}

void reference_stages::read_state(slot_id slot, std::span<float> out) const {
  check(out.size() == state_floats());
  std::ranges::copy(states_[slot], out.begin());
}

void reference_stages::write_state(slot_id slot, std::span<const float> in) {
  check(in.size() == state_floats());
  std::ranges::copy(in, states_[slot].begin());
}

memory_plan reference_stages::memory() const {
  memory_plan taken;
  taken.slots = static_cast<std::uint32_t>(states_.size());
  taken.slot_bytes = state_floats() * sizeof(float);
  taken.weight_bytes = weight_bytes_;
  for (const auto& each : buffers_) taken.activation_bytes += each->bytes();
  return taken;
}

void reference_stages::add_linear(const dense_matrix& matrix, row_buffer& in, const batch& rows) {
  std::vector<float> sum(dims_.embd);
  for (std::size_t t = 0; t < rows.tokens.size(); ++t) {
    linear(matrix, in[t], sum);
    for (std::size_t i = 0; i < sum.size(); ++i) x_[t][i] += sum[i];
  }
}

void reference_stages::load_tensor(const tensor_view& view, bool, std::vector<float>& to) {
  to.resize(static_cast<std::size_t>(view.elements()));
  copy_to_f32(view, to);
  weight_bytes_ += to.size() * sizeof(float);
}

void reference_stages::load_tensor(const tensor_view& view, bool transposed, dense_matrix& to) {
  to = load_dense(view, transposed);
  weight_bytes_ += to.values.size() * sizeof(float);
}

void reference_stages::load_tensor(const tensor_view& view, bool transposed, std::vector<dense_matrix>& to) {
  to.resize(static_cast<std::size_t>(view.shape[0]));
  for (std::size_t i = 0; i < to.size(); ++i) load_tensor(matrix_of(view, i), transposed, to[i]);
}

}  // namespace skein::kernels::reference

namespace skein::kernels {

result<std::unique_ptr<stages>> make_reference_stages(const model_weights& weights, const stage_limits& limits) {
  if (const auto types = check_element_types(weights); !types) return types.error();
  try {
    return std::visit([&](const auto& of) { return reference::make(of, limits); }, weights);
  } catch (const std::bad_alloc&) {
    return error{error_kind::unavailable, "not enough memory for the model in fp32", ""};
  }
}

}  // namespace skein::kernels
