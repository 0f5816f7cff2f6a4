#include "model/repository/tokenizer_json.hpp"

#include <simdjson.h>

#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "model/files/file_bytes.hpp"
#include "model/repository/json_file.hpp"

namespace skein::model {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t tokenizer_bytes_max = 16u << 20;  // one of the World vocabulary has 4 MB
constexpr std::size_t tokens_max = 1u << 20;
constexpr std::size_t code_points = 256 + 68;  // the alphabet's characters are below
constexpr std::int16_t no_byte = -1;

/// The byte of each code point: printable characters of Latin-1 are themselves, the others follow from 256 on.
constexpr std::array<std::int16_t, code_points> alphabet() {
  std::array<std::int16_t, code_points> byte_of{};
  byte_of.fill(no_byte);
  std::size_t next = 256;
  for (std::int16_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    byte_of[printable ? static_cast<std::size_t>(byte) : next++] = byte;
  }
  return byte_of;
}

/// The bytes of a text in the alphabet, whose characters have one or two bytes of UTF-8; nullopt for another text.
std::optional<std::string> bytes_of(std::string_view text) {
  static constexpr auto byte_of = alphabet();
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t code = static_cast<unsigned char>(text[i]);
    if (code >= 0xc0 && code < 0xe0 && i + 1 < text.size())
      code = (code & 0x1f) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f);
    else if (code >= 0x80)
      return std::nullopt;
    if (code >= byte_of.size() || byte_of[code] == no_byte) return std::nullopt;
    bytes.push_back(static_cast<char>(byte_of[code]));
  }
  return bytes;
}

/// A token as the vocabulary of web-rwkv writes it, by its id: a text, or an array of bytes; nullopt for other values.
std::optional<std::string> listed_bytes(dom::element value) {
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return std::string(text);
  dom::array array;
  if (value.get(array) != simdjson::SUCCESS) return std::nullopt;
  std::string bytes;
  for (const auto each : array) {
    std::uint64_t byte = 0;
    if (each.get(byte) != simdjson::SUCCESS || byte > 255) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

}  // namespace

result<std::vector<listed_token>> read_tokenizer_json(const std::filesystem::path& path) {
  const auto text = read_json_text(path, tokenizer_bytes_max);
  if (!text) return text.error();
  dom::parser parser(tokenizer_bytes_max);
  dom::element document;
  if (const auto fault = parser.parse(*text).get(document); fault)
    return json_fault(path, std::string("is not valid JSON: ") + simdjson::error_message(fault));
  std::string_view type, decoder;
  dom::object vocabulary;
  const bool typed = document.at_pointer("/model/type").get(type) == simdjson::SUCCESS;
  if (!typed || (type != "WordLevel" && type != "RwkvTrie") ||
      document.at_pointer("/decoder/type").get(decoder) != simdjson::SUCCESS || decoder != "ByteLevel" ||
      document.at_pointer("/model/vocab").get(vocabulary) != simdjson::SUCCESS)
    return error{error_kind::unsupported,
                 path.string() + ": is not a conversion of the World vocabulary: model.type is " +
                     (typed ? printable(type) : "missing") +
                     "; accepted: WordLevel and RwkvTrie with the decoder ByteLevel; give --vocab",
                 {}};
  std::vector<listed_token> tokens;
  for (const auto [token, value] : vocabulary) {
    if (tokens.size() == tokens_max) return json_fault(path, "has too many tokens");
    std::uint64_t id = 0;
    std::optional<std::string> bytes;
    if (value.get(id) == simdjson::SUCCESS) {
      bytes = bytes_of(token);
    } else {
      bytes = listed_bytes(value);
      const auto [end, trouble] = std::from_chars(token.data(), token.data() + token.size(), id);
      if (!bytes || trouble != std::errc() || end != token.data() + token.size()) id = tokens_max;
    }
    if (id >= tokens_max)
      return json_fault(path, "a token has an id that is not an integer below " + std::to_string(tokens_max));
    if (bytes) tokens.push_back({static_cast<std::uint32_t>(id), std::move(*bytes)});
  }
  return tokens;
}

}  // namespace skein::model
