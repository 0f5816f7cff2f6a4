#include "storage/repair/verify.hpp"

#include <map>

#include "storage/database/database_impl.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/records/session_check.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/records/version_outlines.hpp"
#include "storage/sessions/session_store.hpp"
#include "storage/states/raw_states.hpp"

namespace skein::storage {
namespace {

using keys::number_at;

std::string numbered(const char* what, std::uint64_t number, session_uid owner) {
  return what + std::to_string(number) + " of session number " + std::to_string(owner);
}

class verifier {
 public:
  verifier(database& db, const std::stop_token& stop) : db_(db), stop_(stop) {}

  result<verification> run() {
    for (const auto& loss : db_.internals().log_losses) found("log", loss);
    read_all("sessions", &verifier::sessions);
    read_all("origins of forks", &verifier::origins);
    read_all("versions", &verifier::versions);
    read_all("running turns", &verifier::running);
    read_all("index of states", &verifier::index);
    read_all("shared states", &verifier::shares);
    states();
    read_all("quarantine", &verifier::quarantine);
    if (stop_.stop_requested())
      return error{error_kind::cancelled, "verification was cancelled: the server is shutting down", {}};
    return std::move(report_);
  }

 private:
  void found(std::string record, std::string why) {
    ++report_.damaged_count;
    if (report_.damaged.size() < verification::findings_max)
      report_.damaged.push_back({std::move(record), std::move(why)});
  }
  /// An entry that RocksDB cannot read hides the later entries of the same family, and no others.
  void read_all(const char* what, result<void> (verifier::*read)()) {
    if (const auto done = (this->*read)(); !done) found(what, done.error().message + "; later records were not read");
  }
  result<void> sessions() {
    return db_.internals().scan(family::sessions, {}, {}, [&](std::string_view key, std::string_view value) {
      auto session = decode_session(value);
      const std::string name = "session '" +
                               (key.size() > 4 ? std::string(key.substr(std::min(key.size(), 4 + number_at(key, 0, 4))))
                                               : std::string(key)) +
                               "'";
      if (!session)
        found(name, session.error().message);
      else if (keys::of_session(session->key) != key)
        found(name, "it is the record of session '" + session->key.id + "'");
      else if (!sessions_.try_emplace(session->uid, *session).second)
        found(name, "its number is that of another session");
      else
        ++report_.sessions;
      return true;
    });
  }

  result<void> origins() {
    const std::string first(keys::forks_prefix);
    return db_.internals().scan(family::meta, first, keys::after_all(first),
                                [&](std::string_view key, std::string_view value) {
                                  const session_uid fork = number_at(key, first.size());
                                  if (auto origin = decode_origin(value, fork))
                                    shared_.add_origin(fork, std::move(*origin));
                                  else
                                    found("origin of session number " + std::to_string(fork), origin.error().message);
                                  return true;
                                });
  }

  /// The versions of one session.
  struct versions_found {
    session_uid of = 0;
    std::vector<version_outline> written, own;  ///< own: without those that it keeps for forks
    bool whole = true;
  };

  /// Versions by session, in key order. Forks are checked last, when the versions that they share have been read.
  result<void> versions() {
    versions_found all;
    const auto finish = [&] {
      if (all.whole && shared_.has_forks(all.of)) shared_.add(all.of, std::move(all.written));
      if (shared_.origin_of(all.of))
        forks_[all.of] = {all.of, {}, std::move(all.own), all.whole};
      else if (all.of != 0 && all.whole)
        check_versions(all.of, all.own);
      checked_.insert_or_assign(all.of, true);
    };
    const auto looked =
        db_.internals().scan(family::versions, {}, {}, [&](std::string_view key, std::string_view value) {
          const session_uid owner = number_at(key, 0);
          if (owner != all.of) {
            finish();
            all = {owner, {}, {}, true};
          }
          const auto version = decode_any_version(value, owner);
          if (version && keys::of_version(owner, version->id) == key) {
            ++report_.versions;
            all.written.push_back(outline_of(*version));
            if (!is_kept(value)) all.own.push_back(all.written.back());
            return !stop_.stop_requested();
          }
          all.whole = false;
          found(numbered("version ", number_at(key, 8, 4), owner),
                version ? "it has another number" : version.error().message);
          return true;
        });
    if (!looked) return looked.error();
    finish();
    for (const auto& [uid, session] : sessions_)
      if (shared_.origin_of(uid))
        check_fork(session, forks_[uid]);
      else if (!checked_.contains(uid))
        check_versions(uid, {});
    return {};
  }

