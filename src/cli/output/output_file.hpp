#pragma once
#include <filesystem>

#include "base/result.hpp"

namespace skein::cli {

/// What to do if the path of an output names a pipe, a device or a socket.
enum class special_files { refuse, write_in_place };

/// An output file that appears when it is complete: it is written beside its place and then renamed. Without a commit,
/// and if SIGINT, SIGTERM or SIGHUP ends the process, what was written is removed and a file of that name stays as it
/// is. A symbolic link is followed: its target is replaced. A replaced file's mode and, if permitted, owner are kept.
class output_file {
 public:
  /// Errors: io; invalid_argument for a folder, and for a special file that is to be refused.
  [[nodiscard]] static result<output_file> create(const std::filesystem::path& path, special_files special);

  output_file(output_file&& other) noexcept;
  output_file& operator=(output_file&&) = delete;
  output_file(const output_file&) = delete;  // one owner removes the file
  ~output_file();

  /// The file to write: it exists and is empty.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Once all is written: moves it to its place, on the disk. Errors: io.
  [[nodiscard]] result<void> commit();

 private:
  output_file(std::filesystem::path target, std::filesystem::path path)
      : target_(std::move(target)), path_(std::move(path)) {}
  void remove();

  std::filesystem::path target_;
  std::filesystem::path path_;
  int descriptor_ = -1;  ///< -1: a special file, or committed
};

/// Errors as those of output_file::create that are known without writing.
[[nodiscard]] result<void> check_output(const std::filesystem::path& path, special_files special);

/// The path without symbolic links in its last part, whether the file exists or not.
[[nodiscard]] std::filesystem::path behind_links(std::filesystem::path path);

}  // namespace skein::cli
