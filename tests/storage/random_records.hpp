#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/state_value.hpp"
#include "storage/database/database.hpp"
#include "storage/records/records.hpp"
#include "tests/support/random_cases.hpp"

namespace skein::test {

/// Records whose every field is random, extremes included, and which obey the rules between fields.
[[nodiscard]] storage::version_record random_version(random_cases& random, storage::version_id id,
                                                     storage::version_id parent);
[[nodiscard]] storage::session_record random_session(random_cases& random, storage::session_uid uid, std::string id);

/// A session of `count` versions, each the child of a random one before it, that agrees with itself; the last is the
/// head.
struct random_tree {
  storage::session_record session;
  std::vector<storage::version_record> versions;
};
[[nodiscard]] random_tree random_tree_of(random_cases& random, storage::session_uid uid, std::string id,
                                         std::uint32_t count);

[[nodiscard]] inline model::state_layout small_layout() { return {.layers = 2, .embd = 8, .heads = 2, .head_size = 4}; }
/// 1.2 MB in fp32: more than what goes through the log.
[[nodiscard]] inline model::state_layout large_layout() {
  return {.layers = 4, .embd = 256, .heads = 16, .head_size = 64};
}
[[nodiscard]] model::state_value random_state(random_cases& random, const model::state_layout& layout);

/// A database in a folder or, without one, in memory.
[[nodiscard]] std::shared_ptr<storage::database> opened(const std::filesystem::path& folder = {});

}  // namespace skein::test
