#pragma once
#include <filesystem>
#include <string_view>

namespace skein::test {

/// A file that lives in memory and has a path while the object lives.
class memory_file {
 public:
  explicit memory_file(std::string_view bytes);
  ~memory_file();
  memory_file(const memory_file&) = delete;  // one owner closes it
  memory_file& operator=(const memory_file&) = delete;
  [[nodiscard]] std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace skein::test
