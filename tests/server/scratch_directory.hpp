#pragma once
#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace skein::test {

/// A directory that is empty at first and gone at the end.
class scratch_directory {
 public:
  scratch_directory() {
    std::string name = (std::filesystem::temp_directory_path() / "skein-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no scratch directory");
    path_ = name;
  }
  ~scratch_directory() { std::filesystem::remove_all(path_); }
  scratch_directory(const scratch_directory&) = delete;  // one removes it
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace skein::test
