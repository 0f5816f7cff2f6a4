#include "model/forms/rwkv_cpp.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include "model/forms/views.hpp"

namespace skein::model {
namespace {

constexpr std::string_view rwkv_cpp_mixes = "att.x_rwkvag";
constexpr std::string_view rwkv_cpp_rows[] = {"att.x_r", "att.x_w", "att.x_k", "att.x_v", "att.x_a", "att.x_g"};

constexpr std::string_view transposed_7[] = {"att.w1", "att.w2", "att.a1", "att.a2",
                                             "att.v1", "att.v2", "att.g1", "att.g2"};
constexpr std::string_view transposed_6[] = {"att.time_maa_w1", "att.time_maa_w2", "att.time_decay_w1",
                                             "att.time_decay_w2"};

/// What follows "blocks.<layer>."; empty for other names.
std::string_view in_layer(std::string_view name) {
  if (!name.starts_with("blocks.")) return {};
  const std::size_t dot = name.find('.', sizeof "blocks." - 1);
  return dot == name.npos ? std::string_view() : name.substr(dot + 1);
}

/// d with -exp(d) == stored.
double decay_of_4(double stored) { return std::log(-stored); }

/// d with exp(-exp(d)) == stored. Stored numbers that were rounded to 0 or 1 get a d whose result rounds to them.
double decay_of_5(double stored) {
  constexpr double rounds_to_1 = -19.0, rounds_to_0 = 4.75;  // exp(-exp(d)) = 1 - 5.6e-9 and 6e-51
  const double d = std::log(-std::log(stored));
  return d < rounds_to_1 ? rounds_to_1 : d > rounds_to_0 ? rounds_to_0 : d;
}

class rwkv_cpp_names {
 public:
  explicit rwkv_cpp_names(found_model& found) : found_(found) {}

  result<void> run() {
    const auto has = [this](std::string_view name) {
      return std::ranges::find(found_.tensors, name, &found_tensor::name) != found_.tensors.end();
    };
    version_ = has("blocks.0.att.k_k")           ? 7
               : has("blocks.0.att.time_maa_x")  ? 6
               : has("blocks.0.att.ln_x.weight") ? 5
                                                 : 4;
    found_.form += ", RWKV-" + std::to_string(version_);
    for (auto& tensor : std::exchange(found_.tensors, {}))
      if (auto taken = take(tensor); !taken) return taken.error();
    return check_sizes();
  }

 private:
  result<void> take(found_tensor& tensor) {
    const std::string_view name = in_layer(tensor.name);
    tensor_view& view = tensor.view;
    if (version_ == 7 && name == rwkv_cpp_mixes) return split(tensor);
    const std::span<const std::string_view> transposed =
        version_ == 7 ? std::span<const std::string_view>(transposed_7) : transposed_6;
    if (version_ >= 6 && std::ranges::find(transposed, name) != transposed.end()) {
      if (!swap_last_axes(view)) return fault(tensor, "has one dimension; a matrix is expected");
    } else if (version_ == 6 && name == "att.time_decay") {
      set_row_major(view, {1, 1, view.elements()});
    } else if (version_ <= 5 && name == "att.time_decay") {
      if (auto logged = replace(tensor, version_ == 4 ? decay_of_4 : decay_of_5); !logged) return logged;
    } else if (version_ == 5 && name == "att.time_first") {
      if (auto logged = replace(tensor, [](double stored) { return std::log(stored); }); !logged) return logged;
    }
    if (name == "att.time_faaaa" || (name == "att.time_decay" && version_ == 5)) drop_last_one(view);
    found_.tensors.push_back(std::move(tensor));
    return {};
  }

  /// (H, N, 1) -> (H, N).
  static void drop_last_one(tensor_view& view) {
    if (view.shape.size() != 3 || view.shape.back() != 1) return;
    view.shape.pop_back();
    view.stride.pop_back();
  }

  result<void> split(const found_tensor& fused) {
    constexpr auto rows = static_cast<std::int64_t>(std::size(rwkv_cpp_rows));
    if (fused.view.elements() % rows != 0 || fused.view.shape.front() != rows)
      return fault(fused, "has not " + std::to_string(rows) + " rows");
    const std::string before = fused.name.substr(0, fused.name.size() - rwkv_cpp_mixes.size());
    for (std::size_t i = 0; i < std::size(rwkv_cpp_rows); ++i)
      found_.tensors.push_back(row_of(fused, i, std::size(rwkv_cpp_rows), before + std::string(rwkv_cpp_rows[i])));
    return {};
  }

  /// Replaces a tensor by new fp32 memory with the function's values.
  result<void> replace(found_tensor& tensor, double (*of)(double)) {
    tensor_view& view = tensor.view;
    if (view.type != dtype::f32) return fault(tensor, "is " + std::string(to_string(view.type)) + ", fp32 is expected");
    const auto count = static_cast<std::size_t>(view.elements());
    std::byte* const out = found_.own(count * sizeof(float));
    for (std::size_t i = 0; i < count; ++i) {
      float stored;
      std::memcpy(&stored, view.data + i * sizeof stored, sizeof stored);
      const auto value = static_cast<float>(of(stored));
      std::memcpy(out + i * sizeof value, &value, sizeof value);
    }
    view.data = out;
    return {};
  }

  result<void> check_sizes() {
    found_.notes.push_back(version_ >= 6 ? "low-rank factors transposed" : "decays replaced by their logarithms");
    const auto emb = std::ranges::find(found_.tensors, "emb.weight", &found_tensor::name);
    if (emb == found_.tensors.end() || emb->view.shape.size() != 2) return {};  // model_info says what is missing
    const auto& facts = *found_.rwkv_cpp;
    if (emb->view.shape[0] == facts.vocab && emb->view.shape[1] == facts.embd) return {};
    return fault(*emb, "contradicts the header, which has " + std::to_string(facts.vocab) + " tokens and a width of " +
                           std::to_string(facts.embd));
  }

  [[nodiscard]] static error fault(const found_tensor& tensor, const std::string& what) {
    return damaged(tensor.described_at, "tensor " + printable(tensor.name) + ' ' + what);
  }

  found_model& found_;
  int version_ = 4;
};

}  // namespace

result<void> from_rwkv_cpp(found_model& found) { return rwkv_cpp_names(found).run(); }

}  // namespace skein::model
