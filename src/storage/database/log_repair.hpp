#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "storage/database/database_impl.hpp"
#include "storage/database/log_damage.hpp"

namespace skein::storage {

/// Deals with the sessions that damage in the log affected, once the database is open. After damage in the middle of
/// the log it repairs them, or logs them and sets them aside, because acknowledged turns may be lost. Damage at the end
/// affects only data that the system had not written when it stopped.
class log_repair {
 public:
  log_repair(database::impl& db, std::unique_ptr<damaged_log> log) : db_(db), log_(std::move(log)) {}

  /// Returns the sessions that were set aside: one message for each.
  [[nodiscard]] result<std::vector<std::string>> run();

 private:
  [[nodiscard]] result<bool> mend(std::span<const log_loss> lost);
  [[nodiscard]] std::vector<std::string> set_aside_lost(std::span<const log_loss> lost);

  database::impl& db_;
  const std::unique_ptr<damaged_log> log_;
};

}  // namespace skein::storage
