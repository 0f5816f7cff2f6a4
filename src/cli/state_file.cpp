#include "cli/state_file.hpp"

#include <algorithm>

#include "cli/safetensors_writer.hpp"
#include "model/files/file_bytes.hpp"
#include "model/nonfinite.hpp"

namespace skein::cli {
namespace {

bool is_floating(dtype type) {
  return type == dtype::f32 || type == dtype::f64 || type == dtype::f16 || type == dtype::bf16;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text;
  for (const auto size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return '(' + text + ')';
}

}  // namespace

result<std::vector<float>> read_state(const std::filesystem::path& path, const model::model_info& info,
                                      bool allow_nonfinite) {
  const auto file = model::checkpoint::open(path);
  if (!file) return file.error();
  if (file->find("blocks.0.att.time_state")) return model::load_tuned_state(path, info, allow_nonfinite);

  const auto arrays = info.state.arrays();
  for (const auto& tensor : file->tensors())
    if (std::ranges::none_of(arrays, [&](const auto& array) { return array.name == tensor.name; }))
      return error{error_kind::bad_file,
                   path.string() + ": " + model::printable(tensor.name) +
                       " is not in a state of the model, which has " + std::to_string(info.layers) + " layers",
                   {}};
  std::vector<float> state(info.state.floats());
  for (const auto& array : arrays) {
    const tensor_view* found = file->find(array.name);
    if (!found) return error{error_kind::bad_file, path.string() + " has no " + array.name, {}};
    if (found->shape != array.shape || !is_floating(found->type))
      return error{error_kind::bad_file,
                   path.string() + ": " + array.name + " is " + std::string(to_string(found->type)) + ' ' +
                       shape_text(found->shape) + "; the model needs floats " + shape_text(array.shape),
                   {}};
    const auto values = std::span(state).subspan(array.offset, static_cast<std::size_t>(found->elements()));
    copy_to_f32(*found, values);
    if (const auto same = file->check_unchanged(); !same) return same.error();
    if (!allow_nonfinite && model::holds_nonfinite(std::as_bytes(values), dtype::f32))
      return model::nonfinite_tensor(*file, array.name);
  }
  return state;
}

result<void> write_state(const std::filesystem::path& path, const model::state_view& state) {
  std::vector<safetensors_writer::entry> entries;
  for (const auto& array : state.format.layout.arrays())
    entries.push_back({array.name, state.format.type_of(array), array.shape});
  auto file = safetensors_writer::create(path, entries);
  if (!file) return file.error();
  file->write(0, state.bytes);  // the file has the arrays in the same order
  return file->finish();
}

}  // namespace skein::cli
