#pragma once
#include <span>
#include <vector>

#include "base/result.hpp"
#include "storage/records.hpp"

namespace skein::storage {

/// Whether a session and all its versions agree with each other: numbers ascend, every parent is there, tokens add up,
/// the head is one of them. Errors: damaged, naming the version.
[[nodiscard]] result<void> check_session(const session_record& session, std::span<const version_record> versions);

/// Whether names and labels of a session that comes as a file are as short as those that the API takes: its title and
/// metadata, and of each version the request key, the roles and the words for its end. Errors: bad_file, with the
/// field.
[[nodiscard]] result<void> check_labels(const session_record& session, std::span<const version_record> versions);

}  // namespace skein::storage
