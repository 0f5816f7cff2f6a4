#include "tokenizer/vocabulary.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <fstream>
#include <utility>

#include "tokenizer/token_list.hpp"
#include "tokenizer/trie.hpp"
#include "tokenizer/world_file.hpp"

namespace skein::tokenizer {
namespace {

constexpr std::uint32_t no_text = ~std::uint32_t{0};

result<std::string> read_file(const std::filesystem::path& file) {
  std::error_code trouble;
  if (!std::filesystem::exists(file, trouble) && !trouble)
    return error{error_kind::missing_file, "no such vocabulary file: " + file.string(), {}};
  std::ifstream in(file, std::ios::binary);
  std::string text;
  std::array<char, 1 << 16> piece;
  // Reads at most a little more than the limit, so that an endless device file does not fill the memory.
  while (in && text.size() <= world_file_bytes_max) {
    in.read(piece.data(), piece.size());
    text.append(piece.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (!in.is_open() || in.bad()) return error{error_kind::io, "cannot read the vocabulary file " + file.string(), {}};
  return text;
}

/// For every id the index of its token in the list, or no_text.
std::vector<std::uint32_t> places_by_id(const token_list& list) {
  token_id highest = 0;
  for (const auto& t : list.tokens) highest = std::max(highest, t.id);
  std::vector<std::uint32_t> places(static_cast<std::size_t>(highest) + 1, no_text);
  for (std::uint32_t i = 0; i < list.tokens.size(); ++i) places[static_cast<std::size_t>(list.tokens[i].id)] = i;
  return places;
}

/// XXH3-128 over id, length and bytes of every token in the order of ids; the numbers have 32 bits, little-endian.
std::string hash_of(const token_list& list, const std::vector<std::uint32_t>& places) {
  static_assert(std::endian::native == std::endian::little, "the numbers are hashed as stored in memory");
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (const std::uint32_t place : places) {
    if (place == no_text) continue;
    const auto& token = list.tokens[place];
    const std::array<std::uint32_t, 2> numbers{static_cast<std::uint32_t>(token.id), token.length};
    XXH3_128bits_update(&state, numbers.data(), sizeof numbers);
    XXH3_128bits_update(&state, list.text(token).data(), token.length);
  }
  XXH128_canonical_t digest;
  XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(&state));
  std::string hex;
  for (const unsigned char byte : digest.digest) {
    hex.push_back("0123456789abcdef"[byte >> 4]);
    hex.push_back("0123456789abcdef"[byte & 15]);
  }
  return hex;
}

/// The first byte without a single-byte token; 256: all have one. A text with such a byte may not be encodable.
unsigned first_byte_without_token(const token_list& list) {
  std::array<bool, 256> has_token{};
  for (const auto& t : list.tokens)
    if (t.length == 1) has_token[static_cast<unsigned char>(list.text(t).front())] = true;
  return static_cast<unsigned>(std::ranges::find(has_token, false) - has_token.begin());
}

}  // namespace

struct vocabulary::impl {
  std::string name;
  token_id end;
  token_list list;
  trie longest_match;
  std::vector<std::uint32_t> places;  // by id
  std::string hash;
  std::size_t longest_token = 0;

  impl(std::string name_, token_id end_, token_list list_, trie longest_match_)
      : name(std::move(name_)),
        end(end_),
        list(std::move(list_)),
        longest_match(std::move(longest_match_)),
        places(places_by_id(list)),
        hash(hash_of(list, places)) {
    for (const auto& t : list.tokens) longest_token = std::max<std::size_t>(longest_token, t.length);
  }
};

vocabulary::vocabulary(std::unique_ptr<impl> content) : impl_(std::move(content)) {}

vocabulary::~vocabulary() = default;

result<std::shared_ptr<const vocabulary>> vocabulary::load(const std::filesystem::path& file) {
  const auto text = read_file(file);
  if (!text) return text.error();
  return parse_whole(*text, file.string());
}

result<std::shared_ptr<const vocabulary>> vocabulary::parse_whole(std::string_view text, std::string_view name) {
  auto parsed = parse(text, name);
  if (!parsed) return parsed;
  if (const unsigned byte = first_byte_without_token((*parsed)->impl_->list); byte < 256)
    return error{error_kind::bad_file,
                 std::string(name) + ": byte " + std::to_string(byte) +
                     " has no single-byte token; a vocabulary needs one for each of the bytes 0 to 255",
                 {}};
  return parsed;
}

result<std::shared_ptr<const vocabulary>> vocabulary::parse(std::string_view text, std::string_view name) {
  auto list = parse_world_file(text, name);
  if (!list) return list.error();
  auto longest_match = trie::build(*list);
  if (!longest_match) return error{error_kind::bad_file, std::string(name) + ": " + longest_match.error().message, {}};
  return std::shared_ptr<const vocabulary>(new vocabulary(std::make_unique<impl>(
      std::filesystem::path(name).filename().string(), end_of_text, std::move(*list), std::move(*longest_match))));
}

std::shared_ptr<const vocabulary> vocabulary::bytes() {
  token_list list;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    list.bytes.push_back(static_cast<char>(byte));
    list.tokens.push_back({static_cast<token_id>(byte), byte, 1});
  }
  auto longest_match = trie::build(list).value();
  return std::shared_ptr<const vocabulary>(
      new vocabulary(std::make_unique<impl>("bytes", no_token, std::move(list), std::move(longest_match))));
}

result<std::size_t> vocabulary::encode(std::string_view text, std::vector<token_id>& out) const {
  const std::size_t before = out.size();
  const std::size_t encoded = impl_->longest_match.encode(text, out);
  if (encoded == text.size()) return out.size() - before;
  out.resize(before);
  return error{error_kind::invalid_argument,
               "no token of " + impl_->name + " begins with the byte at offset " + std::to_string(encoded),
               {}};
}

std::string_view vocabulary::text(token_id id) const {
  const auto index = static_cast<std::uint32_t>(id);  // a negative id becomes a large value
  if (index >= size()) return {};
  const std::uint32_t place = impl_->places[index];
  return place == no_text ? std::string_view() : impl_->list.text(impl_->list.tokens[place]);
}

bool vocabulary::is_bytes() const { return impl_->end == no_token; }
std::uint32_t vocabulary::size() const { return static_cast<std::uint32_t>(impl_->places.size()); }
std::size_t vocabulary::longest_token() const { return impl_->longest_token; }
const std::string& vocabulary::hash() const { return impl_->hash; }
const std::string& vocabulary::name() const { return impl_->name; }
token_id vocabulary::end() const { return impl_->end; }

}  // namespace skein::tokenizer
