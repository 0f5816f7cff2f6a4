#include "tests/model/gguf_builders.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>

namespace skein::test {

namespace gguf {

std::string string(std::string_view text) { return little_endian(text.size(), 8) + std::string(text); }
std::string text(std::string_view value) { return little_endian(8, 4) + string(value); }
std::string number(std::uint32_t value) { return little_endian(4, 4) + little_endian(value, 4); }
std::string real(float value) { return little_endian(6, 4) + little_endian(std::bit_cast<std::uint32_t>(value), 4); }
std::string array(std::uint32_t type, std::uint64_t count, std::string_view elements) {
  return little_endian(9, 4) + little_endian(type, 4) + little_endian(count, 8) + std::string(elements);
}
std::string texts(const std::vector<std::string>& all) {
  std::string elements;
  for (const auto& each : all) elements += string(each);
  return array(8, all.size(), elements);
}

}  // namespace gguf

gguf_builder& gguf_builder::pair(std::string_view key, std::string_view value) {
  pairs_ += gguf::string(key) + std::string(value);
  ++pair_count_;
  return *this;
}

gguf_builder& gguf_builder::tensor(gguf_tensor_plan plan) { return tensors_.push_back(std::move(plan)), *this; }

gguf_builder& gguf_builder::alignment(std::uint32_t bytes) {
  alignment_ = bytes;
  return pair("general.alignment", gguf::number(bytes));
}

std::string gguf_builder::description(std::size_t index) const {
  std::size_t offset = 0;
  for (std::size_t i = 0; i < index; ++i)
    offset += (tensors_[i].data.size() + alignment_ - 1) / alignment_ * alignment_;
  const auto& tensor = tensors_[index];
  std::string out = gguf::string(tensor.name) + little_endian(tensor.shape.size(), 4);
  for (std::size_t d = tensor.shape.size(); d-- > 0;) out += little_endian(tensor.shape[d], 8);
  return out + little_endian(tensor.type, 4) + little_endian(offset, 8);
}

std::size_t gguf_builder::dimensions_of(std::size_t index) const {
  std::size_t at = descriptions();
  for (std::size_t i = 0; i < index; ++i) at += description(i).size();
  return at + 8 + tensors_[index].name.size();
}

std::size_t gguf_builder::data_begin() const {
  std::size_t at = descriptions();
  for (std::size_t i = 0; i < tensors_.size(); ++i) at += description(i).size();
  return (at + alignment_ - 1) / alignment_ * alignment_;
}

std::string gguf_builder::file() const {
  std::string out =
      "GGUF" + little_endian(version_, 4) + little_endian(tensors_.size(), 8) + little_endian(pair_count_, 8) + pairs_;
  for (std::size_t i = 0; i < tensors_.size(); ++i) out += description(i);
  for (const auto& tensor : tensors_) {
    out.resize((out.size() + alignment_ - 1) / alignment_ * alignment_, '\0');
    out += tensor.data;
  }
  return out;
}

namespace {

// Original names and those of llama.cpp: outside of layers, and in them.
const std::map<std::string, std::string> outside = {{"emb.weight", "token_embd.weight"},
                                                    {"head.weight", "output.weight"},
                                                    {"blocks.0.ln0.weight", "token_embd_norm.weight"},
                                                    {"blocks.0.ln0.bias", "token_embd_norm.bias"},
                                                    {"ln_out.weight", "output_norm.weight"},
                                                    {"ln_out.bias", "output_norm.bias"}};
const std::map<std::string, std::string> inside = {
    {"ln1.weight", "attn_norm.weight"},
    {"ln1.bias", "attn_norm.bias"},
    {"ln2.weight", "attn_norm_2.weight"},
    {"ln2.bias", "attn_norm_2.bias"},
    {"att.ln_x.weight", "time_mix_ln.weight"},
    {"att.ln_x.bias", "time_mix_ln.bias"},
    {"att.receptance.weight", "time_mix_receptance.weight"},
    {"att.key.weight", "time_mix_key.weight"},
    {"att.value.weight", "time_mix_value.weight"},
    {"att.gate.weight", "time_mix_gate.weight"},
    {"att.output.weight", "time_mix_output.weight"},
    {"ffn.key.weight", "channel_mix_key.weight"},
    {"ffn.value.weight", "channel_mix_value.weight"},
    {"ffn.receptance.weight", "channel_mix_receptance.weight"},
    {"ffn.x_k", "channel_mix_lerp_k.weight"},
    {"ffn.time_maa_k", "channel_mix_lerp_k.weight"},
    {"ffn.time_maa_r", "channel_mix_lerp_r.weight"},
    {"att.time_maa_x", "time_mix_lerp_x.weight"},
    {"att.time_maa_w1", "time_mix_w1.weight"},
    {"att.time_maa_w2", "time_mix_w2.weight"},
    {"att.time_decay", "time_mix_decay.weight"},
    {"att.time_decay_w1", "time_mix_decay_w1.weight"},
    {"att.time_decay_w2", "time_mix_decay_w2.weight"},
    {"att.time_faaaa", "time_mix_first.weight"},
};
const std::vector<std::string> seven_order = {"x_r", "x_w", "x_k", "x_v", "x_a", "x_g"};
const std::vector<std::string> six_order = {"time_maa_w", "time_maa_k", "time_maa_v", "time_maa_r", "time_maa_g"};

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* each) { return name == each; });
}

