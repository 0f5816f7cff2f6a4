#pragma once
#include <filesystem>

#include "base/result.hpp"
#include "model/files/file_bytes.hpp"

namespace skein::model {

/// A whole file mapped for reading. Opening reads none of its pages. If the file is truncated while it is mapped,
/// access to a lost page raises SIGBUS and ends the process. Replace model files by rename, never by overwriting them.
class mapped_file {
 public:
  /// Errors: missing_file, io, bad_file (empty, or not a regular file). The text names the path.
  [[nodiscard]] static result<mapped_file> open(const std::filesystem::path& path);

  mapped_file(mapped_file&& other) noexcept;
  mapped_file& operator=(mapped_file&& other) noexcept;
  mapped_file(const mapped_file&) = delete;  // a copy would need a second mapping
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file();

  [[nodiscard]] byte_span bytes() const { return bytes_; }

  /// Tells the kernel whether to read ahead. Off while reading a directory whose parts are scattered over a large file.
  void read_ahead(bool on) const;

 private:
  explicit mapped_file(byte_span bytes) : bytes_(bytes) {}
  byte_span bytes_;
};

}  // namespace skein::model
