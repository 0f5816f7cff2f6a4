#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "storage/records/records.hpp"

/// A session as one file, for backups and for other servers: the session, all its versions, and optionally states. The
/// file has the envelope of a record (record_bytes). With a key it is also signed with HMAC-SHA256, so that a server
/// accepts only files that its peers wrote.
namespace skein::storage {

struct session_file {
  session_record session;
  std::vector<version_record> versions;
  std::vector<std::string> states;  ///< state records (encode_state) of some of the versions, of either type
  bool operator==(const session_file&) const = default;
};

/// Requirements for a file to be accepted.
struct session_file_rules {
  std::string model_identity{};  ///< the only accepted model; empty: any
  std::string signature_key{};   ///< files must be signed with this key; empty: signatures are not checked
  std::uint64_t bytes_max = 1ull << 30;
};

/// Signs the file if `signature_key` is not empty.
[[nodiscard]] std::string write_session_file(const session_file& file, std::string_view signature_key);

/// The same for shared versions. `bytes_expected`: memory that is allocated at once; more only if the file is longer.
[[nodiscard]] std::string write_session_file(const session_record& session, const std::vector<shared_version>& versions,
                                             const std::vector<std::string>& states, std::string_view signature_key,
                                             std::size_t bytes_expected);

/// The memory that the contents of a file take, approximately.
struct session_file_size {
  std::uint64_t versions = 0;
  std::uint64_t bytes = 0;        ///< without the records of states; perhaps many times the size of the file
  std::uint64_t state_bytes = 0;  ///< of the records of states; less than the size of the file
};
/// Reads the file without allocating memory for its contents. Errors: as read_session_file, but the contents are not
/// compared with each other.
[[nodiscard]] result<session_file_size> size_of_session_file(std::string_view bytes);

/// Reads a file and checks that it is consistent and that title, metadata and other labels are within the limits of the
/// API. Texts and token ids are not checked. Errors: bad_file (damaged, inconsistent, or a label is too long: then with
/// its field), conflict (another model: both named; another format), too_large, forbidden (the signature is missing or
/// wrong).
[[nodiscard]] result<session_file> read_session_file(std::string_view bytes, const session_file_rules& rules);

/// The same session under another number and name, in its states too.
[[nodiscard]] session_file readdressed(session_file file, session_uid uid, const session_key& key);

}  // namespace skein::storage
