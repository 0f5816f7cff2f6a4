#include "model/files/rwkv_cpp_file.hpp"

#include <utility>

#include "model/files/checkpoint_limits.hpp"
#include "model/files/ggml_tensors.hpp"

namespace skein::model {
namespace {

constexpr std::uint64_t header_bytes = 24;

/// The type of a number in the file; other numbers than those of GGUF. nullptr: unknown.
const ggml_type* type_numbered(std::uint32_t number) {
  constexpr std::pair<std::uint32_t, std::string_view> names[] = {{0, "F32"},  {1, "F16"},  {2, "Q4_0"}, {3, "Q4_1"},
                                                                  {7, "Q5_0"}, {8, "Q5_1"}, {9, "Q8_0"}};
  for (const auto& [known, name] : names)
    if (known == number) return find_ggml_type(name);
  return nullptr;
}

/// Reads the tensor at `at`, which it moves behind its data.
result<stored_tensor> read_tensor(byte_span file, std::uint64_t& at, std::uint32_t version) {
  const std::uint64_t start = at;
  if (!fits(at, 12, file.size())) return damaged(start, "the file ends inside the description of a tensor");
  const auto dimensions = load<std::uint32_t>(file, at), name_bytes = load<std::uint32_t>(file, at + 4),
             number = load<std::uint32_t>(file, at + 8);
  at += 12;
  if (dimensions == 0 || dimensions > max_dimensions)
    return damaged(start, "a tensor has " + std::to_string(dimensions) + " dimensions; accepted: 1 to " +
                              std::to_string(max_dimensions));
  if (name_bytes == 0 || name_bytes > max_tensor_name_bytes)
    return damaged(start, "a tensor name is empty or too long");
  if (!fits(at, std::uint64_t{4} * dimensions + name_bytes, file.size()))
    return damaged(start, "the file ends inside the description of a tensor");
  stored_tensor tensor;
  tensor.described_at = start;
  tensor.name = text_at(file, at + std::uint64_t{4} * dimensions, name_bytes);
  const auto fault = [&](const std::string& what) {
    return damaged(start, "tensor " + printable(tensor.name) + ": " + what);
  };
  if (!valid_utf8(tensor.name)) return fault("the name is not UTF-8");
  tensor.type = type_numbered(number);
  if (!tensor.type)
    return fault("type " + std::to_string(number) +
                 " is not supported; accepted: F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0");
  if (!tensor.type->plain && version == 100)
    return error{error_kind::unsupported,
                 "rwkv.cpp version 100 with type " + std::string(tensor.type->name) +
                     " is not supported; quantise the FP16 file again with a newer rwkv.cpp",
                 {}};
  tensor.shape.resize(dimensions);
  std::uint64_t elements = 1;
  for (std::uint32_t d = 0; d < dimensions; ++d) {
    const auto extent = load<std::uint32_t>(file, at + std::uint64_t{4} * d);
    if (extent == 0) return fault("a dimension is 0");
    if (__builtin_mul_overflow(elements, extent, &elements) || elements > ~std::uint64_t{0} / 8)
      return fault("the shape overflows 64 bits");
    tensor.shape[dimensions - 1 - d] = extent;
  }
  at += std::uint64_t{4} * dimensions + name_bytes;
  if (tensor.shape.back() % tensor.type->values != 0)
    return fault("a row of " + std::to_string(tensor.shape.back()) + " values is not divisible by the " +
                 std::to_string(tensor.type->values) + " of a block of " + std::string(tensor.type->name));
  const std::uint64_t bytes = elements / tensor.type->values * tensor.type->bytes;
  if (!fits(at, bytes, file.size())) return fault("its " + std::to_string(bytes) + " bytes extend beyond the file");
  tensor.data = file.subspan(at, bytes);
  at += bytes;
  return tensor;
}

}  // namespace

bool looks_like_rwkv_cpp(byte_span file) { return file.size() >= 4 && load<std::uint32_t>(file, 0) == 0x67676d66; }

result<void> read_rwkv_cpp(byte_span file, found_model& found) {
  if (file.size() < header_bytes) return damaged(file.size(), "the file ends inside the rwkv.cpp header");
  const auto version = load<std::uint32_t>(file, 4);
  if (version != 100 && version != 101)
    return damaged(4, "rwkv.cpp version " + std::to_string(version) + " is not supported; accepted: 100, 101");
  std::vector<stored_tensor> tensors;
  for (std::uint64_t at = header_bytes; at < file.size();) {
    if (tensors.size() == max_tensors) return damaged(at, "more than " + std::to_string(max_tensors) + " tensors");
    auto tensor = read_tensor(file, at, version);
    if (!tensor) return tensor.error();
    tensors.push_back(std::move(*tensor));
  }
  found.format = "ggml";
  found.form = "rwkv.cpp";
  found.rwkv_cpp =
      rwkv_cpp_facts{load<std::uint32_t>(file, 8), load<std::uint32_t>(file, 12), load<std::uint32_t>(file, 16)};
  return take_tensors(tensors, found);
}

}  // namespace skein::model
