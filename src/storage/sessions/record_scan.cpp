#include "storage/sessions/record_scan.hpp"

#include <string_view>

#include "storage/records/storage_keys.hpp"

namespace skein::storage {

result<std::vector<std::string>> keys_below(database::impl& db, family where, const std::string& first) {
  std::vector<std::string> all;
  const auto looked = db.scan(where, first, keys::after_all(first), [&](std::string_view key, std::string_view) {
    all.emplace_back(key);
    return true;
  });
  if (!looked) return looked.error();
  return all;
}

}  // namespace skein::storage
