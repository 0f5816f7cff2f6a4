#pragma once
#include <string>

#include "storage/records/records.hpp"

namespace skein::persistence {

/// The default title of a session, from its first turn: the first line of the user's text, cut at a word. Empty if
/// there is no text.
[[nodiscard]] std::string title_of(const storage::version_record& first);

}  // namespace skein::persistence
