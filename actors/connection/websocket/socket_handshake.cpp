#include "actors/connection/websocket/socket_handshake.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace skein::connection {
namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// The items of the comma-separated lists in all fields of that name.
std::vector<std::string_view> items(const request_head& head, std::string_view name) {
  std::vector<std::string_view> all;
  for (const auto& [n, v] : head.fields) {
    if (n != name) continue;
    for (std::string_view list = v; !list.empty();) {
      std::string_view item = list.substr(0, list.find(','));
      list.remove_prefix(std::min(item.size() + 1, list.size()));
      const std::size_t first = item.find_first_not_of(" \t");
      if (first != std::string_view::npos) all.push_back(item.substr(first, item.find_last_not_of(" \t") - first + 1));
    }
  }
  return all;
}

bool lists(const request_head& head, std::string_view name, std::string_view token) {
  return std::ranges::any_of(items(head, name), [&](auto item) { return equal_ignoring_case(item, token); });
}

/// 16 bytes in base64.
bool is_key(std::string_view key) {
  if (key.size() != 24 || !key.ends_with("==")) return false;
  return key.substr(0, 22).find_first_not_of(alphabet) == std::string_view::npos &&
         alphabet.find(key[21]) % 16 == 0;  // the last digit encodes two bits of the sixteenth byte
}

using digest = std::array<std::uint32_t, 5>;

/// SHA-1 (RFC 3174), as the handshake requires; not used for security.
digest sha1(std::string text) {
  const std::uint64_t bits = text.size() * 8;
  text += '\x80';
  while (text.size() % 64 != 56) text += '\0';
  for (int i = 7; i >= 0; --i) text += static_cast<char>(bits >> (8 * i));
  digest h{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  for (std::size_t block = 0; block < text.size(); block += 64) {
    std::array<std::uint32_t, 80> w{};
    for (std::size_t i = 0; i < 64; ++i) w[i / 4] = w[i / 4] << 8 | static_cast<unsigned char>(text[block + i]);
    for (std::size_t i = 16; i < 80; ++i) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    auto [a, b, c, d, e] = h;
    for (std::size_t i = 0; i < 80; ++i) {
      const std::uint32_t f = i < 20 ? (b & c) | (~b & d) : i < 40 || i >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
      constexpr std::array<std::uint32_t, 4> k{0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
      const std::uint32_t next = std::rotl(a, 5) + f + e + k[i / 20] + w[i];
      e = d;
      d = c;
      c = std::rotl(b, 30);
      b = a;
      a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
  }
  return h;
}

/// 20 bytes in base64.
std::string base64(const digest& words) {
  std::string bytes;
  for (const std::uint32_t word : words)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(word >> shift);
  bytes += '\0';  // pads to a multiple of three; its digit becomes '='
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t j = 0; j < 3; ++j) three = three << 8 | static_cast<unsigned char>(bytes[i + j]);
    for (int shift = 18; shift >= 0; shift -= 6) out += alphabet[three >> shift & 63];
  }
  out.back() = '=';
  return out;
}

}  // namespace

bool asks_for_socket(const request_head& head) { return lists(head, "upgrade", "websocket"); }

std::optional<refusal> judge_handshake(const request_head& head) {
  if (head.method != "GET") return refusal{400, "a WebSocket handshake must use GET"};
  if (!lists(head, "connection", "upgrade")) return refusal{400, "Connection must name Upgrade"};
  if (head.field("sec-websocket-version") != "13") return refusal{426, "Sec-WebSocket-Version must be 13"};
  const auto length = head.field("content-length");
  if (!head.field("transfer-encoding").empty() || (!length.empty() && length != "0"))
    return refusal{400, "a WebSocket handshake must not have a body"};
  const auto keys = std::ranges::count_if(head.fields, [](const auto& f) { return f.first == "sec-websocket-key"; });
  if (keys != 1 || !is_key(head.field("sec-websocket-key")))
    return refusal{400, "Sec-WebSocket-Key must be 16 bytes in base64"};
  return std::nullopt;
}

std::string accept_of(std::string_view key) {
  return base64(sha1(std::string(key).append("258EAFA5-E914-47DA-95CA-C5AB0DC85B11")));
}

std::vector<std::string_view> offered_protocols(const request_head& head) {
  return items(head, "sec-websocket-protocol");
}

}  // namespace skein::connection
