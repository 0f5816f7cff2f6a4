#include "model/tensor_lookup.hpp"

#include <vector>

#include "model/files/file_bytes.hpp"

namespace skein::model {
namespace {

bool floating(dtype t) { return t == dtype::f32 || t == dtype::bf16 || t == dtype::f16 || t == dtype::f64; }

/// The strides of `found` for the shape `expected`; false if the shapes differ in more than dimensions of 1.
bool strides_for(const tensor_view& found, extents expected, std::vector<std::int64_t>& stride) {
  std::size_t from = 0;
  const auto skip_ones = [&] {
    while (from < found.shape.size() && found.shape[from] == 1) ++from;
  };
  for (const std::int64_t d : expected) {
    if (d == 1) {
      stride.push_back(1);
      continue;
    }
    skip_ones();
    if (from == found.shape.size() || found.shape[from] != d) return false;
    stride.push_back(found.stride[from++]);
  }
  skip_ones();
  return from == found.shape.size();
}

}  // namespace

std::string block_name(std::uint32_t layer, std::string_view name) {
  return "blocks." + std::to_string(layer) + "." + std::string(name);
}

std::string shape_text(extents shape) {
  std::string out = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) (out += i == 0 ? "" : ", ") += std::to_string(shape[i]);
  return out += ")";
}

error misfit(const checkpoint& file, std::string_view name, const std::string& what) {
  return {error_kind::bad_file, file.path().string() + ": tensor " + printable(name) + " " + what, {}};
}

result<const tensor_view*> find_required(const checkpoint& file, std::string_view name) {
  const tensor_view* found = file.find(name);
  if (!found) return misfit(file, name, "is missing");
  return found;
}

result<tensor_view> find_shaped(const checkpoint& file, std::string_view name, extents expected, bool quantised) {
  const auto found = find_required(file, name);
  if (!found) return found.error();
  const tensor_view& view = **found;
  tensor_view seen{view.data, view.type, {expected.begin(), expected.end()}, {}, view.codes};
  if (!strides_for(view, expected, seen.stride))
    return misfit(file, name, "has shape " + shape_text(view.shape) + ", expected " + shape_text(expected));
  if (view.shape == seen.shape) seen.blocks = view.blocks;
  if (view.quantised() && (!quantised || view.shape != seen.shape))
    return misfit(file, name, "is quantised, which this tensor cannot be");
  if (!floating(view.type))
    return misfit(file, name, "has type " + std::string(to_string(view.type)) + ", expected a floating-point type");
  return seen;
}

}  // namespace skein::model
