#include "kernels/cpu/packed_rwkv7.hpp"

#include <utility>

namespace skein::kernels::cpu {

namespace {

/// Copies tensors to the CPU's format, counts their bytes and reports progress.
class loader {
 public:
  loader(const rwkv7_weights& weights, matrix_format format, const load_progress& progress, thread_pool& pool)
      : format_(format), progress_(progress), pool_(pool) {
    for (const tensor_view* view : all_views(weights)) total_ += source_bytes(*view);
  }

  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  embedding table(const tensor_view& view) { return counted(view, embedding(view, format_, pool_)); }
  packed_matrix matrix(const tensor_view& view) { return counted(view, packed_matrix(view, false, format_, pool_)); }
  low_rank pair(const tensor_view& first, const tensor_view& second) {
    return {counted(first, packed_matrix(first, true, format_, pool_)),
            counted(second, packed_matrix(second, true, format_, pool_))};
  }
  vector values(const tensor_view& view) {
    vector copy(static_cast<std::size_t>(view.elements()));
    copy_to_f32(view, copy.all());
    return counted(view, std::move(copy));
  }

 private:
  static std::uint64_t source_bytes(const tensor_view& view) {
    return static_cast<std::uint64_t>(view.elements()) * dtype_bytes(view.type);
  }
  template <typename Loaded>
  Loaded counted(const tensor_view& view, Loaded loaded) {
    bytes_ += allocated_bytes(loaded.bytes());
    done_ += source_bytes(view);
    if (progress_.report) progress_.report(progress_.context, done_, total_);
    return loaded;
  }

  matrix_format format_;
  load_progress progress_;
  thread_pool& pool_;
  std::size_t bytes_ = 0;
  std::uint64_t done_ = 0, total_ = 0;
};

/// Only counts the bytes; its results are empty.
class meter {
 public:
  explicit meter(matrix_format format) : format_(format) {}

  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  embedding table(const tensor_view& view) { return add(embedding::planned_bytes(view, format_)), embedding(); }
  packed_matrix matrix(const tensor_view& view) { return matrix(view, false); }
  low_rank pair(const tensor_view& first, const tensor_view& second) {
    return {matrix(first, true), matrix(second, true)};
  }
  vector values(const tensor_view& view) {
    return add(static_cast<std::size_t>(view.elements()) * sizeof(float)), vector();
  }

 private:
  void add(std::size_t bytes) { bytes_ += allocated_bytes(bytes); }
  packed_matrix matrix(const tensor_view& view, bool transposed) {
    return add(packed_matrix::planned_bytes(view, transposed, format_)), packed_matrix();
  }

  const matrix_format format_;
  std::size_t bytes_ = 0;
};

template <typename Loader>
layer load_layer(const rwkv7_layer& from, bool first, Loader& load) {
  layer l;
  l.ln1 = {load.values(from.ln1_weight), load.values(from.ln1_bias)};
  l.ln2 = {load.values(from.ln2_weight), load.values(from.ln2_bias)};
  l.ln_x = {load.values(from.ln_x_weight), load.values(from.ln_x_bias)};
  l.x_r = load.values(from.x_r), l.x_w = load.values(from.x_w), l.x_k = load.values(from.x_k);
  l.x_v = load.values(from.x_v), l.x_a = load.values(from.x_a), l.x_g = load.values(from.x_g);
  l.w0 = load.values(from.w0), l.w = load.pair(from.w1, from.w2);
  l.a0 = load.values(from.a0), l.a = load.pair(from.a1, from.a2);
  if (!first) l.v0 = load.values(from.v0), l.v = load.pair(from.v1, from.v2);
  l.g = load.pair(from.g1, from.g2);
  l.k_k = load.values(from.k_k), l.k_a = load.values(from.k_a), l.r_k = load.values(from.r_k);
  l.receptance = load.matrix(from.receptance), l.key = load.matrix(from.key);
  l.value = load.matrix(from.value), l.output = load.matrix(from.output);
  l.ffn_x_k = load.values(from.ffn_x_k);
  l.ffn_key = load.matrix(from.ffn_key), l.ffn_value = load.matrix(from.ffn_value);
  if (from.time_state.data) l.time_state = load.values(from.time_state);
  return l;
}

/// Loader: loader or meter.
template <typename Loader>
packed_rwkv7 load_model(const rwkv7_weights& weights, Loader& load) {
  packed_rwkv7 to;
  to.emb = load.table(weights.emb);
  to.ln0 = {load.values(weights.ln0_weight), load.values(weights.ln0_bias)};
  for (const rwkv7_layer& from : weights.layers) to.layers.push_back(load_layer(from, to.layers.empty(), load));
  to.ln_out = {load.values(weights.ln_out_weight), load.values(weights.ln_out_bias)};
  to.head = load.matrix(weights.head);
  to.bytes = load.bytes();
  return to;
}

}  // namespace

std::size_t packed_bytes(const rwkv7_weights& weights, matrix_format format) {
  meter count(format);
  return load_model(weights, count).bytes;
}

packed_rwkv7 pack(const rwkv7_weights& weights, matrix_format format, const load_progress& progress,
                  thread_pool& pool) {
  loader load(weights, format, progress, pool);
  return load_model(weights, load);
}

}  // namespace skein::kernels::cpu
