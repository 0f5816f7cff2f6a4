#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace skein::storage {

/// Recognises the directory of an open database by its file LOCK: if the directory was removed or replaced, writes
/// silently go to unlinked files.
class opened_directory {
 public:
  explicit opened_directory(const std::string& directory) : lock_file_(directory + "/LOCK") {}

  /// The directory was opened now.
  void remember();
  /// Whether it is still the one that was opened. True if nothing was remembered, and in case of doubt.
  [[nodiscard]] bool is_there() const;

 private:
  using identity = std::pair<std::uint64_t, std::uint64_t>;  // device and inode
  enum class looked_for : std::uint8_t { found, missing, unknown };
  [[nodiscard]] looked_for look(identity& found) const;

  const std::string lock_file_;
  std::optional<identity> opened_;
};

}  // namespace skein::storage
