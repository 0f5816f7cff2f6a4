#include "storage/files/folder_owner.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "base/check.hpp"

namespace skein::storage {

as_owner_of::as_owner_of(const std::filesystem::path& folder) {
  struct stat found {};
  if (::geteuid() != 0 || ::stat(folder.c_str(), &found) != 0 || found.st_uid == 0) return;
  group_ = ::getegid();
  if (::setegid(found.st_gid) != 0) return;  // a container may forbid it
  acts_ = ::seteuid(found.st_uid) == 0;
  if (!acts_) check(::setegid(group_) == 0);
}

as_owner_of::~as_owner_of() {
  if (!acts_) return;
  check(::seteuid(0) == 0);
  check(::setegid(group_) == 0);
}

}  // namespace skein::storage
