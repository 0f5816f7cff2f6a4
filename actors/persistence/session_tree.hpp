#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/persistence/history_hash.hpp"
#include "base/result.hpp"
#include "engine/prompt_parts.hpp"
#include "storage/records.hpp"

namespace skein::persistence {

using storage::content_bytes;
using storage::session_record;
using storage::shared_version;
using storage::version_id;
using storage::version_record;

/// Where a version may end inside a text that is to go on from it.
struct history_rules {
  bool whole_messages = false;  ///< only at the text's end or before a blank line
  bool leave_some = false;      ///< not at the text's end
};

/// About what a record has in memory beside itself: its names, title and metadata.
[[nodiscard]] std::size_t label_bytes(const session_record& record);

/// One session in memory: its record and all its versions, tokens and texts included. Versions are shared with the
/// sessions that were forked from it. Plain state: it decides nothing about disks or leases.
class session_tree {
 public:
  /// A session without versions.
  explicit session_tree(session_record record) : record_(std::move(record)) {}
  /// As it was stored; versions that the record does not know are left out. damaged: a version without its parent, or a
  /// head that is not there.
  [[nodiscard]] static result<session_tree> restore(session_record record, std::vector<version_record> versions);

  [[nodiscard]] const session_record& record() const { return record_; }
  [[nodiscard]] const std::map<version_id, shared_version>& versions() const { return versions_; }
  [[nodiscard]] bool has(version_id v) const { return v == storage::beginning || versions_.contains(v); }
  [[nodiscard]] const version_record* find(version_id v) const;
  /// Whether a turn may go on from it: it is here and was not deleted.
  [[nodiscard]] bool offers(version_id v) const;
  /// In order of their numbers.
  [[nodiscard]] std::vector<shared_version> all() const;
  /// By Idempotency-Key; null for none and for an empty key.
  [[nodiscard]] shared_version with_request_key(const std::string& key) const;
  /// The answer that broke last and that nothing has continued since, if the head is where it began.
  [[nodiscard]] const version_record* unfinished() const;

  /// Fills in what hangs on the parent: total_tokens, segment_bytes and history. An empty `segment` is one that nobody
  /// knows.
  void place(version_record& v, std::string_view segment) const;
  /// The record as it is once a placed version is added.
  [[nodiscard]] session_record record_with(const version_record& v, std::int64_t now_ms) const;
  /// Adds a placed version: the new head, unless it is unfinished or the head has a higher number. Its number is new
  /// and its parent is here.
  void add(shared_version v, std::int64_t now_ms);
  void add(version_record v, std::int64_t now_ms) { add(std::make_shared<const version_record>(std::move(v)), now_ms); }
  /// What clients call it and keep beside it.
  void label(std::string title, storage::session_metadata metadata);
  /// Whose a session becomes in which nothing was said yet.
  void begin_with(std::string model_identity, std::string initial_state);
  /// A version that is here, or the beginning.
  void set_head(version_id v, std::int64_t now_ms);

  /// What deleting a version does. One from which others go on stays for them, marked; one that is the last goes, and
  /// with it what was only there for it. Where the head goes, the nearest version before it is the head.
  struct removal {
    session_record record;  ///< as it is then
    std::vector<version_id> gone;
    std::vector<version_record> marked;  ///< at most one
  };
  [[nodiscard]] removal removal_of(version_id v, std::int64_t now_ms) const;
  void remove(const removal& r);

  /// From the first version to `v`; empty for the beginning.
  [[nodiscard]] std::vector<shared_version> path(version_id v) const;
  /// What a state after `ancestor`, which lies on the way to `v`, has to swallow to be one after `v`.
  [[nodiscard]] std::vector<token_id> tokens_between(version_id ancestor, version_id v) const;
  /// What these consist of.
  [[nodiscard]] std::vector<engine::prompt_part> parts_between(version_id ancestor, version_id v) const;
  [[nodiscard]] std::uint64_t total_tokens(version_id v) const;

  struct recognised {
    version_id version = storage::beginning;
    std::uint64_t bytes = 0;  ///< of the text that it holds already
  };
  /// The version, in any branch, that holds most of a text from its first byte on; the beginning where none does. The
  /// cost is the text's length a few times at most, however the versions lie.
  [[nodiscard]] recognised recognise(std::string_view text, const history_rules& rules) const;
  /// How many bytes of the text `v` holds, if it begins with the history of `v`.
  [[nodiscard]] std::optional<std::uint64_t> held_by(version_id v, std::string_view text,
                                                     const history_rules& rules) const;

  /// About what it takes in memory, its title and metadata included; what it shares counts in full.
  [[nodiscard]] std::size_t bytes() const { return sizeof(session_record) + label_bytes(record_) + bytes_; }

 private:
  void link(const version_record& v);
  [[nodiscard]] const history_hash* history_of(version_id v) const;

  session_record record_;
  std::map<version_id, shared_version> versions_;
  std::multimap<version_id, version_id> children_;  // by parent
  std::map<std::string, version_id, std::less<>> by_request_key_;
  std::size_t bytes_ = 0;  // of the versions
};

/// What a session begun from another one is called.
struct session_name {
  storage::session_uid uid = 0;
  storage::session_key key;
};
/// A session of its own that has `from` up to a version, which is its head. Versions keep their numbers.
[[nodiscard]] session_tree forked(const session_tree& from, version_id version, session_name name, std::int64_t now_ms);

/// "a:1" as session "a" and version 1, where a name is of that form.
[[nodiscard]] std::optional<std::pair<storage::session_key, version_id>> branch_named(const storage::session_key& key);

}  // namespace skein::persistence
