#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace skein::cli {

/// Writes a .safetensors file front to back: all names and shapes first, then the tensors' elements in that order.
class safetensors_writer {
 public:
  struct entry {
    std::string name;  ///< printable, without quotes or backslashes (checked)
    dtype type;        ///< f32 or bf16 (checked)
    std::vector<std::int64_t> shape;
  };

  /// Creates the file and writes the header. Errors: io.
  [[nodiscard]] static result<safetensors_writer> create(const std::filesystem::path& path,
                                                         std::span<const entry> entries);
  /// Appends elements of one or several tensors; the caller keeps order, sizes and types.
  void append(std::span<const std::byte> elements);
  /// Errors: io, for anything that went wrong since create().
  [[nodiscard]] result<void> finish();

 private:
  safetensors_writer(std::ofstream file, std::filesystem::path path);

  std::ofstream file_;
  std::filesystem::path path_;
};

}  // namespace skein::cli
