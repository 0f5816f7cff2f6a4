#include "storage/database.hpp"

#include "storage/database_impl.hpp"

namespace skein::storage {

std::filesystem::path database_directory(const std::filesystem::path& state_directory) {
  return state_directory / "sessions";
}

database::database(std::unique_ptr<impl> inside) : impl_(std::move(inside)) {}
database::~database() = default;

result<std::shared_ptr<database>> database::open(const database_options& options) {
  auto inside = std::make_unique<impl>(options);
  if (const auto opened = inside->open(); !opened) return opened.error();
  return std::shared_ptr<database>(new database(std::move(inside)));
}

bool database::on_disk() const { return !impl_->options.directory.empty(); }
const std::filesystem::path& database::directory() const { return impl_->options.directory; }
bool database::failing() const { return impl_->failing; }
bool database::probe() { return impl_->probe(); }
result<void> database::flush() { return impl_->flush({}); }

}  // namespace skein::storage
