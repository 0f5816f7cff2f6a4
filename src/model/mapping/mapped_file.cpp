#include "model/mapping/mapped_file.hpp"

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
  ~descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

result<mapped_file> mapped_file::open(const std::filesystem::path& path) {
  // O_NONBLOCK: otherwise opening a named pipe waits for a writer.
  descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return failed(path, "open", errno);
  struct stat about {};
  if (::fstat(file.fd, &about) != 0) return failed(path, "stat", errno);
  if (!S_ISREG(about.st_mode)) return error{error_kind::bad_file, path.string() + ": is not a regular file", {}};
  if (about.st_size == 0) return error{error_kind::bad_file, path.string() + ": is empty", {}};
  const auto bytes = static_cast<std::size_t>(about.st_size);
  void* const start = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (start == MAP_FAILED) return failed(path, "map", errno);
  return mapped_file({static_cast<const std::byte*>(start), bytes}, std::exchange(file.fd, -1), about.st_mtim);
}

mapped_file::mapped_file(mapped_file&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})),
      guard_(std::move(other.guard_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      written_(other.written_) {}

mapped_file& mapped_file::operator=(mapped_file&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(guard_, other.guard_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(written_, other.written_);
  return *this;
}

mapped_file::~mapped_file() {
  guard_.release();
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool mapped_file::unchanged() const {
  struct stat now {};
  return !guard_.lost() && ::fstat(descriptor_, &now) == 0 && static_cast<std::size_t>(now.st_size) == bytes_.size() &&
         now.st_mtim.tv_sec == written_.tv_sec && now.st_mtim.tv_nsec == written_.tv_nsec;
}

void mapped_file::read_ahead(bool on) const {
  // Advice only: if the kernel rejects it, reads still return the right bytes.
  (void)::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), on ? MADV_NORMAL : MADV_RANDOM);
}

error changed_file(const std::filesystem::path& path) {
  return {error_kind::io,
          path.string() + ": the file changed, or could not be read, while it was read; write a new file and rename it",
          {}};
}

}  // namespace skein::model
