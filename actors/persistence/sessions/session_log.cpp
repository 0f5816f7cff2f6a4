#include "actors/persistence/sessions/session_log.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "base/log/log.hpp"

namespace skein::persistence {
namespace {

constexpr auto retry_pause = std::chrono::seconds(2);
// Memory of a turn without its texts.
constexpr std::size_t turn_overhead = sizeof(version_record) + 256;
constexpr const char* unneeded_note = "a note that stays only adds an unfinished answer";

/// A random uid for sessions that begin while the disk fails. The disk never assigns a uid with the top bit set.
session_uid number_by_chance() {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  return random() | session_uid{1} << 63;
}

/// `known`: the session's names, title and metadata are counted already.
std::size_t bytes_of(const session_record& session, bool known, std::span<const shared_version> versions) {
  std::size_t bytes = turn_overhead + (known ? 0 : label_bytes(session));
  for (const auto& v : versions) bytes += turn_overhead + content_bytes(*v);
  return bytes;
}

}  // namespace

/// A write failed. Operations that also read call this only if the database fails: a record that cannot be read is not
/// a disk that rejects writes.
void session_log::fail(const error& why, session_uid whose, steady_time now) {
  doubtful_ = whose;
  if (!failing_)
    log::error("the disk rejects writes; turns stay in memory until it recovers",
               {{"why", why.message}, {"kind", to_string(why.kind)}});
  failing_ = true;
  next_retry_ = now + retry_pause;
}

void session_log::keep(const session_record& session, std::span<const shared_version> versions, std::size_t bytes) {
  auto& kept = unsaved_[session.uid];
  kept.session = session;
  kept.versions.insert(kept.versions.end(), versions.begin(), versions.end());
  kept.bytes += bytes;
  unsaved_bytes_ += bytes;
}

void session_log::distrust(const session_record& session, std::span<const shared_version> versions,
                           version_id refused) {
  if (doubtful_ != session.uid) return;
  doubtful_ = 0;
  keep(session, versions,
       bytes_of(session, has_unsaved(session.uid),
                versions));  // may exceed the limit, once for each failure of the disk
  if (refused != storage::beginning) unsaved_[session.uid].refused.push_back(refused);
}

void session_log::disown(const session_record& session, const session_record* named_so,
                         std::span<const shared_version> versions) {
  const auto kept = unsaved_.find(session.uid);
  if (doubtful_ != session.uid && kept == unsaved_.end()) return;
  if (kept != unsaved_.end()) {
    unsaved_bytes_ -= kept->second.bytes;
    unsaved_.erase(kept);
  }
  doubtful_ = 0;
  disowned_.push_back(session);
  if (named_so) keep(*named_so, versions, bytes_of(*named_so, has_unsaved(named_so->uid), versions));
}

result<durability> session_log::commit(const session_record& session, std::span<const shared_version> versions,
                                       durability wanted, steady_time now) {
  if (!failing_) {
    const auto written = store_.commit_shared(session, versions, wanted == durability::power);
    if (written) return !on_disk() ? durability::memory : wanted == durability::power ? wanted : durability::process;
    fail(written.error(), session.uid, now);
  }
  const std::size_t bytes = bytes_of(session, has_unsaved(session.uid), versions);
  if (bytes <= unsaved_bytes_max_ && unsaved_bytes_ <= unsaved_bytes_max_ - bytes) {
    keep(session, versions, bytes);
    return durability::memory;
  }
  return error{error_kind::no_space,
               "the disk rejects writes, and the memory for unsaved turns is full (sessions.unsaved_bytes_max)", ""};
}

result<void> session_log::commit_to_disk(const session_record& session, std::span<const shared_version> versions,
                                         steady_time now) {
  if (failing_) return error{error_kind::no_space, "the disk rejects writes at present", ""};
  auto written = store_.commit_shared(session, versions, false);
  if (!written) fail(written.error(), session.uid, now);
  return written;
}

result<void> session_log::commit_staged(const session_record& session, const session_record* replaced,
                                        steady_time now) {
  if (failing_) return error{error_kind::no_space, "the disk rejects writes at present", ""};
  auto written = store_.commit_staged(session, replaced ? replaced->uid : 0);
  if (!written && db_->failing()) fail(written.error(), session.uid, now);
  return written;
}

result<void> session_log::rewrite(const session_record& session, steady_time now) {
  if (failing_) return error{error_kind::no_space, "the disk rejects writes at present", ""};
  auto written = store_.rewrite(session);
  if (!written) fail(written.error(), session.uid, now);
  return written;
}

void session_log::note_running(session_uid uid, const version_record& so_far) {
  if (!failing_ && !unsaved_.contains(uid)) ignore(store_.note_running(uid, {so_far}), "a note is best effort");
}

void session_log::forget_running(session_uid uid, version_id number) {
  if (!failing_) ignore(store_.forget_running(uid, number), unneeded_note);
}

void session_log::forget_running(session_uid uid) {
  if (!failing_) ignore(store_.forget_running(uid), unneeded_note);
}

result<void> session_log::remove(const session_record& session, steady_time now) {
  if (failing_) return error{error_kind::no_space, "the disk rejects writes at present", ""};
  auto removed = store_.remove(session);
  if (!removed && db_->failing()) fail(removed.error(), session.uid, now);
  return removed;
}

result<void> session_log::remove_versions(const session_tree::removal& what, steady_time now) {
  if (failing_) return error{error_kind::no_space, "the disk rejects writes at present", ""};
  auto removed = store_.remove_versions(what.record, what.gone, what.marked);
  if (!removed && db_->failing()) fail(removed.error(), what.record.uid, now);
  return removed;
}

session_uid session_log::new_uid() {
  if (!failing_)
    if (auto uid = store_.new_uid()) return *uid;
  return number_by_chance();
}

std::vector<session_uid> session_log::retry(steady_time now) {
  std::vector<session_uid> saved;
  if (!failing() || now < next_retry_) return saved;
  next_retry_ = now + retry_pause;
  if (!db_->probe() || !failing_) return saved;
  while (!unsaved_.empty()) {
    const auto& [uid, kept] = *unsaved_.begin();
    // Written together with the end of a session that the disk may have under this name, which would be out of reach.
    const auto named_so = std::ranges::find_if(disowned_, [&kept = kept](const session_record& gone) {
      return gone.key == kept.session.key && gone.uid != kept.session.uid;
    });
    const session_uid replaced = named_so != disowned_.end() ? named_so->uid : 0;
    auto written = store_.commit_shared(kept.session, kept.versions, false, kept.refused, replaced);
    // Perhaps the other session cannot be read; then its contents stay out of reach.
    if (!written && replaced != 0 && !db_->failing())
      written = store_.commit_shared(kept.session, kept.versions, false, kept.refused);
    if (!written) return saved;
    saved.push_back(uid);
    unsaved_bytes_ -= kept.bytes;
    unsaved_.erase(unsaved_.begin());
  }
  for (std::size_t i = disowned_.size(); i-- > 0;) {
    session_record gone = disowned_[i];
    const auto named = store_.find(gone.key);
    if (!named || !*named || (*named)->uid != gone.uid) gone.key.id.clear();  // another session has the name now
    if (const auto removed = store_.remove(gone)) {
      disowned_.erase(disowned_.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (db_->failing()) {
      return saved;
    } else {  // it cannot be read; it is tried again after the next failure
      log::warning("a session whose creation failed cannot be removed",
                   {{"session", gone.uid}, {"why", removed.error().message}});
    }
  }
  failing_ = false;
  log::info("the disk accepts writes again", {{"written", static_cast<std::uint64_t>(saved.size())}});
  return saved;
}

std::vector<session_record> session_log::unsaved_records() const {
  std::vector<session_record> all;
  all.reserve(unsaved_.size());
  for (const auto& [uid, kept] : unsaved_) all.push_back(kept.session);
  return all;
}

}  // namespace skein::persistence
