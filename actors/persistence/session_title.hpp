#pragma once
#include <string>

#include "storage/records.hpp"

namespace skein::persistence {

/// What a session is called that nobody named, of its first turn: the first line that its user said, cut at a word.
/// Empty where nothing was said.
[[nodiscard]] std::string title_of(const storage::version_record& first);

}  // namespace skein::persistence