/// The values with the last two axes swapped.
void transpose(values_of_tensor& tensor) {
  const auto rows = static_cast<std::size_t>(tensor.shape[tensor.shape.size() - 2]);
  const auto columns = static_cast<std::size_t>(tensor.shape.back());
  std::vector<float> swapped(tensor.values.size());
  for (std::size_t from = 0; from < swapped.size(); ++from) {
    const std::size_t part = from / (rows * columns), in = from % (rows * columns);
    swapped[part * rows * columns + in % columns * rows + in / columns] = tensor.values[from];
  }
  tensor.values = std::move(swapped);
  std::swap(tensor.shape[tensor.shape.size() - 2], tensor.shape.back());
}

std::string encoded(const values_of_tensor& tensor, std::uint32_t type) {
  if (type == ggml_f32) return {reinterpret_cast<const char*>(tensor.values.data()), 4 * tensor.values.size()};
  std::string out;
  for (const float value : tensor.values)
    out += little_endian(type == ggml_f16 ? f32_to_f16(value) : f32_to_bf16(value), 2);
  return out;
}

class converter {
 public:
  explicit converter(const gguf_model_form& form) : form_(form) {}

  std::vector<gguf_tensor_plan> all(const std::vector<values_of_tensor>& model) {
    for (const auto& tensor : model) one(tensor);
    return std::move(out_);
  }

 private:
  void one(values_of_tensor tensor) {
    if (const auto found = outside.find(tensor.name); found != outside.end()) {
      tensor.name = found->second;
      return put(std::move(tensor));
    }
    const std::size_t dot = tensor.name.find('.', 7);
    const int layer = std::stoi(tensor.name.substr(7));
    const std::string rest = tensor.name.substr(dot + 1), block = "blk." + std::to_string(layer) + '.';
    const std::string last = rest.substr(rest.find('.') + 1);
    const auto& order = form_.seven ? seven_order : six_order;
    if (rest.starts_with("att.") && std::ranges::find(order, last) != order.end())
      return fuse(std::move(tensor), block, last, order);
    if (is_one_of(rest, {"att.output.weight", "ffn.value.weight"}) && !form_.seven && form_.rescale_every > 0)
      for (float& value : tensor.values) value /= std::ldexp(1.0f, layer / static_cast<int>(form_.rescale_every));
    if (is_one_of(rest, {"att.w1", "att.w2", "att.a1", "att.a2", "att.v1", "att.v2", "att.g1", "att.g2",
                         "att.time_maa_w1", "att.time_maa_w2", "att.time_decay_w1", "att.time_decay_w2"}))
      transpose(tensor);
    else if (!rest.ends_with(".weight") && last != "time_faaaa")
      tensor.shape = {static_cast<std::int64_t>(tensor.values.size())};
    if (form_.seven && form_.dummies && layer == 0 && is_one_of(rest, {"att.a0", "att.a1", "att.a2"})) {
      auto dummy = tensor;
      dummy.name = block + "time_mix_v" + last.back() + ".weight";
      put(std::move(dummy));
    }
    const auto found = inside.find(rest);
    tensor.name = block + (found != inside.end() ? found->second : "time_mix_" + last + ".weight");
    put(std::move(tensor));
  }

