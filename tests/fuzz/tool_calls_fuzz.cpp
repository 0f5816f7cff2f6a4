// Any bytes as an answer of a model with tools, after the stage that makes them UTF-8. The text and the calls are the
// same however the answer is cut into pieces, each call has the name of a tool, and the arguments of a whole call are a
// JSON object. The first byte says whether the answer begins with a call, and where it is cut.
#include "base/check.hpp"
#include "protocol/chat/call_splitter.hpp"
#include "protocol/chat/tool_tags.hpp"
#include "protocol/json/large_integers.hpp"
#include "tokenizer/detokenizer.hpp"

namespace {

using namespace skein::protocol;

tool_names names() {
  static const auto made = std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"add", "now"});
  return made;
}

struct divided {
  std::string text;
  std::vector<tool_call> calls;
};

divided divide(std::string_view text, bool at_once, std::size_t piece_bytes) {
  call_splitter splitter(names(), at_once);
  divided out;
  std::vector<call_piece> pieces;
  const auto take = [&] {
    for (const auto& piece : pieces) add_piece(piece, out.calls);
    pieces.clear();
  };
  for (std::size_t at = 0; at < text.size(); at += piece_bytes) {
    splitter.push(text.substr(at, piece_bytes), out.text, pieces);
    take();
  }
  splitter.finish(out.text, pieces);
  take();
  return out;
}

bool is_object(std::string_view json) {
  const auto document = parse_with_large_integers(json);
  return document && document->root().is(json_kind::object);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool at_once = (data[0] & 1) != 0;
  const std::size_t piece_bytes = std::size_t{1} + (data[0] >> 1) % 16;
  std::string text;
  skein::tokenizer::utf8_assembler().push({reinterpret_cast<const char*>(data + 1), size - 1}, text);
  const divided whole = divide(text, at_once, text.size() + 1), pieces = divide(text, at_once, piece_bytes);
  skein::check(whole.text == pieces.text, "the text depends on the pieces");
  skein::check(whole.calls.size() == pieces.calls.size(), "the number of calls depends on the pieces");
  for (std::size_t i = 0; i < whole.calls.size(); ++i) {
    const auto &one = whole.calls[i], &other = pieces.calls[i];
    skein::check(one.name == other.name && one.arguments == other.arguments && one.whole == other.whole,
                 "a call depends on the pieces");
    skein::check(one.name == "add" || one.name == "now", "a call of no tool");
    skein::check(!one.whole || is_object(one.arguments), "the arguments are no object");
  }
  for (const auto& call : find_tool_calls(text, true, true).calls)
    skein::check(is_object(call.arguments), "the arguments of a tagged call are no object");
  return 0;
}
