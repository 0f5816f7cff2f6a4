#pragma once
#include <string>

#include "storage/records/storage_keys.hpp"

namespace skein::storage {

/// Sessions as messages name them.
[[nodiscard]] inline std::string name_of(const session_key& key) {
  return "session '" + key.id + "' of tenant '" + key.tenant + "'";
}
[[nodiscard]] inline std::string name_of(session_uid uid) { return "session number " + std::to_string(uid); }

}  // namespace skein::storage
