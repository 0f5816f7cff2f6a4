#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/records/version_outlines.hpp"
#include "storage/repair/repair.hpp"
#include "storage/repair/salvage.hpp"

namespace skein::storage {

/// Copies intact records from a damaged database into a new one.
class recovery {
 public:
  /// `into`: null to only count and list.
  recovery(salvage& from, database::impl* into, repair_report& report) : from_(from), into_(into), report_(report) {}
  /// Errors: conflict (the damaged database has a newer format), and those of reading and writing.
  [[nodiscard]] result<void> run();

 private:
  /// Versions of one session, ordered by number.
  struct found_versions {
    std::vector<version_record> whole, kept;  ///< kept: only for forks
    std::uint64_t unreadable = 0;
  };

  [[nodiscard]] result<void> counters();
  [[nodiscard]] result<void> index();
  [[nodiscard]] result<void> sessions();
  [[nodiscard]] result<void> outlines();
  [[nodiscard]] result<void> versions();
  [[nodiscard]] result<void> running();
  [[nodiscard]] result<void> shares();
  [[nodiscard]] result<void> states();
  [[nodiscard]] result<void> quarantine();
  [[nodiscard]] result<void> rest();

  void take(session_uid uid, const found_versions& found);
  void take_session(const session_record& session, const found_versions& found);
  void take_nameless(session_uid uid, const found_versions& found);
  void keep(const session_record& session, const std::vector<version_outline>& versions, const found_versions& found);
  void keep_for_forks(session_uid uid, const found_versions& found);
  void write_shared(change_list& changes, session_uid uid, const std::vector<version_record>& kept, bool session_lives);
  void read_counter(std::string_view key, std::string_view value);
  void lose(const session_key& key, const std::string& why);
  [[nodiscard]] result<std::string> record_of(const state_entry& entry);
  void lost(std::string what, std::string why);
  void write(const std::function<void(change_list&)>& changes);

  salvage& from_;
  database::impl* const into_;
  repair_report& report_;
  result<void> written_;  ///< the first error of writing

  std::map<session_uid, session_record> sessions_;
  std::map<state_key, state_entry> index_;  ///< complete states only
  std::map<session_uid, std::vector<state_key>> shares_;
  std::map<std::string, std::string> running_;         ///< by key
  std::map<std::string, set_aside_record> set_aside_;  ///< by key
  std::set<session_uid> staged_;                       ///< being imported and never acknowledged
  version_outlines shared_;                            ///< what forks share with other sessions
  std::set<session_uid> stems_;                        ///< deleted sessions whose versions forks need
  std::set<session_uid> kept_;
  session_uid last_uid_ = 0, next_uid_ = 0;
};

}  // namespace skein::storage
