#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/files/file_bytes.hpp"
#include "model/files/safetensors_header.hpp"
#include "model/mapping/mapped_file.hpp"
#include "model/templates/chat_form.hpp"

namespace skein::model {

/// A number that the configuration file of a repository states about the model.
struct stated_size {
  std::string key;
  std::uint64_t value = 0;
};

/// What a GGUF file says about its model, beside the tensors. nullopt: the file does not say it.
struct llama_cpp_facts {
  std::string architecture;  ///< "rwkv6", "rwkv7"
  std::optional<std::uint64_t> layers, embd, ffn, head_size;
  std::uint64_t rescale_every_n_layers = 0;
};

/// What the header of a file of rwkv.cpp says.
struct rwkv_cpp_facts {
  std::uint32_t vocab = 0, embd = 0, layers = 0;
};

/// What the readers find: the tensors with the names, shapes and orientation of the files, and all memory that their
/// views point into. `model/forms` then gives them the names and shapes of the original checkpoint.
struct found_model {
  std::string_view format;  ///< of the container: "pth", "safetensors", "gguf", "ggml"
  std::vector<found_tensor> tensors;
  std::vector<std::filesystem::path> paths;  ///< of `files`
  std::vector<mapped_file> files;
  std::vector<std::unique_ptr<std::byte[]>> owned;  ///< of tensors that were decoded or merged

  std::vector<stated_size> stated;  ///< by a configuration file beside the model

  // Set by model/forms, or by a reader whose container knows it.
  std::string form;                  ///< for people, e.g. "Hugging Face, fla"; empty: the original
  std::vector<std::string> notes;    ///< for people: what was transposed, split, merged or left out
  file_metadata metadata;            ///< texts in the header of a .safetensors file
  std::string dtype;                 ///< of a file with quantised matrices: the options that made it; empty: none are
  std::string weight_format;         ///< likewise
  std::string vocabulary;            ///< the vocabulary inside the file, as text of a vocabulary file; empty: none
  std::string foreign_vocabulary;    ///< kind of a vocabulary inside the file that is not read, e.g. "'gpt2'"
  chat_form chat = chat_form::none;  ///< of the template beside the model or in its file
  std::optional<llama_cpp_facts> llama_cpp;  ///< set: the names are those of llama.cpp
  std::optional<rwkv_cpp_facts> rwkv_cpp;    ///< set: the shapes are those of rwkv.cpp

  /// Uninitialised memory that lives as long as the model.
  [[nodiscard]] std::byte* own(std::size_t bytes) {
    return owned.emplace_back(std::make_unique_for_overwrite<std::byte[]>(bytes)).get();
  }
};

/// Maps one more file of the model and adds its tensors. The container is recognised by content.
/// Errors: missing_file, io, bad_file (the text names the file, the fault and its byte offset).
[[nodiscard]] result<void> add_file(found_model& found, const std::filesystem::path& path);

/// The error with the path before its text.
[[nodiscard]] error in_file(const std::filesystem::path& path, error e);

/// bad_file, or another kind, naming the tensor, its offset and, of several files, the file.
[[nodiscard]] error tensor_fault(const found_model& found, const found_tensor& tensor, const std::string& what,
                                 error_kind kind = error_kind::bad_file);

}  // namespace skein::model
