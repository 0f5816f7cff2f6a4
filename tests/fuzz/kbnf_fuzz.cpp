// Any bytes as a KBNF grammar: compiled, or refused with a message. A grammar that was compiled reads the bytes as a
// text, and as long as it does, its mask allows the next byte.
#include "base/check.hpp"
#include "tests/fuzz/grammar_text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto made = skein::grammar::grammar::from_kbnf(text, skein::test::small_limits());
  if (!made)
    skein::check(!made.error().message.empty());
  else
    skein::test::follow(*made, text);
  return 0;
}
