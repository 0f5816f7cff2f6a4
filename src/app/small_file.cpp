#include "app/small_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/log/log.hpp"

namespace skein::cli {
namespace {

error trouble(const std::filesystem::path& path, int code) {
  const error_kind kind = code == ENOENT   ? error_kind::missing_file
                          : code == EACCES ? error_kind::forbidden
                                           : error_kind::io;
  return {kind, path.string() + ": " + std::strerror(code), {}};
}

}  // namespace

result<std::string> read_small_file(const std::filesystem::path& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) return trouble(path, EISDIR);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return trouble(path, errno ? errno : EIO);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return trouble(path, EIO);
  return text;
}

result<void> judge_secret_file(const std::filesystem::path& path) {
  using std::filesystem::perms;
  std::error_code failed;
  const perms mode = std::filesystem::status(path, failed).permissions();
  if (failed) return {};
  if ((mode & perms::others_write) != perms::none)
    return error{
        error_kind::bad_config, path.string() + " is writable by every user of this machine; run chmod o-w", {}};
  if ((mode & perms::others_read) != perms::none)
    log::warning("a file of secrets can be read by every user of this machine: chmod o-r it",
                 {{"file", path.string()}});
  return {};
}

result<void> write_small_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  if (file.fail()) return error{error_kind::io, "cannot write " + path.string(), {}};
  return {};
}

}  // namespace skein::cli
