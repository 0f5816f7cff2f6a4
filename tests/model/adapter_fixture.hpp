#pragma once
#include <bit>
#include <cmath>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model/checkpoint.hpp"
#include "tests/model/checkpoint_builders.hpp"
#include "tests/support/oracle.hpp"

/// A small model, and adapters beside it.
namespace skein::test {

struct dense {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;
  double& at(std::size_t row, std::size_t column) { return values[row * columns + column]; }
  [[nodiscard]] double at(std::size_t row, std::size_t column) const { return values[row * columns + column]; }
};

inline dense dense_of(const tensor_view& view) {
  std::vector<float> values(static_cast<std::size_t>(view.elements()));
  copy_to_f32(view, values);
  const auto columns = static_cast<std::size_t>(view.shape.back());
  return {values.size() / columns, columns, {values.begin(), values.end()}};
}

inline std::string elements(dtype type, std::size_t count, const std::string& seed) {
  std::seed_seq start(seed.begin(), seed.end());
  std::mt19937 random(start);
  std::normal_distribution<float> normal;
  std::string data;
  for (std::size_t i = 0; i < count; ++i) {
    const float value = normal(random);
    if (type == dtype::f32)
      data += little_endian(std::bit_cast<std::uint32_t>(value), 4);
    else
      data += little_endian(type == dtype::bf16 ? f32_to_bf16(value) : f32_to_f16(value), 2);
  }
  return data;
}

inline tensor_plan tensor(const std::string& name, std::vector<std::int64_t> shape, dtype type = dtype::f32) {
  std::size_t count = 1;
  for (const auto extent : shape) count *= static_cast<std::size_t>(extent);
  return {name, type, std::move(shape), elements(type, count, name)};
}

class adapter_folder {
 public:
  explicit adapter_folder(dtype type = dtype::bf16) {
    auto plan = rwkv7_plan(small_dims(), type);
    for (auto& each : plan) each = tensor(each.name, each.shape, type);
    write_file(model(), safetensors_of(plan));
  }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_.path() / name; }
  [[nodiscard]] std::string model() const { return path("model.safetensors"); }
  std::string pth(const std::string& name, const std::vector<tensor_plan>& tensors) const {
    write_file(path(name), pth_of(tensors));
    return path(name);
  }
  /// A folder of PEFT.
  std::string peft(const std::string& config, const std::vector<tensor_plan>& tensors) const {
    std::filesystem::create_directories(path("peft"));
    write_file(path("peft/adapter_config.json"), config);
    write_file(path("peft/adapter_model.safetensors"), safetensors_of(tensors));
    return path("peft");
  }
  [[nodiscard]] result<model::checkpoint> open(const std::vector<std::string>& adapters) const {
    std::vector<model::adapter_choice> choices;
    for (const auto& text : adapters) {
      auto choice = model::parse_adapter(text);
      if (!choice) return choice.error();
      choices.push_back(std::move(*choice));
    }
    return model::checkpoint::open(model(), choices);
  }

 private:
  temporary_folder folder_;
};

}  // namespace skein::test