  void fuse(values_of_tensor tensor, const std::string& block, const std::string& last,
            const std::vector<std::string>& order) {
    if (!form_.seven && !form_.fused) {
      tensor.name = block + "time_mix_lerp_" + last.back() + ".weight";
      tensor.shape = {static_cast<std::int64_t>(tensor.values.size())};
      return put(std::move(tensor));
    }
    auto& parts = fused_[block];
    parts[last] = std::move(tensor.values);
    if (parts.size() < order.size()) return;
    values_of_tensor all{block + "time_mix_lerp_fused.weight", {static_cast<std::int64_t>(order.size()), 1, 1, 0}, {}};
    for (const auto& each : order) all.values.insert(all.values.end(), parts[each].begin(), parts[each].end());
    all.shape[3] = static_cast<std::int64_t>(all.values.size() / order.size());
    put(std::move(all));
  }

  void put(values_of_tensor tensor) {
    const bool matrix = tensor.shape.size() == 2 && tensor.name.find("_first") == std::string::npos;
    const bool low_rank =
        tensor.name.find("_w1.") != std::string::npos || tensor.name.find("_w2.") != std::string::npos ||
        tensor.name.find("time_mix_a") != std::string::npos || tensor.name.find("time_mix_v1") != std::string::npos ||
        tensor.name.find("time_mix_v2") != std::string::npos || tensor.name.find("time_mix_g") != std::string::npos;
    gguf_tensor_plan plan{tensor.name, {tensor.shape.begin(), tensor.shape.end()}, ggml_f32, {}};
    const auto block = std::ranges::find(ggml_blocks(), form_.matrix, &ggml_block::type);
    if (block == ggml_blocks().end()) {
      if (matrix) plan.type = form_.matrix;
    } else if (matrix && (!low_rank || tensor.name.find("gate") != std::string::npos) &&
               tensor.values.size() % block->values == 0 &&
               static_cast<std::size_t>(tensor.shape.back()) % block->values == 0) {
      plan.type = form_.matrix;
      plan.data = random_blocks(*block, tensor.values.size() / block->values,
                                static_cast<std::uint32_t>(std::hash<std::string>()(tensor.name)));
      out_.push_back(std::move(plan));
      return;
    }
    plan.data = encoded(tensor, plan.type);
    out_.push_back(std::move(plan));
  }

  const gguf_model_form& form_;
  std::vector<gguf_tensor_plan> out_;
  std::map<std::string, std::map<std::string, std::vector<float>>> fused_;
};

}  // namespace

std::vector<gguf_tensor_plan> gguf_plan_of(const std::vector<values_of_tensor>& model, const gguf_model_form& form) {
  return converter(form).all(model);
}

