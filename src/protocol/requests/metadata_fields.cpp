#include "protocol/requests/metadata_fields.hpp"

namespace skein::protocol {
namespace {

constexpr std::size_t key_bytes_max = 64;

}  // namespace

std::optional<metadata_fields> read_metadata(const object_reader& body) {
  const auto given = body.object("metadata");
  if (!given) return std::nullopt;
  metadata_fields all;
  for (const auto [name, value] : body.value("metadata")->members()) {
    const auto text = value.text();
    if (!text)
      body.refuse("metadata", "must be an object of strings");
    else if (name.size() > key_bytes_max || text->size() > metadata_value_bytes_max)
      body.refuse("metadata", "has a name longer than 64 bytes or a value longer than 512 bytes");
    else if (all.size() == metadata_members_max)
      body.refuse("metadata", "has more than 16 members");
    else
      all.emplace_back(name, *text);
    if (body.fault().found()) break;
  }
  return all;
}

void write_metadata(json_writer& out, const metadata_fields& metadata) {
  out.begin_object();
  for (const auto& [name, value] : metadata) out.key(name).value(value);
  out.end_object();
}

}  // namespace skein::protocol
