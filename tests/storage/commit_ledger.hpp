#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "storage/database/database.hpp"
#include "storage/sessions/session_store.hpp"
#include "storage/states/state_store.hpp"
#include "tests/storage/random_records.hpp"

namespace skein::test {

/// What a crash may take.
enum class crash : std::uint8_t {
  process,  ///< nothing that was acknowledged
  power,    ///< what was not synced, the latest first
};

/// A life of a few sessions in a database that may fail at any point: their turns are committed one after another,
/// what fails is tried again later, states and running turns are written in between, one session is removed. It notes
/// what was acknowledged, and can say afterwards whether a database holds what it must and nothing else.
class commit_ledger {
 public:
  explicit commit_ledger(random_cases& random);

  /// Makes `steps` further steps. Errors are expected; acknowledged commits are recorded.
  void live(const std::shared_ptr<storage::database>& db, std::uint32_t steps);

  /// The ways in which the database differs from what it may hold; empty: it is right.
  [[nodiscard]] std::vector<std::string> faults_in(const std::shared_ptr<storage::database>& db, crash after);
  /// As after a process crash, but any question may be answered with an error: what is answered must be right.
  [[nodiscard]] std::vector<std::string> lies_in(const std::shared_ptr<storage::database>& db);

  [[nodiscard]] std::uint32_t acknowledged() const { return acknowledged_; }

 private:
  struct life {
    random_tree tree;  ///< all turns that it will ever have
    std::uint32_t tried = 0, acknowledged = 0, synced = 0;
    bool removal_tried = false, removed = false;
    std::map<std::uint32_t, std::uint32_t> order;  ///< by version: when it was acknowledged, among all commits
    std::map<std::uint32_t, bool> states;          ///< by version: whether it was acknowledged
  };
  void commit_next(storage::session_store& store, life& of, bool sync);
  void keep_state(const std::shared_ptr<storage::database>& db, life& of);
  [[nodiscard]] storage::state_store states_of(const std::shared_ptr<storage::database>& db, const life& of) const;
  [[nodiscard]] model::state_value state_of(const life& of, std::uint32_t version) const;
  [[nodiscard]] static storage::session_record record_at(const life& of, std::uint32_t version);
  /// The version that is found, if it is one that was tried, with the content that it had; else a fault.
  [[nodiscard]] std::optional<std::uint32_t> found_version(storage::session_store& store, const life& of,
                                                           bool errors_allowed, std::vector<std::string>& faults) const;
  void check_states(const std::shared_ptr<storage::database>& db, const life& of, std::uint32_t version, bool certain,
                    bool errors_allowed, std::vector<std::string>& faults) const;

  std::vector<life> lives_;
  std::uint32_t step_ = 0, acknowledged_ = 0;
};

}  // namespace skein::test
