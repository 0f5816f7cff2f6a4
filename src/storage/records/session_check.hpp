#pragma once
#include <span>
#include <vector>

#include "base/result.hpp"
#include "storage/records/records.hpp"

namespace skein::storage {

/// The fields of a version that its place in a session depends on.
struct version_outline {
  version_id id = beginning, parent = beginning;
  std::uint64_t tokens = 0, total_tokens = 0;
  std::uint64_t bytes = 0;  ///< of its tokens and texts
  bool deleted = false, unfinished = false;
};
[[nodiscard]] version_outline outline_of(const version_record& version);
[[nodiscard]] std::vector<version_outline> outlines_of(std::span<const version_record> versions);

/// Checks that a session and all its versions are consistent: numbers ascend, every parent exists, token counts add up,
/// the head is one of the versions. Errors: damaged, naming the version.
[[nodiscard]] result<void> check_session(const session_record& session, std::span<const version_record> versions);
[[nodiscard]] result<void> check_session(const session_record& session, std::span<const version_outline> versions);

/// Checks that the labels of an imported session are within the API's limits: title and metadata, and for each version
/// the request key, the roles and the finish and stop reasons. Settings have at most 16 MiB. Errors: bad_file, with the
/// field.
[[nodiscard]] result<void> check_labels(const session_record& session, std::span<const version_record> versions);

}  // namespace skein::storage
