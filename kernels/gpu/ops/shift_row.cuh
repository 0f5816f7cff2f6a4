#pragma once
#include "kernels/gpu/ops/row_norm.cuh"
#include "kernels/gpu/ops/token_shift.hpp"
#include "kernels/ops.hpp"

/// A row and the row before it in a token shift.
namespace skein::kernels::gpu {

/// layer_norm(x[t] + added[t])
template <unsigned packets>
__device__ row_share<packets> load_normed(const token_shift_parameters& of, const norm_share<packets>& norm,
                                          std::uint32_t t) {
  row_share<packets> row = load_row<packets>(of.from, of.width, t);
  normalise(row, of.width, norm, layer_norm_eps);
  return row;
}

template <typename Kept>
__device__ Kept* x_prev_of(const token_shift_parameters& of, const sequence_run& run) {
  return reinterpret_cast<Kept*>(static_cast<char*>(of.x_prev) + run.slot * of.slot_bytes);
}

/// The row before a run, as kept in the state of its slot.
template <typename Kept, unsigned packets>
class x_prev_on_its_way {
 public:
  __device__ void ask(const token_shift_parameters& of, const sequence_run& run) {
    for_each_packet<packets>(of.width, [&](unsigned i, std::uint32_t c) {
      packets_[i] = on_their_way<Kept, 4>(x_prev_of<Kept>(of, run) + c);
    });
  }
  __device__ row_share<packets> read(std::uint32_t width) const {
    row_share<packets> row;
    for_each_packet<packets>(width, [&](unsigned i, std::uint32_t) { packets_[i].read(row.values[i]); });
    return row;
  }

 private:
  on_their_way<Kept, 4> packets_[packets];
};
template <typename Kept, unsigned packets>
__device__ void store_x_prev(const token_shift_parameters& of, const sequence_run& run, const row_share<packets>& row) {
  for_each_packet<packets>(
      of.width, [&](unsigned i, std::uint32_t c) { store_floats(x_prev_of<Kept>(of, run) + c, row.values[i]); });
}
/// A row as the next one of its run sees it: rounded as x_prev.
template <typename Kept, unsigned packets>
__device__ row_share<packets> as_kept(row_share<packets> row) {
  for (auto& four : row.values)
    for (float& value : four) value = to_float(from_float<Kept>(value));
  return row;
}

template <unsigned packets>
__device__ void store_sum(const token_shift_parameters& of, std::uint32_t t, const row_share<packets>& row) {
  for_each_packet<packets>(of.width, [&](unsigned i, std::uint32_t c) {
    store_floats(of.sum + static_cast<std::size_t>(t) * of.width + c, row.values[i]);
  });
}

/// out[s][t] = row + (before - row) * mix
template <typename Element, unsigned packets>
__device__ void store_shifted(const token_shift_parameters& of, std::uint32_t s, std::uint32_t t,
                              const row_share<packets>& row, const row_share<packets>& before,
                              const row_share<packets>& mix) {
  for_each_packet<packets>(of.width, [&](unsigned i, std::uint32_t c) {
    float out[4];
    for (unsigned e = 0; e < 4; ++e)
      out[e] = multiply_add(before.values[i][e] - row.values[i][e], mix.values[i][e], row.values[i][e]);
    store_floats(static_cast<Element*>(of.out[s]) + static_cast<std::size_t>(t) * of.out_stride + c, out);
  });
}

}  // namespace skein::kernels::gpu
