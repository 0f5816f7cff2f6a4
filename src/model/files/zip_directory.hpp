#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/files/file_bytes.hpp"

namespace skein::model {

/// A stored (not compressed, not encrypted) member of a zip archive.
struct zip_member {
  std::string_view name;    ///< points into the file
  std::uint64_t data = 0;   ///< first byte of its data
  std::uint64_t bytes = 0;  ///< of its data
};

/// The members of a zip archive, each with its data inside the file and without overlap. Read from the central
/// directory, since streaming writers omit the sizes in the local headers, of which only the lengths of name and
/// padding are used. Supports zip64. Checksums are not verified: that would read the whole file, and torch can omit
/// them.
class zip_directory {
 public:
  /// Errors: bad_file with the byte offset.
  [[nodiscard]] static result<zip_directory> read(byte_span file);

  /// In name order; names are unique.
  [[nodiscard]] const std::vector<zip_member>& members() const { return members_; }
  /// nullptr if there is no member of that name.
  [[nodiscard]] const zip_member* find(std::string_view name) const;

 private:
  explicit zip_directory(std::vector<zip_member> members) : members_(std::move(members)) {}
  std::vector<zip_member> members_;
};

}  // namespace skein::model