  void check_fork(const session_record& session, const versions_found& own) {
    if (stop_.stop_requested() || !own.whole) return;
    auto all = shared_.inherited(session.uid);
    if (!all)
      return found("session '" + session.key.id + "'", "a version that it shares with another session is missing");
    all->insert(all->end(), own.own.begin(), own.own.end());
    if (const auto sound = check_session(session, *all); !sound)
      found("session '" + session.key.id + "'", sound.error().message);
  }

  void check_versions(session_uid uid, const std::vector<version_outline>& all) {
    const auto session = sessions_.find(uid);
    if (session == sessions_.end() && (is_marked(keys::of_staged(uid)) || is_marked(keys::of_stem(uid)))) return;
    if (session == sessions_.end())
      found("versions of session number " + std::to_string(uid), "there is no such session");
    else if (const auto sound = check_session(session->second, all); !sound)
      found("session '" + session->second.key.id + "'", sound.error().message);
  }

  /// Whether the database has a mark with this key: of a session that is being imported, or was when a server crashed,
  /// or of one that keeps versions for forks.
  bool is_marked(const std::string& key) {
    const auto marked = db_.internals().read(family::meta, key, [](auto) {});
    return marked && *marked;
  }

  result<void> running() {
    return db_.internals().scan(family::running, {}, {}, [&](std::string_view key, std::string_view value) {
      const auto turn = decode_running(value, number_at(key, 0));
      if (turn)
        ++report_.running;
      else
        found("running turn of session number " + std::to_string(number_at(key, 0)), turn.error().message);
      return true;
    });
  }

  result<void> index() {
    return db_.internals().scan(family::state_index, {}, {}, [&](std::string_view key, std::string_view value) {
      const state_key of{number_at(key, 0), number_at(key, 8)};
      const auto entry = decode_entry(value, of);
      if (entry && entry->complete)
        entries_.push_back(*entry);
      else if (!entry)
        found("index entry of the " + name_of(of), entry.error().message);
      return true;
    });
  }

  result<void> shares() {
    const std::string first(keys::shares_prefix);
    const auto look = [&](std::string_view key, std::string_view value) {
      const session_uid borrower = number_at(key, first.size());
      const auto shared = decode_shares(value, borrower);
      if (!shared) found("states that session number " + std::to_string(borrower) + " shares", shared.error().message);
      return true;
    };
    return db_.internals().scan(family::meta, first, keys::after_all(first), look);
  }

  void states() {
    for (const auto& entry : entries_) {
      if (stop_.stop_requested()) return;
      const auto state = checked_raw_state(db_.internals(), entry);
      if (!state)
        found(name_of(entry.key), state.error().message);
      else
        ++(entry.key.owner == 0 ? report_.prefixes : report_.states), report_.state_bytes += state->size();
    }
  }

  result<void> quarantine() {
    return db_.internals().scan(family::quarantine, {}, {},
                                [&](std::string_view, std::string_view) { return ++report_.set_aside > 0; });
  }

  database& db_;
  const std::stop_token stop_;
  verification report_;
  std::map<session_uid, session_record> sessions_;
  std::map<session_uid, bool> checked_;
  version_outlines shared_;
  std::map<session_uid, versions_found> forks_;
  std::vector<state_entry> entries_;
};

}  // namespace

result<verification> verify(database& db, const std::stop_token& stop) { return verifier(db, stop).run(); }

}  // namespace skein::storage
