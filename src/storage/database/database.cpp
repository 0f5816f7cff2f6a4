#include "storage/database/database.hpp"

#include "storage/database/database_impl.hpp"

namespace skein::storage {
namespace {

/// Reports missing permissions as `forbidden`; RocksDB reports them as IOError.
error in_its_kind(error why) {
  for (const auto* text : {"Permission denied", "Operation not permitted", "Read-only file system"})
    if (why.kind == error_kind::io && why.message.ends_with(text)) why.kind = error_kind::forbidden;
  return why;
}

}  // namespace

std::filesystem::path database_directory(const std::filesystem::path& state_directory) {
  return state_directory / "sessions";
}

database::database(std::unique_ptr<impl> inside) : impl_(std::move(inside)) {}
database::~database() = default;

result<std::shared_ptr<database>> database::open(const database_options& options) {
  auto inside = std::make_unique<impl>(options);
  if (const auto opened = inside->open(); !opened) return in_its_kind(opened.error());
  return std::shared_ptr<database>(new database(std::move(inside)));
}

bool database::on_disk() const { return !impl_->options.directory.empty(); }
const std::filesystem::path& database::directory() const { return impl_->options.directory; }
bool database::failing() const { return impl_->failure.is_on(); }
bool database::probe() { return impl_->probe(); }
result<void> database::flush() { return impl_->flush({}); }

}  // namespace skein::storage
