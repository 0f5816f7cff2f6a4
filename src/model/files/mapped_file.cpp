#include "model/files/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace skein::model {
namespace {

error failed(const std::filesystem::path& path, const char* doing, int code) {
  const auto kind = code == ENOENT || code == ENOTDIR ? error_kind::missing_file
                    : code == EACCES || code == EPERM ? error_kind::forbidden
                                                      : error_kind::io;
  return {kind, path.string() + ": cannot " + doing + ": " + std::generic_category().message(code), {}};
}

struct descriptor {
  int fd;
  ~descriptor() { ::close(fd); }
};

}  // namespace

result<mapped_file> mapped_file::open(const std::filesystem::path& path) {
  // O_NONBLOCK: otherwise opening a named pipe waits for a writer.
  const descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return failed(path, "open", errno);
  struct stat about {};
  if (::fstat(file.fd, &about) != 0) return failed(path, "stat", errno);
  if (!S_ISREG(about.st_mode)) return error{error_kind::bad_file, path.string() + ": is not a regular file", {}};
  if (about.st_size == 0) return error{error_kind::bad_file, path.string() + ": is empty", {}};
  const auto bytes = static_cast<std::size_t>(about.st_size);
  void* const start = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (start == MAP_FAILED) return failed(path, "map", errno);
  return mapped_file({static_cast<const std::byte*>(start), bytes});
}

mapped_file::mapped_file(mapped_file&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

mapped_file& mapped_file::operator=(mapped_file&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

mapped_file::~mapped_file() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void mapped_file::read_ahead(bool on) const {
  // Advice only: if the kernel rejects it, reads still return the right bytes.
  (void)::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), on ? MADV_NORMAL : MADV_RANDOM);
}

}  // namespace skein::model
