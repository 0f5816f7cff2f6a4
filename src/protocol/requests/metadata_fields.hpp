#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/json/json_writer.hpp"
#include "protocol/requests/object_reader.hpp"

namespace skein::protocol {

/// Names and values that clients attach to a response or a session.
using metadata_fields = std::vector<std::pair<std::string, std::string>>;

inline constexpr std::size_t metadata_members_max = 16, metadata_value_bytes_max = 512;

/// metadata: an object of texts, within the limits of OpenAI's API (16 members, names of 64 and values of 512 bytes).
[[nodiscard]] std::optional<metadata_fields> read_metadata(const object_reader& body);
void write_metadata(json_writer& out, const metadata_fields& metadata);

}  // namespace skein::protocol
