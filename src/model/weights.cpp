#include <vector>

#include "model/model_info.hpp"
#include "model/tensor_lookup.hpp"

namespace skein::model {
namespace {

using kernels::rwkv7_layer;
using kernels::rwkv7_weights;

/// The dimensions in shapes, by their letters in kernels/rwkv7_weights.hpp.
enum class size : std::uint8_t { none, C, F, H, N, V, rank_w, rank_a, rank_v, rank_g };

enum class presence : std::uint8_t {
  always,
  after_first,  ///< not used in layer 0: some files omit it, others store arbitrary values
  optional,
};

template <typename Owner>
struct binding {
  const char* name;
  tensor_view Owner::*member;
  size shape[3];
  presence when = presence::always;
};

constexpr binding<rwkv7_weights> model_bindings[] = {
    {"emb.weight", &rwkv7_weights::emb, {size::V, size::C}},
    {"blocks.0.ln0.weight", &rwkv7_weights::ln0_weight, {size::C}},
    {"blocks.0.ln0.bias", &rwkv7_weights::ln0_bias, {size::C}},
    {"ln_out.weight", &rwkv7_weights::ln_out_weight, {size::C}},
    {"ln_out.bias", &rwkv7_weights::ln_out_bias, {size::C}},
    {"head.weight", &rwkv7_weights::head, {size::V, size::C}},
};

constexpr binding<rwkv7_layer> layer_bindings[] = {
    {"ln1.weight", &rwkv7_layer::ln1_weight, {size::C}},
    {"ln1.bias", &rwkv7_layer::ln1_bias, {size::C}},
    {"ln2.weight", &rwkv7_layer::ln2_weight, {size::C}},
    {"ln2.bias", &rwkv7_layer::ln2_bias, {size::C}},
    {"att.x_r", &rwkv7_layer::x_r, {size::C}},
    {"att.x_w", &rwkv7_layer::x_w, {size::C}},
    {"att.x_k", &rwkv7_layer::x_k, {size::C}},
    {"att.x_v", &rwkv7_layer::x_v, {size::C}},
    {"att.x_a", &rwkv7_layer::x_a, {size::C}},
    {"att.x_g", &rwkv7_layer::x_g, {size::C}},
    {"att.w0", &rwkv7_layer::w0, {size::C}},
    {"att.w1", &rwkv7_layer::w1, {size::C, size::rank_w}},
    {"att.w2", &rwkv7_layer::w2, {size::rank_w, size::C}},
    {"att.a0", &rwkv7_layer::a0, {size::C}},
    {"att.a1", &rwkv7_layer::a1, {size::C, size::rank_a}},
    {"att.a2", &rwkv7_layer::a2, {size::rank_a, size::C}},
    {"att.v0", &rwkv7_layer::v0, {size::C}, presence::after_first},
    {"att.v1", &rwkv7_layer::v1, {size::C, size::rank_v}, presence::after_first},
    {"att.v2", &rwkv7_layer::v2, {size::rank_v, size::C}, presence::after_first},
    {"att.g1", &rwkv7_layer::g1, {size::C, size::rank_g}},
    {"att.g2", &rwkv7_layer::g2, {size::rank_g, size::C}},
    {"att.k_k", &rwkv7_layer::k_k, {size::C}},
    {"att.k_a", &rwkv7_layer::k_a, {size::C}},
    {"att.r_k", &rwkv7_layer::r_k, {size::H, size::N}},
    {"att.receptance.weight", &rwkv7_layer::receptance, {size::C, size::C}},
    {"att.key.weight", &rwkv7_layer::key, {size::C, size::C}},
    {"att.value.weight", &rwkv7_layer::value, {size::C, size::C}},
    {"att.output.weight", &rwkv7_layer::output, {size::C, size::C}},
    {"att.ln_x.weight", &rwkv7_layer::ln_x_weight, {size::C}},
    {"att.ln_x.bias", &rwkv7_layer::ln_x_bias, {size::C}},
    {"ffn.x_k", &rwkv7_layer::ffn_x_k, {size::C}},
    {"ffn.key.weight", &rwkv7_layer::ffn_key, {size::F, size::C}},
    {"ffn.value.weight", &rwkv7_layer::ffn_value, {size::C, size::F}},
    {"att.time_state", &rwkv7_layer::time_state, {size::H, size::N, size::N}, presence::optional},
};

std::int64_t value_of(size s, const kernels::rwkv7_dims& dims) {
  switch (s) {
    case size::none: return 0;
    case size::C: return dims.embd;
    case size::F: return dims.ffn;
    case size::H: return dims.heads;
    case size::N: return dims.head_size;
    case size::V: return dims.vocab;
    case size::rank_w: return dims.rank_w;
    case size::rank_a: return dims.rank_a;
    case size::rank_v: return dims.rank_v;
    case size::rank_g: return dims.rank_g;
  }
  return 0;
}

template <typename Owner>
result<void> bind_one(const checkpoint& file, const std::string& name, const binding<Owner>& wanted,
                      const kernels::rwkv7_dims& dims, Owner& owner) {
  std::vector<std::int64_t> shape;
  for (const size s : wanted.shape)
    if (s != size::none) shape.push_back(value_of(s, dims));
  const auto view = find_shaped(file, name, shape);
  if (!view) return view.error();
  owner.*wanted.member = *view;
  return {};
}

/// If one layer has a time_state, all must: a partly tuned model is damaged.
bool wanted_in(std::uint32_t layer, presence when, const model_info& info) {
  switch (when) {
    case presence::always: return true;
    case presence::after_first: return layer > 0;
    case presence::optional: return info.has_time_state;
  }
  return true;
}

}  // namespace

result<kernels::rwkv7_weights> bind_rwkv7(const checkpoint& file, const model_info& info) {
  if (info.version != rwkv_version::v7)
    return error{error_kind::unsupported,
                 file.path().string() + ": this is an RWKV-" + std::string(to_string(info.version)) +
                     " model; only RWKV-7 is supported",
                 {}};
  rwkv7_weights weights;
  weights.dims = {info.layers, info.embd,   info.heads,  info.head_size, info.ffn,
                  info.vocab,  info.rank_w, info.rank_a, info.rank_v,    info.rank_g};
  for (const auto& wanted : model_bindings)
    if (auto bound = bind_one(file, wanted.name, wanted, weights.dims, weights); !bound) return bound.error();
  weights.layers.resize(info.layers);
  for (std::uint32_t layer = 0; layer < info.layers; ++layer) {
    for (const auto& wanted : layer_bindings) {
      if (!wanted_in(layer, wanted.when, info)) continue;
      if (auto bound = bind_one(file, block_name(layer, wanted.name), wanted, weights.dims, weights.layers[layer]);
          !bound)
        return bound.error();
    }
  }
  return weights;
}

}  // namespace skein::model
