#include "storage/files/write_failure.hpp"

#include "base/log/log.hpp"
#include "storage/files/rocksdb_status.hpp"

namespace skein::storage {

error write_failure::why() const {
  const std::lock_guard entered(mutex_);
  return why_;
}

void write_failure::begin(const rocksdb::Status& cause) {
  const std::lock_guard entered(mutex_);
  if (on_) return;
  why_ = from_status(cause, "writing to " + directory_);
  on_ = true;
  log::warning("writing to the database fails", {{"why", why_.message}});
}

result<void> write_failure::noted(const rocksdb::Status& outcome, std::string_view doing) {
  if (outcome.ok()) return {};
  begin(outcome);
  return from_status(outcome, doing);
}

}  // namespace skein::storage
