#include "storage/sessions/version_forks.hpp"

#include <algorithm>
#include <utility>

#include "storage/database/database_impl.hpp"
#include "storage/database/quarantine.hpp"
#include "storage/database/shared_way.hpp"
#include "storage/records/storage_keys.hpp"

namespace skein::storage {
namespace {

std::string encode_stem(bool session_lives) { return encode_number(record_kind::counter, session_lives ? 1 : 0); }

/// An unreadable record means that the session lives, so that none of its versions are deleted.
bool says_that_it_lives(std::string_view stem) {
  const auto lives = decode_number(stem, record_kind::counter);
  return !lives || *lives != 0;
}

result<std::vector<std::string>> version_keys(database::impl& db, session_uid uid) {
  std::vector<std::string> all;
  const std::string first = keys::of_number(uid);
  const auto looked = db.scan(family::versions, first, keys::after_all(first), [&](std::string_view key, auto) {
    all.emplace_back(key);
    return true;
  });
  if (!looked) return looked.error();
  return all;
}

void put_origin(change_list& changes, session_uid fork, const fork_origin& origin) {
  if (origin.last == beginning) return changes.erase(family::meta, keys::of_fork(fork));
  changes.put(family::meta, keys::of_fork(fork), encode_origin(fork, origin));
  changes.put(family::meta, keys::format, encode_number(record_kind::database_format, database_format_with_forks));
}

void put_trim(change_list& changes, session_uid uid) { changes.put(family::meta, keys::of_trim(uid), {}); }

void erase_beyond(std::vector<version_id>& ascending, version_id last) {
  ascending.erase(std::ranges::upper_bound(ascending, last), ascending.end());
}

}  // namespace

version_forks::version_forks(std::shared_ptr<database> db) : db_(std::move(db)) {
  auto& inside = db_->internals();
  load_origins(inside);
  const auto each = [&](std::string_view prefix, const auto& use) {
    const std::string first(prefix);
    const auto looked =
        inside.scan(family::meta, first, keys::after_all(first), [&](std::string_view key, std::string_view value) {
          use(keys::number_at(key, first.size()), value);
          return true;
        });
    ignore(looked, "versions of unknown stems stay");
  };
  each(keys::stems_prefix, [&](session_uid uid, std::string_view value) { stems_[uid] = {says_that_it_lives(value)}; });
  each(keys::trims_prefix, [&](session_uid uid, std::string_view) { due_.insert(uid); });
}

void version_forks::load_origins(database::impl& db) {
  struct unreadable {
    session_uid fork;
    std::string record;
    error why;
  };
  std::vector<unreadable> bad;
  const std::string first(keys::forks_prefix);
  const auto looked =
      db.scan(family::meta, first, keys::after_all(first), [&](std::string_view key, std::string_view value) {
        const session_uid fork = keys::number_at(key, first.size());
        if (const auto origin = decode_origin(value, fork))
          shares_.set(fork, {origin->owner, origin->last});
        else
          bad.push_back({fork, std::string(value), origin.error()});
        return true;
      });
  ignore(looked, "requests for these forks fail as damaged");
  for (const auto& one : bad)
    if (is_damage(one.why))
      (void)set_aside(db, family::meta, keys::of_fork(one.fork), one.record,
                      "origin of session number " + std::to_string(one.fork), one.why);
}

bool version_forks::is_stem(session_uid uid) const {
  const auto found = stems_.find(uid);
  return found != stems_.end() && !found->second.session_lives;
}

result<std::optional<fork_origin>> version_forks::origin_of(session_uid uid) {
  if (const auto known = unwritten_.find(uid); known != unwritten_.end()) return std::optional(known->second);
  if (!shares_.of(uid)) return std::optional<fork_origin>();
  std::string bytes;
  const auto found =
      db_->internals().read(family::meta, keys::of_fork(uid), [&](std::string_view value) { bytes = value; });
  if (!found) return found.error();
  if (!*found)
    return error{
        error_kind::damaged, "origin of session number " + std::to_string(uid) + ": the record is missing", {}};
  auto origin = decode_origin(bytes, uid);
  if (!origin) return origin.error();
  return std::optional(std::move(*origin));
}

result<std::vector<version_record>> version_forks::inherited(session_uid uid) {
  const auto origin = origin_of(uid);
  if (!origin) return origin.error();
  if (!*origin) return std::vector<version_record>();
  auto way = read_way(db_->internals(), shares_, {(*origin)->owner, (*origin)->shown});
  if (!way) return way;
  // Whether a version is deleted is decided by each session.
  for (auto& version : *way) version.deleted = std::ranges::binary_search((*origin)->deleted, version.id);
  return way;
}

void version_forks::fork(session_uid fork, session_uid from, version_id version, std::vector<version_id> deleted) {
  if (version == beginning) return;
  const auto last = shares_.written_by(from, version);
  shares_.set(fork, last);
  unwritten_[fork] = {last.owner, version, version, std::move(deleted)};
}

void version_forks::unfork(session_uid fork) {
  const auto origin = unwritten_.find(fork);
  const bool due = origin != unwritten_.end() && needs_trim(origin->second);
  const session_uid owner = due ? origin->second.owner : 0;
  unwritten_.erase(fork);
  shares_.forget(fork);
  if (!due) return;
  due_.insert(owner);
  trim();
}

void version_forks::add_to(change_list& changes, session_uid uid) {
  if (const auto origin = unwritten_.find(uid); origin != unwritten_.end()) put_origin(changes, uid, origin->second);
  if (!doubtful_.contains(uid)) return;
  if (const auto known = stems_.find(uid); known != stems_.end())
    changes.put(family::meta, keys::of_stem(uid), encode_stem(known->second.session_lives));
  else
    changes.erase(family::meta, keys::of_stem(uid));
}

void version_forks::added(session_uid uid) {
  unwritten_.erase(uid);
  doubtful_.erase(uid);
}

/// Whether the owner may keep versions only for this fork.
bool version_forks::needs_trim(const std::optional<fork_origin>& origin) const {
  return origin && stems_.contains(origin->owner) && shares_.forks_at({origin->owner, origin->last}) <= 1;
}

void version_forks::set_origin(session_uid uid, const std::optional<fork_origin>& origin) {
  unwritten_.erase(uid);
  if (origin && origin->last != beginning)
    shares_.set(uid, {origin->owner, origin->last});
  else
    shares_.forget(uid);
}

// ---------------------------------------------------------------- deleting a session

result<version_forks::leaving> version_forks::leave(session_uid uid) {
  leaving gone{uid, shares_.has_forks(uid), false, {}, {}};
  const auto origin = origin_of(uid);
  if (!origin && !is_damage(origin.error())) return origin.error();
  if (origin) gone.origin = *origin;
  if (gone.stays) return gone;
  gone.origin_due = needs_trim(gone.origin);
  auto versions = version_keys(db_->internals(), uid);
  if (!versions) return versions.error();
  gone.versions = std::move(*versions);
  return gone;
}

void version_forks::add_to(change_list& changes, const leaving& gone) const {
  if (gone.stays) {
    if (unwritten_.contains(gone.uid)) put_origin(changes, gone.uid, *gone.origin);
    changes.put(family::meta, keys::of_stem(gone.uid), encode_stem(false));
    return put_trim(changes, gone.uid);
  }
  for (const auto& key : gone.versions) changes.erase(family::versions, key);
  for (const auto& key : {keys::of_fork(gone.uid), keys::of_stem(gone.uid), keys::of_trim(gone.uid)})
    changes.erase(family::meta, key);
  if (gone.origin_due) put_trim(changes, gone.origin->owner);
}

void version_forks::left(const leaving& gone, bool written) {
  if (!written) {
    if (gone.origin) unwritten_[gone.uid] = *gone.origin;
    doubtful_.insert(gone.uid);
    return;
  }
  added(gone.uid);
  if (gone.stays) {
    stems_[gone.uid] = {false};
    due_.insert(gone.uid);
    return;
  }
  set_origin(gone.uid, {});
  stems_.erase(gone.uid);
  due_.erase(gone.uid);
  if (gone.origin_due) due_.insert(gone.origin->owner);
}

// ---------------------------------------------------------------- deleting versions

result<version_forks::dropping> version_forks::drop(session_uid uid, std::span<const version_id> gone,
                                                    std::span<const version_record> marked) {
  auto& db = db_->internals();
  dropping less{uid, {}, {}, false, {}, {}};
  const auto origin = origin_of(uid);
  if (!origin) return origin.error();
  const version_id inherited = *origin ? (*origin)->last : beginning;
  auto after = *origin;
  for (const auto& version : marked)
    if (version.id <= inherited)
      after->deleted.insert(std::ranges::lower_bound(after->deleted, version.id), version.id);
  version_id first_shared = beginning;  // of those to drop
  for (const version_id id : gone) {
    if (id <= inherited) {
      first_shared = first_shared == beginning ? id : std::min(id, first_shared);
    } else if (!shares_.may_have(uid, id)) {
      less.gone.push_back(id);
    } else {
      std::string bytes;
      const auto found = db.read(family::versions, keys::of_version(uid, id), [&](auto value) { bytes = value; });
      if (!found) return found.error();
      auto version = decode_any_version(bytes, uid);
      if (!version) return version.error();
      less.kept.push_back(std::move(*version));
    }
  }
  if (first_shared != beginning) {  // it shares fewer versions
    const auto at = shares_.written_by(uid, first_shared);
    const auto way = read_way(db, shares_, at);
    if (!way) return way.error();
    after->shown = way->size() > 1 ? (*way)[way->size() - 2].id : beginning;
    if (!shares_.has_forks(uid)) after->last = after->shown;
    erase_beyond(after->deleted, after->shown);
  }
  if (after == *origin) return less;
  less.origin_due = after->last != (*origin)->last && needs_trim(*origin);
  less.before = *origin;
  less.after = std::move(after);
  return less;
}

namespace {

bool keeps_more(const std::optional<fork_origin>& origin) { return origin && origin->last != origin->shown; }

}  // namespace

void version_forks::add_to(change_list& changes, const dropping& less) const {
  for (const auto& version : less.kept)
    changes.put(family::versions, keys::of_version(less.uid, version.id), encode_kept(less.uid, version));
  for (const version_id id : less.gone) changes.erase(family::versions, keys::of_version(less.uid, id));
  if (less.after) put_origin(changes, less.uid, *less.after);
  if (less.origin_due) put_trim(changes, less.before->owner);
  if (less.kept.empty() && !keeps_more(less.after)) return;
  changes.put(family::meta, keys::of_stem(less.uid), encode_stem(true));
  put_trim(changes, less.uid);
}

void version_forks::dropped(const dropping& less, bool written) {
  if (!written) {
    if (less.before) unwritten_[less.uid] = *less.before;
    doubtful_.insert(less.uid);
    return;
  }
  if (less.after) set_origin(less.uid, less.after);
  if (less.origin_due) due_.insert(less.before->owner);
  if (less.kept.empty() && !keeps_more(less.after)) return;
  stems_[less.uid] = {true};
  due_.insert(less.uid);
}

// ---------------------------------------------------------------- trimming kept versions

/// The versions that a stem can drop.
struct version_forks::cut {
  std::vector<version_id> gone;
  version_id needed_before = beginning;  ///< the last needed one of the versions that it shares itself
  bool keeps = true;                     ///< it keeps versions only for forks
};

void version_forks::trim() {
  while (!due_.empty()) {
    const std::set<session_uid> now = std::exchange(due_, {});
    bool progress = false;
    for (const session_uid uid : now) {
      const bool done = trim(uid).has_value();
      progress = progress || done;
      if (!done) due_.insert(uid);
    }
    if (!progress) return;  // the next call or the next start tries again
  }
}

result<void> version_forks::trim(session_uid uid) {
  auto& db = db_->internals();
  const auto known = stems_.find(uid);
  if (known == stems_.end())
    return db.write(safety::logged, [&](change_list& changes) { changes.erase(family::meta, keys::of_trim(uid)); });
  const bool lives = known->second.session_lives;
  if (!lives && !shares_.has_forks(uid)) return free_stem(uid);
  const auto origin = origin_of(uid);
  if (!origin) return origin.error();
  const auto found = cut_of(uid, lives, *origin);
  if (!found) return found.error();
  std::optional<fork_origin> after = *origin;
  if (after && found->needed_before < after->last) {
    after->last = found->needed_before;
    after->shown = std::min(after->shown, after->last);
    erase_beyond(after->deleted, after->shown);
  }
  const bool is_shorter = after != *origin;
  const bool origin_due = is_shorter && needs_trim(*origin);
  const bool is_whole = lives && !found->keeps && !keeps_more(after);
  auto written = db.write(safety::logged, [&](change_list& changes) {
    for (const version_id id : found->gone) changes.erase(family::versions, keys::of_version(uid, id));
    if (is_shorter) put_origin(changes, uid, *after);
    if (origin_due) put_trim(changes, (*origin)->owner);
    if (is_whole) changes.erase(family::meta, keys::of_stem(uid));
    // A fork that is not written yet may be lost in a crash; then the next start has to trim again.
    if (!has_unwritten_forks(uid)) changes.erase(family::meta, keys::of_trim(uid));
  });
  if (!written) return written;
  if (is_shorter) set_origin(uid, after);
  if (origin_due) due_.insert((*origin)->owner);
  if (is_whole) stems_.erase(uid);
  return {};
}

result<void> version_forks::free_stem(session_uid uid) {
  const auto gone = leave(uid);
  if (!gone) return gone.error();
  const auto written = db_->internals().write(safety::logged, [&](change_list& changes) { add_to(changes, *gone); });
  if (written) left(*gone, true);
  return written;
}

result<version_forks::cut> version_forks::cut_of(session_uid uid, bool session_lives,
                                                 const std::optional<fork_origin>& origin) {
  struct written_version {
    version_place place;
    bool kept = false;
  };
  std::vector<written_version> all;
  bool whole = true;
  const std::string first = keys::of_number(uid);
  const auto looked = db_->internals().scan(family::versions, first, keys::after_all(first),
                                            [&](std::string_view, std::string_view value) {
                                              const auto place = decode_place(value, uid);
                                              whole = whole && place;
                                              if (place) all.push_back({*place, is_kept(value)});
                                              return whole;
                                            });
  if (!looked) return looked.error();
  const version_id inherited = origin ? origin->last : beginning;
  cut found;
  found.keeps = false;
  if (session_lives && origin) found.needed_before = origin->shown;
  const auto ends = shares_.ends(uid);
  std::set<version_id> needed(ends.begin(), ends.end());
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    const bool for_forks = needed.erase(one->place.id) > 0;
    const bool for_session = session_lives && !one->kept;
    if (!for_forks && !for_session) {
      found.gone.push_back(one->place.id);
      continue;
    }
    found.keeps = found.keeps || !for_session;
    if (one->place.parent <= inherited)
      found.needed_before = std::max(found.needed_before, one->place.parent);
    else if (for_forks)
      needed.insert(one->place.parent);
  }
  if (whole && needed.empty()) return found;
  return cut{{}, inherited, true};  // damage: all versions stay
}

bool version_forks::has_unwritten_forks(session_uid owner) const {
  return std::ranges::any_of(unwritten_, [&](const auto& one) { return one.second.owner == owner; });
}

}  // namespace skein::storage
