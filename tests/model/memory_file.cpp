#include "tests/model/memory_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>

namespace skein::test {

memory_file::memory_file(std::string_view bytes) : fd_(::memfd_create("skein-test", MFD_CLOEXEC)) {
  if (fd_ < 0) throw std::runtime_error("memfd_create");
  while (!bytes.empty()) {
    const auto written = ::write(fd_, bytes.data(), bytes.size());
    if (written <= 0) throw std::runtime_error("write to a memory file");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

memory_file::~memory_file() { ::close(fd_); }

}  // namespace skein::test
