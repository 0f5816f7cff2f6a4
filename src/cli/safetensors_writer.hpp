#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace skein::cli {

/// Writes a .safetensors file: first all names and shapes, then the tensors' elements in the same order.
class safetensors_writer {
 public:
  struct entry {
    std::string name;
    dtype type;
    std::vector<std::int64_t> shape;
  };
  using metadata = std::vector<std::pair<std::string, std::string>>;

  /// Creates the file and writes the header. Errors: io; unsupported for names that the format cannot hold (not UTF-8,
  /// `__metadata__`) and for a header that readers refuse as too long.
  [[nodiscard]] static result<safetensors_writer> create(const std::filesystem::path& path,
                                                         std::span<const entry> entries, const metadata& more = {});
  safetensors_writer(safetensors_writer&& other) noexcept;
  safetensors_writer& operator=(safetensors_writer&&) = delete;
  safetensors_writer(const safetensors_writer&) = delete;  // owns a file
  ~safetensors_writer();

  /// Writes elements of one or more tensors at offset `first_byte` of the data. The caller is responsible for order,
  /// sizes and types. Threads may write different bytes concurrently.
  void write(std::uint64_t first_byte, std::span<const std::byte> elements);
  /// Errors: io for any failure since create().
  [[nodiscard]] result<void> finish();

 private:
  safetensors_writer(int descriptor, std::filesystem::path path) : descriptor_(descriptor), path_(std::move(path)) {}

  int descriptor_;
  std::filesystem::path path_;
  std::uint64_t data_begin_ = 0;  ///< bytes of length and header
  std::atomic<bool> failed_{false};
};

}  // namespace skein::cli
