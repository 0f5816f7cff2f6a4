#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "model/adapters/adapter_choice.hpp"
#include "model/templates/chat_form.hpp"

namespace skein::model {

struct stated_size;

struct named_tensor {
  std::string name;
  tensor_view view;
  std::string digest = {};  ///< of the tensor that this one was made from, as tensor_digest(); empty: its own
  std::string_view quantised_as = {};  ///< the ggml type in which the file has it ("Q8_0"); empty: not quantised there
};

/// A memory-mapped checkpoint, `.pth` (torch zip pickle), `.safetensors`, GGUF or rwkv.cpp, recognised by content, not
/// by file name. The tensors of every form have the names, shapes and orientation of the original `.pth`, whatever the
/// file says; a view may be strided. Nothing in a file is executed, every offset, length and shape is checked before
/// use, and every view lies inside memory that lives as long as this object.
class checkpoint {
 public:
  /// A file, or a folder with the files of one model. Errors: missing_file, io, bad_file (the text names the file, the
  /// fault and its byte offset), unsupported (a form that is known and not read).
  /// Adapters are merged: changed tensors are in memory of their own. Errors: also those of merge_adapters.
  [[nodiscard]] static result<checkpoint> open(const std::filesystem::path& path,
                                               std::span<const adapter_choice> adapters = {});

  checkpoint(checkpoint&&) noexcept;
  checkpoint& operator=(checkpoint&&) noexcept;
  checkpoint(const checkpoint&) = delete;  // a copy would need a second mapping
  checkpoint& operator=(const checkpoint&) = delete;
  ~checkpoint();

  /// To be called when tensors have been read. Errors: io if a file was written to meanwhile.
  [[nodiscard]] result<void> check_unchanged() const;

  /// In file order; names are unique.
  [[nodiscard]] std::span<const named_tensor> tensors() const;
  /// nullptr if there is no tensor of that name.
  [[nodiscard]] const tensor_view* find(std::string_view name) const;
  [[nodiscard]] const std::filesystem::path& path() const;
  [[nodiscard]] std::uint64_t file_bytes() const;  ///< of all files together
  [[nodiscard]] std::string_view format() const;   ///< "safetensors", "pth", "gguf", "ggml"
  [[nodiscard]] std::string_view form() const;     ///< whose names the files use, for people; empty: the original ones
  /// For people: what was transposed, split, merged or left out.
  [[nodiscard]] std::span<const std::string> notes() const;
  /// Of a file with quantised matrices: the options of its conversion, as on the command line; else empty.
  [[nodiscard]] std::string_view dtype() const;
  [[nodiscard]] std::string_view weight_format() const;
  /// Text of the vocabulary file that the model's file has inside; empty: none.
  [[nodiscard]] std::string_view vocabulary() const;
  /// Sizes that a configuration file of the folder states.
  [[nodiscard]] std::span<const stated_size> stated() const;
  /// Of the chat template beside the model or in its file.
  [[nodiscard]] chat_form chat() const;
  [[nodiscard]] bool is_folder() const;
  /// The name of the folder, or of the file without its extension.
  [[nodiscard]] std::string name() const;
  /// Kind of a vocabulary that is inside and not read, quoted for messages; empty: none.
  [[nodiscard]] std::string_view foreign_vocabulary() const;

 private:
  struct impl;
  explicit checkpoint(std::unique_ptr<impl>);
  std::unique_ptr<impl> impl_;
};

}  // namespace skein::model
