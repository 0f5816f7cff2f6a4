#include "model/files/found_model.hpp"

#include <algorithm>
#include <utility>

#include "model/files/checkpoint_limits.hpp"
#include "model/files/gguf.hpp"
#include "model/files/gguf_model.hpp"
#include "model/files/pth.hpp"
#include "model/files/rwkv_cpp_file.hpp"
#include "model/files/safetensors.hpp"

namespace skein::model {
namespace {

/// How the file begins that a repository has where Git LFS did not fetch the content.
constexpr std::string_view lfs_pointer = "version https://git-lfs.github.com/spec/";

enum class container { pth, safetensors, gguf, rwkv_cpp };

result<container> recognise(byte_span file) {
  if (looks_like_pth(file)) return container::pth;
  if (looks_like_legacy_pth(file))
    return damaged(
        0, "the format of torch before 1.6 is not supported; load the file with a newer torch and save it again");
  if (looks_like_gguf(file)) return container::gguf;
  if (looks_like_rwkv_cpp(file)) return container::rwkv_cpp;
  if (file.size() > 8 && text_at(file, 8, 1) == "{") return container::safetensors;
  if (text_at(file, 0, std::min<std::uint64_t>(file.size(), lfs_pointer.size())) == lfs_pointer)
    return damaged(0, "a pointer of Git LFS in place of the model; fetch the file with git lfs pull");
  return damaged(0, "neither .pth nor .safetensors nor GGUF nor rwkv.cpp: the file begins with " +
                        printable(text_at(file, 0, std::min<std::uint64_t>(file.size(), 16))));
}

/// Adds tensors and what else the container knows.
result<void> read_container(byte_span file, found_model& found) {
  const auto kind = recognise(file);
  if (!kind) return kind.error();
  if (*kind == container::gguf || *kind == container::rwkv_cpp) {
    if (!found.files.empty()) return damaged(0, "a file of ggml cannot be one of several files of a model");
    auto read = *kind == container::gguf ? read_gguf(file, found) : read_rwkv_cpp(file, found);
    if (read && found.tensors.empty()) return damaged(0, "the file has no tensors");
    return read;
  }
  auto tensors = *kind == container::pth ? read_pth(file) : read_safetensors(file, &found.metadata);
  if (!tensors) return tensors.error();
  if (tensors->empty()) return damaged(0, "the file has no tensors");
  if (tensors->size() > max_tensors - found.tensors.size())
    return damaged(0, "the model has more than " + std::to_string(max_tensors) + " tensors");
  found.format = *kind == container::pth ? "pth" : "safetensors";
  for (auto& tensor : *tensors) {
    tensor.file = static_cast<std::uint32_t>(found.files.size());
    found.tensors.push_back(std::move(tensor));
  }
  return {};
}

}  // namespace

error in_file(const std::filesystem::path& path, error e) {
  e.message = path.string() + ": " + e.message;
  return e;
}

error tensor_fault(const found_model& found, const found_tensor& tensor, const std::string& what, error_kind kind) {
  error fault = damaged(tensor.described_at, "tensor " + printable(tensor.name) + " " + what);
  fault.kind = kind;
  return found.paths.size() > 1 ? in_file(found.paths[tensor.file].filename(), fault) : fault;
}

result<void> add_file(found_model& found, const std::filesystem::path& path) {
  auto file = mapped_file::open(path);
  if (!file) return file.error();
  file->read_ahead(false);
  const auto read = read_container(file->bytes(), found);
  if (!file->unchanged()) return changed_file(path);
  if (!read) return in_file(path, read.error());
  file->read_ahead(true);
  found.paths.push_back(path);
  found.files.push_back(std::move(*file));
  return {};
}

}  // namespace skein::model
