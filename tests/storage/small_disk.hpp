#pragma once
#include <sys/mount.h>

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/oracle.hpp"

namespace skein::test {

/// A tmpfs of some MB in a folder.
class small_disk {
 public:
  explicit small_disk(const std::string& megabytes = "24")
      : mounted_(::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, ("size=" + megabytes + "m").c_str()) == 0) {}
  ~small_disk() {
    if (mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  small_disk(const small_disk&) = delete;  // one owner unmounts it
  small_disk& operator=(const small_disk&) = delete;
  bool mounted() const { return mounted_; }
  std::filesystem::path path() const { return folder_.path(); }

  /// Leaves `room` bytes, to a page.
  void fill(std::uintmax_t room = 0) const {
    std::ofstream ballast(path() / "ballast", std::ios::binary);
    const std::string page(1 << 12, 'x');
    while (std::filesystem::space(path()).available > room &&
           ballast.write(page.data(), static_cast<std::streamsize>(page.size())).flush()) {
    }
  }
  void free() const { std::filesystem::remove(path() / "ballast"); }

 private:
  temporary_folder folder_;
  bool mounted_;
};

inline boost::test_tools::assertion_result may_mount(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result may(small_disk().mounted());
  may.message() << "no file system can be mounted here";
  return may;
}

}  // namespace skein::test