gguf_builder gguf_model_of(const std::vector<gguf_tensor_plan>& plan, const gguf_model_form& form, std::uint32_t layers,
                           std::uint32_t embd, std::uint32_t ffn) {
  const std::string name = form.seven ? "rwkv7" : "rwkv6";
  gguf_builder file;
  file.pair("general.architecture", gguf::text(name)).pair("general.type", gguf::text("model"));
  file.pair(name + ".context_length", gguf::number(1048576)).pair(name + ".embedding_length", gguf::number(embd));
  file.pair(name + ".block_count", gguf::number(layers)).pair(name + ".feed_forward_length", gguf::number(ffn));
  file.pair(name + ".attention.layer_norm_epsilon", gguf::real(1e-5f));
  file.pair(name + ".wkv.head_size", gguf::number(form.head_size))
      .pair(name + ".attention.head_count", gguf::number(0));
  if (!form.seven) file.pair("rwkv6.rescale_every_n_layers", gguf::number(form.rescale_every));
  for (const auto& tensor : plan) file.tensor(tensor);
  return file;
}

std::vector<values_of_tensor> random_rwkv7(const kernels::model_dims& dims) {
  std::vector<values_of_tensor> out;
  std::mt19937 random(7);
  for (const auto& tensor : rwkv7_plan(dims, dtype::f32)) {
    std::vector<float> values(bytes_of(tensor) / sizeof(float));
    for (float& value : values) value = static_cast<float>(random() % 255) / 64 - 2;
    out.push_back({tensor.name, tensor.shape, std::move(values)});
  }
  return out;
}

std::vector<values_of_tensor> small_rwkv6() {
  constexpr std::int64_t C = 8, F = 28, V = 16, H = 2, N = 4, e = 3, d = 5, layers = 4;
  std::vector<values_of_tensor> out;
  std::mt19937 random(6);
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    std::vector<float> values(
        static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
    for (float& value : values) value = static_cast<float>(random() % 255) / 64 - 2;  // exact in every type
    out.push_back({name, std::move(shape), std::move(values)});
  };
  const auto norm = [&](const std::string& name) { add(name + ".weight", {C}), add(name + ".bias", {C}); };
  add("emb.weight", {V, C});
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string block = "blocks." + std::to_string(layer) + '.', att = block + "att.", ffn = block + "ffn.";
    if (layer == 0) norm(block + "ln0");
    norm(block + "ln1"), norm(block + "ln2"), norm(att + "ln_x");
    for (const char* mix : {"x", "w", "k", "v", "r", "g"}) add(att + "time_maa_" + mix, {1, 1, C});
    add(att + "time_maa_w1", {C, 5 * e}), add(att + "time_maa_w2", {5, e, C});
    add(att + "time_decay", {1, 1, C}), add(att + "time_decay_w1", {C, d}), add(att + "time_decay_w2", {d, C});
    add(att + "time_faaaa", {H, N});
    for (const char* matrix : {"receptance", "key", "value", "gate", "output"}) add(att + matrix + ".weight", {C, C});
    add(ffn + "time_maa_k", {1, 1, C}), add(ffn + "time_maa_r", {1, 1, C});
    add(ffn + "key.weight", {F, C}), add(ffn + "receptance.weight", {C, C}), add(ffn + "value.weight", {C, F});
  }
  norm("ln_out");
  add("head.weight", {V, C});
  return out;
}

void add_vocabulary(gguf_builder& file, const std::vector<std::string>& escaped, std::size_t unused) {
  std::vector<std::string> tokens = {"<s>"};
  tokens.insert(tokens.end(), escaped.begin(), escaped.end());
  std::string types = little_endian(3, 4);
  for (std::size_t i = 0; i < escaped.size(); ++i) types += little_endian(1, 4);
  for (std::size_t i = 0; i < unused; ++i) {
    tokens.push_back("[PAD" + std::to_string(tokens.size()) + ']');
    types += little_endian(5, 4);
  }
  file.pair("tokenizer.ggml.model", gguf::text("rwkv")).pair("tokenizer.ggml.tokens", gguf::texts(tokens));
  file.pair("tokenizer.ggml.token_type", gguf::array(5, tokens.size(), types));
}

}  // namespace skein::test
