#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "storage/records.hpp"

/// A session as one file, for backups and for other servers: the session, all its versions, and, if wished, states. In
/// the envelope of a record (record_bytes); under a key also signed with HMAC-SHA256, so that a server takes what its
/// peers wrote and nothing else.
namespace skein::storage {

struct session_file {
  session_record session;
  std::vector<version_record> versions;
  std::vector<std::string> states;  ///< state records (encode_state) of some of the versions, of either type
  bool operator==(const session_file&) const = default;
};

/// What is taken.
struct session_file_rules {
  std::string model_identity{};  ///< of the only model that is taken; empty: any
  std::string signature_key{};   ///< files must be signed with it; empty: signed or not
  std::uint64_t bytes_max = 1ull << 30;
};

/// Signed where there is a key.
[[nodiscard]] std::string write_session_file(const session_file& file, std::string_view signature_key);

/// A file whose parts agree with each other, with a title, metadata and other labels within the limits of the API. The
/// texts and token ids in it are as its writer made them. Errors: bad_file (damaged, parts that do not agree, or a
/// label that is too long: then with its field), conflict (another model: both named; another format), too_large,
/// forbidden (the signature is missing or wrong).
[[nodiscard]] result<session_file> read_session_file(std::string_view bytes, const session_file_rules& rules);

/// Makes the file that of a session with this number and name; its states too.
[[nodiscard]] session_file readdressed(session_file file, session_uid uid, const session_key& key);

}  // namespace skein::storage
