#pragma once
#include <ctime>
#include <filesystem>
#include <span>

#include "base/result.hpp"
#include "model/mapping/lost_pages.hpp"

namespace skein::model {

/// A whole file mapped for reading. Opening reads none of its pages. If the file is truncated while it is mapped, the
/// lost bytes read as zeros, and unchanged() tells. Replace model files by rename, never by overwriting them.
class mapped_file {
 public:
  /// Errors: missing_file, io, bad_file (empty, or not a regular file). The text names the path.
  [[nodiscard]] static result<mapped_file> open(const std::filesystem::path& path);

  mapped_file(mapped_file&& other) noexcept;
  mapped_file& operator=(mapped_file&& other) noexcept;
  mapped_file(const mapped_file&) = delete;  // a copy would need a second mapping
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  /// False if the file was written to since it was opened, or could not be read: bytes() may have been anything.
  [[nodiscard]] bool unchanged() const;

  /// Tells the kernel whether to read ahead. Off while reading a directory whose parts are scattered over a large file.
  void read_ahead(bool on) const;

 private:
  mapped_file(std::span<const std::byte> bytes, int descriptor, timespec written)
      : bytes_(bytes), guard_(bytes), descriptor_(descriptor), written_(written) {}
  std::span<const std::byte> bytes_;
  lost_pages_guard guard_;
  int descriptor_;
  timespec written_;  ///< when the file was last written to before it was opened
};

/// io: the file with this path was not unchanged().
[[nodiscard]] error changed_file(const std::filesystem::path& path);

}  // namespace skein::model
