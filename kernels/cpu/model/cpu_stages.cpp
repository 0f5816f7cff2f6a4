#include "kernels/cpu/model/cpu_stages.hpp"

#include <algorithm>
#include <new>
#include <string>

#include "base/check.hpp"
#include "kernels/cpu/row_ops.hpp"
#include "kernels/make_stages.hpp"
#include "kernels/ops.hpp"
#include "kernels/weights/stored_formats.hpp"

namespace skein::kernels::cpu {
namespace {

/// Of the buffers that all versions have.
std::size_t shared_activation_bytes(const model_dims& dims, std::size_t max_rows, std::uint32_t threads) {
  row_room counted(max_rows, true);
  (void)counted.make(dims.embd), (void)counted.make(dims.embd), (void)counted.make(threads, dims.embd);
  return counted.bytes() + allocated_bytes(matmul::planned_bytes(threads));
}

/// Of the inputs of quantised GEMMs: up to four of the model's width together, or one of the hidden width.
std::size_t coded_room(const model_dims& dims, std::size_t max_rows) {
  return std::max(4 * matmul::coded_bytes(max_rows, dims.embd), matmul::coded_bytes(max_rows, dims.ffn));
}

}  // namespace

memory_plan cpu_stages::plan(const model_dims& dims, const weight_plan& formats, const stage_limits& limits,
                             std::size_t weight_bytes, std::size_t of_version) {
  memory_plan to;
  to.slots = limits.slots;
  to.slot_bytes = allocated_bytes(slot_layout(dims).floats() * sizeof(float));
  to.weight_bytes = weight_bytes;
  to.activation_bytes =
      shared_activation_bytes(dims, limits.max_rows, thread_pool::planned_threads(limits.threads)) + of_version;
  if (formats.quantised()) to.activation_bytes += allocated_bytes(coded_room(dims, limits.max_rows));
  return to;
}

cpu_stages::cpu_stages(const model_dims& dims, const stage_limits& limits)
    : dims_(dims),
      slot_(dims),
      max_rows_(limits.max_rows),
      pool_(limits.threads),
      matmul_(pool_),
      room_(limits.max_rows, false),
      x_(room_.make(dims.embd)),
      normed_(room_.make(dims.embd)),
      slots_(limits.slots),
      max_logit_rows_(limits.max_logit_rows),
      before_(room_.make(pool_.threads(), dims.embd)) {}

void cpu_stages::make_coded_rows() { matmul_.reserve_coded(coded_room(dims_, max_rows_)); }

void cpu_stages::make_states() {
  for (slot_id slot = 0; slot < slots_; ++slot) {
    states_.emplace_back(slot_.floats());
    clear_state(slot);
  }
}

void cpu_stages::embed(const batch& rows) {
  check(rows.tokens.size() <= max_rows_);
  pool_.run(rows.tokens.size(), [&](std::size_t t, std::uint32_t) {
    outer_.emb.read(static_cast<std::size_t>(rows.tokens[t]), x_[t]);
    layer_norm(x_[t], outer_.ln0_weight.data(), outer_.ln0_bias.data(), layer_norm_eps, dims_.embd, x_[t]);
  });
}

void cpu_stages::head(const batch&, std::span<const std::uint32_t> wanted, std::span<float> logits) {
  check(wanted.size() <= std::min(max_rows_, max_logit_rows_));
  check(logits.size() == wanted.size() * dims_.vocab);
  pool_.run(wanted.size(), [&](std::size_t i, std::uint32_t) {
    layer_norm(x_[wanted[i]], outer_.ln_out_weight.data(), outer_.ln_out_bias.data(), layer_norm_eps, dims_.embd,
               normed_[i]);
  });
  const gemm logits_of{&outer_.head, normed_[0], normed_.stride(), logits.data(), dims_.vocab};
  matmul_(wanted.size(), {&logits_of, 1});
}

void cpu_stages::clear_state(slot_id slot) {
  std::ranges::fill(states_[slot].all(), 0.0f);
  std::vector<float> initial(slot_.canonical_memory_floats());
  for (std::uint32_t layer = 0; layer < dims_.layers; ++layer) {
    std::ranges::fill(initial, 0.0f);
    set_initial(layer, initial);
    slot_.memory_in(layer, initial.data(), state(slot));
  }
}

void cpu_stages::copy_state(slot_id from, slot_id to) { std::ranges::copy(states_[from].all(), state(to)); }

void cpu_stages::read_state(slot_id slot, std::span<float> out) const {
  check(out.size() == state_floats());
  pool_.run(dims_.layers, [&](std::size_t layer, std::uint32_t) {
    slot_.layer_out(layer, state(slot), out.data() + layer * slot_.canonical_floats());
  });
}

void cpu_stages::write_state(slot_id slot, std::span<const float> in) {
  check(in.size() == state_floats());
  pool_.run(dims_.layers, [&](std::size_t layer, std::uint32_t) {
    slot_.layer_in(layer, in.data() + layer * slot_.canonical_floats(), state(slot));
  });
}

void cpu_stages::parallel_for(std::size_t count, range_body body, void* context) {
  const std::size_t pieces = std::min<std::size_t>(count, 4 * pool_.threads());
  pool_.run(pieces, [&](std::size_t piece, std::uint32_t) {
    body(context, count * piece / pieces, count * (piece + 1) / pieces);
  });
}

memory_plan cpu_stages::memory() const {
  memory_plan taken;
  taken.slots = static_cast<std::uint32_t>(states_.size());
  taken.slot_bytes = states_.empty() ? 0 : allocated_bytes(states_.front().bytes());
  taken.weight_bytes = weight_bytes_;
  taken.activation_bytes = matmul_.scratch_bytes() + room_.bytes();
  return taken;
}

void cpu_stages::norm_and_shift(const batch& rows, const vector& weight, const vector& bias, std::size_t x_prev,
                                std::span<const shift> shifts, const row_buffer* delta) {
  constexpr std::size_t piece_rows = 8;  // the row before a piece is normalized twice: cheaper than a barrier
  const std::size_t count = rows.tokens.size();
  const auto normalise_row = [&](const float* x, float* out) {
    layer_norm(x, weight.data(), bias.data(), layer_norm_eps, dims_.embd, out);
  };
  pool_.run((count + piece_rows - 1) / piece_rows, [&](std::size_t piece, std::uint32_t thread) {
    const std::size_t first = piece * piece_rows, end = std::min(first + piece_rows, count);
    auto run = std::ranges::upper_bound(rows.runs, first, {}, &sequence_run::first_row) - 1;
    for (std::size_t t = first; t < end; ++t) {
      if (t == run->first_row + run->rows) ++run;
      normalise_row(x_[t], normed_[t]);
      const float* before = t == first ? before_[thread] : normed_[t - 1];
      if (t == run->first_row)
        before = state(run->slot) + x_prev;
      else if (t == first)
        normalise_row(x_[t - 1], before_[thread]);
      for (const shift& s : shifts) token_shift(normed_[t], before, s.mix->data(), dims_.embd, (*s.out)[t]);
      if (delta) shift_delta(normed_[t], before, dims_.embd, (*delta)[t]);
    }
  });
  for (const sequence_run& run : rows.runs)
    std::copy_n(normed_[run.first_row + run.rows - 1], dims_.embd, state(run.slot) + x_prev);
}

void cpu_stages::add_product(const batch& rows, const packed_matrix& matrix, const row_buffer& in) {
  const gemm residual = make_gemm(matrix, in, x_, epilogue::add);
  matmul_(rows.tokens.size(), {&residual, 1});
}

}  // namespace skein::kernels::cpu

