#pragma once
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/result.hpp"
#include "storage/database/database_impl.hpp"

/// Reading ranges of records.
namespace skein::storage {

/// A record that could not be decoded, kept until it can be set aside.
struct unreadable {
  std::string key, record;
  error why;
};

/// The keys that begin with `first`.
[[nodiscard]] result<std::vector<std::string>> keys_below(database::impl& db, family where, const std::string& first);

}  // namespace skein::storage
