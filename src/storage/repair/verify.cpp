#include "storage/repair/verify.hpp"

#include <map>

#include "storage/database/database_impl.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/records/session_check.hpp"
#include "storage/records/storage_keys.hpp"
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

  /// Versions by session, in key order.
  result<void> versions() {
    session_uid of = 0;
    std::vector<version_record> all;
    bool whole = true;
    const auto finish = [&] {
      if (of != 0 && whole) check_versions(of, all);
      checked_.insert_or_assign(of, true);
      all.clear();
      whole = true;
    };
    const auto looked =
        db_.internals().scan(family::versions, {}, {}, [&](std::string_view key, std::string_view value) {
          const session_uid owner = number_at(key, 0);
          if (owner != of) finish();
          of = owner;
          auto version = decode_version(value, owner);
          if (version && keys::of_version(owner, version->id) == key) {
            ++report_.versions;
            all.push_back(std::move(*version));
            return !stop_.stop_requested();
          }
          whole = false;
          found(numbered("version ", number_at(key, 8, 4), owner),
                version ? "it has another number" : version.error().message);
          return true;
        });
    if (!looked) return looked.error();
    finish();
    for (const auto& [uid, session] : sessions_)
      if (!checked_.contains(uid)) check_versions(uid, {});
    return {};
  }

  void check_versions(session_uid uid, const std::vector<version_record>& all) {
    const auto session = sessions_.find(uid);
    if (session == sessions_.end() && staged(uid)) return;
    if (session == sessions_.end())
      found("versions of session number " + std::to_string(uid), "there is no such session");
    else if (const auto sound = check_session(session->second, all); !sound)
      found("session '" + session->second.key.id + "'", sound.error().message);
  }

  /// Whether the session is being imported, or was when a server crashed.
  bool staged(session_uid uid) {
    const auto marked = db_.internals().read(family::meta, keys::of_staged(uid), [](auto) {});
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
  std::vector<state_entry> entries_;
};

}  // namespace

result<verification> verify(database& db, const std::stop_token& stop) { return verifier(db, stop).run(); }

}  // namespace skein::storage
