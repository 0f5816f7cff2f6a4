#include "storage/files/opened_directory.hpp"

#include <sys/stat.h>

#include <cerrno>

namespace skein::storage {

void opened_directory::remember() {
  identity now;
  if (look(now) == looked_for::found) opened_ = now;
}

bool opened_directory::is_there() const {
  if (!opened_) return true;
  identity now;
  const auto looked = look(now);
  return looked == looked_for::unknown || (looked == looked_for::found && now == *opened_);
}

/// unknown: an error that does not tell whether the file exists.
opened_directory::looked_for opened_directory::look(identity& found) const {
  struct stat file {};
  if (::stat(lock_file_.c_str(), &file) != 0)
    return errno == ENOENT || errno == ENOTDIR ? looked_for::missing : looked_for::unknown;
  found = {file.st_dev, file.st_ino};
  return looked_for::found;
}

}  // namespace skein::storage
