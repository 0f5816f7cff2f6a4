#include "protocol/requests/request_digest.hpp"

#include <bit>
#include <string>

#include "protocol/json/json.hpp"

namespace skein::protocol {
namespace {

/// FNV-1a, 64 bits.
std::uint64_t mixed(std::uint64_t digest, std::string_view bytes) {
  for (const char byte : bytes) digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3ull;
  return digest;
}

std::uint64_t mixed(std::uint64_t digest, std::uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) digest = (digest ^ (number >> shift & 0xff)) * 0x100000001b3ull;
  return digest;
}

constexpr std::uint64_t nothing = 0xcbf29ce484222325ull;

bool delivers(std::string_view name) { return name == "stream" || name == "stream_options" || name == "password"; }

std::uint64_t digest_of(json_value value, bool is_body) {
  const std::uint64_t begun = mixed(nothing, static_cast<std::uint64_t>(value.kind()));
  switch (value.kind()) {
    case json_kind::null: return begun;
    case json_kind::boolean: return mixed(begun, std::uint64_t{*value.boolean()});
    case json_kind::number:
      if (const auto whole = value.integer()) return mixed(begun, static_cast<std::uint64_t>(*whole));
      if (const auto whole = value.unsigned_integer()) return mixed(begun, *whole);
      return mixed(begun, std::bit_cast<std::uint64_t>(value.number().value_or(0)));
    case json_kind::string: return mixed(begun, *value.text());
    case json_kind::array: {
      std::uint64_t digest = begun;
      for (const auto element : value.elements()) digest = mixed(digest, digest_of(element, false));
      return digest;
    }
    case json_kind::object: break;
  }
  std::uint64_t members = 0;  // a sum, so that the order does not matter
  for (const auto [name, member] : value.members())
    if (!is_body || !delivers(name)) members += mixed(mixed(nothing, name), digest_of(member, false));
  return mixed(begun, members);
}

}  // namespace

std::optional<std::uint64_t> request_digest(std::string_view body) {
  const auto document = json_document::parse(body, known_json);
  if (!document || !document->root().is(json_kind::object)) return std::nullopt;
  return digest_of(document->root(), true);
}

}  // namespace skein::protocol
