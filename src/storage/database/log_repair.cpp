#include "storage/database/log_repair.hpp"

#include <cstdint>
#include <utility>

#include "base/log/log.hpp"
#include "storage/database/quarantine.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/records/storage_keys.hpp"

namespace skein::storage {
namespace {

constexpr int mending_rounds_max = 16;  // one for each level of forks of forks

std::string name_of_lost(const log_loss& one) {
  return "session '" + one.key.id + "' of tenant '" + one.key.tenant + "'";
}

}  // namespace

result<std::vector<std::string>> log_repair::run() {
  auto lost = losses(db_, *log_);
  // A repaired session may contain the versions that a fork was missing.
  for (int round = 0; lost && db_.writable && log_->in_its_middle && round < mending_rounds_max; ++round) {
    const auto mended = mend(*lost);
    if (!mended) return mended.error();
    if (!*mended) break;
    lost = losses(db_, *log_);
  }
  if (!lost) return lost.error();
  auto set_aside = set_aside_lost(*lost);
  if (db_.writable && log_->in_its_middle) {
    // Lost records may contain session numbers that were given out; no log contains this many.
    const auto skipped = db_.take_session_numbers(std::uint64_t{1} << 32);
    if (!skipped) return skipped.error();
  }
  return set_aside;
}

/// Writes the sessions that are complete with the records still in the log. Returns whether it wrote any.
result<bool> log_repair::mend(std::span<const log_loss> lost) {
  bool any = false;
  for (const auto& one : lost) {
    if (!one.mended) continue;
    const session_uid uid = one.mended->uid;
    const auto written = db_.write(safety::logged, [&](change_list& changes) {
      if (one.origin) {
        changes.put(family::meta, keys::of_fork(uid), encode_origin(uid, *one.origin));
        changes.put(family::meta, keys::format,
                    encode_number(record_kind::database_format, database_format_with_forks));
      }
      for (const auto& v : one.missing)
        changes.put(family::versions, keys::of_version(uid, v.id), encode_version(uid, v));
      changes.put(family::sessions, keys::of_session(one.key), encode_session(*one.mended));
    });
    if (!written) return written.error();
    log::warning("turns were read out of a damaged log",
                 {{"record", name_of_lost(one)}, {"versions", one.missing.size()}});
    any = true;
  }
  return any;
}

std::vector<std::string> log_repair::set_aside_lost(std::span<const log_loss> lost) {
  std::vector<std::string> all;
  for (const auto& one : lost) {
    const std::string name = name_of_lost(one);
    if (!log_->in_its_middle) {
      log::warning("turns are lost", {{"record", name}, {"why", one.why}});
      continue;
    }
    const std::string now = one.session.uid != 0 ? encode_session(one.session) : std::string();
    const error why{error_kind::damaged, one.why + (one.mended ? "; the next start of a server repairs it" : ""), {}};
    all.push_back(set_aside(db_, family::sessions, keys::of_session(one.key), now, name, why).message);
  }
  return all;
}

}  // namespace skein::storage