namespace skein::kernels {
namespace {

result<void> check_model(const model_weights& weights, const weight_plan& formats) {
  if (const auto types = check_element_types(weights, true); !types) return types.error();
  if (const auto fits = check_stored_formats(weights, formats); !fits) return fits.error();
  if (!cpu::format_for(formats.base()))
    return error{error_kind::unsupported, "dtype: the CPU does not support " + std::string(to_string(formats.base())),
                 "dtype"};
  const std::uint32_t head_size = dims_of(weights).head_size;
  if (head_size > cpu::head_size_max)
    return error{error_kind::unsupported,
                 "head size: " + std::to_string(head_size) + " is not supported by the CPU; at most " +
                     std::to_string(cpu::head_size_max),
                 ""};
  return {};
}

}  // namespace

result<memory_plan> plan_cpu_stages(const model_weights& weights, const weight_plan& formats,
                                    const stage_limits& limits) {
  if (const auto fits = check_model(weights, formats); !fits) return fits.error();
  return std::visit([&](const auto& of) { return cpu::plan(of, formats, limits); }, weights);
}

result<std::unique_ptr<stages>> make_cpu_stages(const model_weights& weights, const weight_plan& formats,
                                                const stage_limits& limits, const load_progress& progress) {
  if (const auto fits = check_model(weights, formats); !fits) return fits.error();
  try {
    return std::visit([&](const auto& of) { return cpu::make(of, formats, limits, progress); }, weights);
  } catch (const std::bad_alloc&) {
    return error{error_kind::unavailable, "not enough memory for weights, activations and states", ""};
  } catch (const cpu::beyond_range& beyond) {
    return beyond.why;
  }
}

}  // namespace skein::kernels
