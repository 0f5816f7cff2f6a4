#include "cli/output/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace skein::cli {
namespace {

namespace fs = std::filesystem;

constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int links_max = 40;  // as in the kernel

/// The unfinished files of this process, for the signal handler. A command has two at most.
struct unfinished {
  std::atomic<bool> exists{false};
  char path[PATH_MAX] = {};
};
std::array<unfinished, 4> all_unfinished;
static_assert(std::atomic<bool>::is_always_lock_free, "read in a signal handler");

extern "C" void remove_unfinished(int signal) {
  for (const auto& each : all_unfinished)
    if (each.exists) ::unlink(each.path);
  ::raise(signal);  // SA_RESETHAND: ends the process once this handler returns
}

/// Signals that are ignored (nohup) or handled stay so.
void remove_unfinished_on_signals() {
  for (const int signal : ending_signals) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) || now.sa_handler != SIG_DFL) continue;
    struct sigaction handler {};
    handler.sa_handler = remove_unfinished;
    handler.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(signal, &handler, nullptr);
  }
}

void note_unfinished(const fs::path& path) {
  if (path.native().size() >= PATH_MAX) return;  // such a file cannot be opened
  for (auto& each : all_unfinished) {
    if (each.exists) continue;
    std::memcpy(each.path, path.c_str(), path.native().size() + 1);
    each.exists = true;
    return;
  }
}

void forget_unfinished(const fs::path& path) {
  for (auto& each : all_unfinished)
    if (each.exists && path == each.path) each.exists = false;
}

error cannot_write(const fs::path& path, int code) {
  return {error_kind::io, "cannot write " + path.string() + ": " + std::generic_category().message(code), {}};
}

bool is_special(const fs::path& path) {
  std::error_code none;
  const auto status = fs::status(path, none);
  return fs::exists(status) && !fs::is_regular_file(status);
}

/// Puts the name of a file on the disk, where the file system can do that.
result<void> sync_folder_of(const fs::path& path) {
  const auto folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return {};  // a folder may permit writing and not reading
  const int failed = ::fsync(descriptor) == 0 || errno == EINVAL ? 0 : errno;
  ::close(descriptor);
  if (failed != 0) return cannot_write(path, failed);
  return {};
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
  remove_unfinished_on_signals();
  ::unlink(file.path_.c_str());  // of an earlier process with this number
  note_unfinished(file.path_);
  file.descriptor_ =
      ::open(file.path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replaces ? S_IRUSR | S_IWUSR : 0666);
  if (file.descriptor_ >= 0) return file;
  const int code = errno;
  forget_unfinished(file.path_);
  return cannot_write(path, code);
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
  forget_unfinished(path_);
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
  if (::fsync(descriptor_) != 0 && errno != EINVAL) return cannot_write(target_, errno);
  if (::rename(path_.c_str(), target_.c_str()) != 0) return cannot_write(target_, errno);
  ::close(std::exchange(descriptor_, -1));
  forget_unfinished(path_);
  return sync_folder_of(target_);
}

}  // namespace skein::cli
