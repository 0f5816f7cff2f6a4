// Fuzz entry of the GGUF reader: any bytes open or are refused; what opens can be read to its last byte, and its
// vocabulary is one that a vocabulary file can have, or is refused as such a file would be.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "model/model_info.hpp"
#include "tests/model/memory_file.hpp"
#include "tests/model/read_in_place.hpp"
#include "tokenizer/vocabulary.hpp"

namespace {

void use_vocabulary(std::string_view text) {
  using namespace skein;
  const auto vocab = tokenizer::vocabulary::parse(text, "fuzz");
  if (!vocab) return check(!vocab.error().message.empty());
  for (token_id id = 0; id < static_cast<token_id>((*vocab)->size()); ++id) {
    const std::string token((*vocab)->text(id));
    std::vector<token_id> ids;
    if (token.empty()) continue;
    check((*vocab)->encode(token, ids).has_value());
    check(ids.size() == 1 && ids.front() == id);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace skein;
  test::read_in_place(std::as_bytes(std::span(data, size)));
  const test::memory_file bytes({reinterpret_cast<const char*>(data), size});
  const auto file = model::checkpoint::open(bytes.path());
  if (!file) {
    check(!file.error().message.empty() && file.error().message.size() < 1000);
    return 0;
  }
  if (!file->vocabulary().empty()) use_vocabulary(file->vocabulary());
  check(model::identity(*file, "").size() == 32);
  const auto info = model::describe(*file);
  if (info) ignore(model::bind(*file, *info), "either answer is right");
  return 0;
}
