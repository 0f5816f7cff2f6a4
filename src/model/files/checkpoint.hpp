#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace skein::model {

struct named_tensor {
  std::string name;
  tensor_view view;
};

/// A memory-mapped checkpoint, `.pth` (torch zip pickle) or `.safetensors`, recognised by content, not by file name.
/// Prefixes that trainers and torch wrappers add to all tensor names (`module.`, `_orig_mod.`, ...) are removed.
/// Nothing in the file is executed, every offset, length and shape is checked before use, and every view lies inside
/// the mapping, which lives as long as this object.
class checkpoint {
 public:
  /// Errors: missing_file, io, bad_file (the text names the file, the fault and its byte offset).
  [[nodiscard]] static result<checkpoint> open(const std::filesystem::path& path);

  checkpoint(checkpoint&&) noexcept;
  checkpoint& operator=(checkpoint&&) noexcept;
  checkpoint(const checkpoint&) = delete;  // a copy would need a second mapping
  checkpoint& operator=(const checkpoint&) = delete;
  ~checkpoint();

  /// In file order; names are unique.
  [[nodiscard]] std::span<const named_tensor> tensors() const;
  /// nullptr if there is no tensor of that name.
  [[nodiscard]] const tensor_view* find(std::string_view name) const;
  [[nodiscard]] const std::filesystem::path& path() const;
  [[nodiscard]] std::uint64_t file_bytes() const;
  [[nodiscard]] std::string_view format() const;  ///< "safetensors" or "pth"

 private:
  struct impl;
  explicit checkpoint(std::unique_ptr<impl>);
  std::unique_ptr<impl> impl_;
};

}  // namespace skein::model
