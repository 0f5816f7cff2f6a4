#pragma once
#include <sys/types.h>

#include <filesystem>

namespace skein::storage {

/// While it exists, root acts as the owner of a folder, so that files made there belong to the owner: a server could
/// not open a database with files of root. All threads of the process do. No effect for other users, or if the folder
/// is missing.
class as_owner_of {
 public:
  explicit as_owner_of(const std::filesystem::path& folder);
  ~as_owner_of();
  as_owner_of(const as_owner_of&) = delete;  // the user is a property of the process
  as_owner_of& operator=(const as_owner_of&) = delete;

 private:
  bool acts_ = false;
  gid_t group_ = 0;  // before
};

}  // namespace skein::storage
