#include "cli/output/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace skein::cli {
namespace {

namespace fs = std::filesystem;

constexpr int links_max = 40;  // as in the kernel

error cannot_write(const fs::path& path, int code) {
  return {error_kind::io, "cannot write " + path.string() + ": " + std::generic_category().message(code), {}};
}

bool is_special(const fs::path& path) {
  std::error_code none;
  const auto status = fs::status(path, none);
  return fs::exists(status) && !fs::is_regular_file(status);
}

}  // namespace

result<void> check_output(const fs::path& path, special_files special) {
  std::error_code none;
  if (fs::is_directory(path, none))
    return error{error_kind::invalid_argument, path.string() + ": is a folder; give a file name", {}};
  if (special == special_files::refuse && is_special(path))
    return error{error_kind::invalid_argument, path.string() + ": is not a regular file; give a file name", {}};
  return {};
}

fs::path behind_links(fs::path path) {
  std::error_code failed;
  for (int i = 0; i < links_max && fs::is_symlink(fs::symlink_status(path, failed)); ++i) {
    const auto next = fs::read_symlink(path, failed);
    if (failed) break;
    path = path.parent_path() / next;
  }
  return path;
}

result<output_file> output_file::create(const fs::path& path, special_files special) {
  if (const auto usable = check_output(path, special); !usable) return usable.error();
  if (is_special(path)) return output_file(path, path);
  auto target = behind_links(path);
  std::error_code none;
  if (fs::is_symlink(fs::symlink_status(target, none))) return cannot_write(path, ELOOP);
  auto beside = target;
  beside += ".partial-" + std::to_string(::getpid());
  struct stat replaced {};
  const bool replaces = ::stat(target.c_str(), &replaced) == 0;

  output_file file(std::move(target), std::move(beside));
  ::unlink(file.path_.c_str());  // of an earlier process with this number
  file.descriptor_ =
      ::open(file.path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replaces ? S_IRUSR | S_IWUSR : 0666);
  if (file.descriptor_ >= 0) return file;
  return cannot_write(path, errno);
}

output_file::output_file(output_file&& other) noexcept
    : target_(std::move(other.target_)),
      path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

output_file::~output_file() { remove(); }

void output_file::remove() {
  if (descriptor_ < 0) return;
  ::unlink(path_.c_str());
  ::close(std::exchange(descriptor_, -1));
}

result<void> output_file::commit() {
  if (descriptor_ < 0) return {};
  struct stat replaced {};
  if (::stat(target_.c_str(), &replaced) == 0) {
    // The owner before the mode: a change of the owner may clear bits of the mode.
    if (::fchown(descriptor_, replaced.st_uid, replaced.st_gid) != 0)
      (void)!::fchown(descriptor_, static_cast<uid_t>(-1), replaced.st_gid);
    if (::fchmod(descriptor_, replaced.st_mode & 0777) != 0) return cannot_write(target_, errno);
  }
  if (::rename(path_.c_str(), target_.c_str()) != 0) return cannot_write(target_, errno);
  ::close(std::exchange(descriptor_, -1));
  return {};
}

}  // namespace skein::cli
