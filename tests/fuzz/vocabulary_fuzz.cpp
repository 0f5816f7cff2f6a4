// Any bytes as a vocabulary file: read or refused with a message. A vocabulary that was read gives every text back that
// it can encode; the file itself serves as the text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "tokenizer/vocabulary.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto vocab = skein::tokenizer::vocabulary::parse(text, "fuzz");
  if (!vocab) {
    skein::check(!vocab.error().message.empty());
    return 0;
  }
  std::vector<skein::token_id> ids;
  if (!(*vocab)->encode(text, ids)) return 0;
  std::string decoded;
  for (const skein::token_id id : ids) decoded += (*vocab)->text(id);
  skein::check(decoded == text);
  return 0;
}
