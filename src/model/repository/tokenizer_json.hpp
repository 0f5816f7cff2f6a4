#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace skein::model {

/// A token of `tokenizer.json`.
struct listed_token {
  std::uint32_t id = 0;
  std::string bytes;
};

/// The tokens that `tokenizer.json` of a repository lists in its model: a WordLevel model, or the trie of rwkv-rs,
/// whose vocabularies have the id of each text in the byte-level alphabet of GPT-2. Texts that are not in that alphabet
/// are left out. A vocabulary may also have the text or the bytes of each id, as web-rwkv writes it. Errors: those of
/// read_json_text; unsupported for every other kind of tokenizer, naming the file.
[[nodiscard]] result<std::vector<listed_token>> read_tokenizer_json(const std::filesystem::path& path);

}  // namespace skein::model
