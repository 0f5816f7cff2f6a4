#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/persistence/sessions/ancestry.hpp"
#include "actors/persistence/sessions/history_hash.hpp"
#include "base/result.hpp"
#include "engine/prompt_parts.hpp"
#include "storage/records/records.hpp"

namespace skein::persistence {

using storage::content_bytes;
using storage::session_record;
using storage::shared_version;
using storage::version_id;
using storage::version_record;

/// Memory of a version in a tree without its texts: the record, nodes of five trees, headers of its string blocks.
inline constexpr std::size_t version_overhead = sizeof(version_record) + 256;

/// Where a version may end inside a text that continues it.
struct history_rules {
  bool whole_messages = false;  ///< only at the end of the text or of a turn (in the templates assistant, bot, tools)
  bool leave_some = false;      ///< not at the text's end
};

/// Approximate memory of a record's names, title and metadata, without the record itself.
[[nodiscard]] std::size_t label_bytes(const session_record& record);

/// The identity of a session that is forked from another one.
struct session_name {
  storage::session_uid uid = 0;
  storage::session_key key;
};

/// One session in memory: its record and all its versions, with tokens and texts. Versions are shared with the sessions
/// that were forked from it. Plain data: it makes no decisions about disks or leases.
class session_tree {
 public:
  /// A session without versions.
  explicit session_tree(session_record record) : record_(std::move(record)) {}
  /// A stored session; versions that the record does not know are left out. Errors: damaged if a version's parent or
  /// the head is missing.
  [[nodiscard]] static result<session_tree> restore(session_record record, std::vector<version_record> versions);

  [[nodiscard]] const session_record& record() const { return record_; }
  [[nodiscard]] const std::map<version_id, shared_version>& versions() const { return versions_; }
  [[nodiscard]] bool has(version_id v) const { return v == storage::beginning || versions_.contains(v); }
  [[nodiscard]] const version_record* find(version_id v) const;
  /// Whether a turn may continue it: it exists and was not deleted.
  [[nodiscard]] bool offers(version_id v) const;
  /// In order of their numbers.
  [[nodiscard]] std::vector<shared_version> all() const;
  /// The version with this Idempotency-Key; null if there is none or the key is empty.
  [[nodiscard]] shared_version with_request_key(const std::string& key) const;
  /// The last broken answer that was not continued, if the head is where it began; else null.
  [[nodiscard]] const version_record* unfinished() const;
  /// The same if it is the newest version, else the beginning. Does not depend on the number of versions.
  [[nodiscard]] version_id broken_last() const;

  /// Fills in the fields that depend on the parent: total_tokens, segment_bytes and history. An empty `segment` means
  /// that the segment is not known.
  void place(version_record& v, std::string_view segment) const;
  /// The record after adding a placed version.
  [[nodiscard]] session_record record_with(const version_record& v, std::int64_t now_ms) const;
  /// Adds a placed version, which becomes the head unless it is unfinished or the head has a higher number. Requires a
  /// new number and a known parent.
  void add(shared_version v, std::int64_t now_ms);
  void add(version_record v, std::int64_t now_ms) { add(std::make_shared<const version_record>(std::move(v)), now_ms); }
  /// Sets title and metadata.
  void label(std::string title, storage::session_metadata metadata);
  /// Sets the model and tuned state of a session without versions.
  void begin_with(std::string model_identity, std::string initial_state);
  /// `v` is a version of the session, or the beginning.
  void set_head(version_id v, std::int64_t now_ms);

  /// The effect of deleting a version. A version with children is only marked as deleted; a leaf is removed, together
  /// with the marked ancestors that only it needed. If the head is deleted, the finished version with the highest
  /// number below it becomes the head; versions above it are those that a rollback left behind. Without versions, the
  /// session is as before its first turn: a title that a removed turn gave it goes, too.
  struct removal {
    session_record record;  ///< the record afterwards
    std::vector<version_id> gone;
    std::vector<version_record> marked;  ///< at most one
  };
  [[nodiscard]] removal removal_of(version_id v, std::int64_t now_ms) const;
  void remove(const removal& r);

  /// The paths to the versions.
  [[nodiscard]] const ancestry& ways() const { return ways_; }
  /// Deleted versions on the path to `v`, ascending.
  [[nodiscard]] std::vector<version_id> deleted_before(version_id v) const;
  /// From the first version to `v`; empty for the beginning.
  [[nodiscard]] std::vector<shared_version> path(version_id v) const;
  /// The tokens to feed to a state after `ancestor` to get the state after `v`. `ancestor` is on the path to `v`.
  [[nodiscard]] std::vector<token_id> tokens_between(version_id ancestor, version_id v) const;
  /// The parts of these tokens.
  [[nodiscard]] std::vector<engine::prompt_part> parts_between(version_id ancestor, version_id v) const;
  [[nodiscard]] std::uint64_t total_tokens(version_id v) const;

  struct recognised {
    version_id version = storage::beginning;
    std::uint64_t bytes = 0;  ///< length of the part of the text that it holds
  };
  /// The version, in any branch, whose history is the longest prefix of `text`; the beginning if there is none. Reads
  /// the text a few times at most, whatever the shape of the tree.
  [[nodiscard]] recognised recognise(std::string_view text, const history_rules& rules) const;
  /// The length of `v`'s history if `text` begins with it.
  [[nodiscard]] std::optional<std::uint64_t> held_by(version_id v, std::string_view text,
                                                     const history_rules& rules) const;

  /// Approximate memory, title and metadata included; shared versions count in full.
  [[nodiscard]] std::size_t bytes() const { return sizeof(session_record) + label_bytes(record_) + bytes_; }

 private:
  friend session_tree forked(const session_tree& from, version_id version, session_name name, std::int64_t now_ms);
  void link(const version_record& v);
  [[nodiscard]] version_id finished_below(version_id v) const;
  [[nodiscard]] const history_hash* history_of(version_id v) const;

  session_record record_;
  std::map<version_id, shared_version> versions_;
  std::multimap<version_id, version_id> children_;  // by parent
  std::map<std::string, version_id, std::less<>> by_request_key_;
  ancestry ways_;
  std::set<version_id> deleted_;
  std::size_t bytes_ = 0;  // of the versions
};

/// The record of a new session that shares the path to `version` with `from`; that version is its head. The cost does
/// not depend on the number of versions.
[[nodiscard]] session_record fork_record(const session_tree& from, version_id version, session_name name,
                                         std::int64_t now_ms);
/// A new session that shares the path to `version` with `from`; that version is its head. Versions keep their numbers.
[[nodiscard]] session_tree forked(const session_tree& from, version_id version, session_name name, std::int64_t now_ms);

/// Splits a name like "a:1" into session "a" and version 1; empty if the name has another form.
[[nodiscard]] std::optional<std::pair<storage::session_key, version_id>> branch_named(const storage::session_key& key);

}  // namespace skein::persistence
