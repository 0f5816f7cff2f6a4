// A streamed answer cut at every byte: pieces of text, usage and the end are the same however it comes.
#include "load/answer_reader.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

using skein::load::answer_reader;

namespace {

const std::string chat = R"(data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})"
                         "\n\n: keep-alive\n\n"
                         R"(data: {"choices":[{"index":0,"delta":{"content":"a"}}],"usage":null})"
                         "\n\n"
                         R"(data: {"choices":[{"index":0,"delta":{"reasoning_content":"b"}}]})"
                         "\r\n\r\n"
                         R"(data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})"
                         "\n\n"
                         R"(data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}})"
                         "\n\ndata: [DONE]\n\n";

}  // namespace

BOOST_AUTO_TEST_CASE(an_answer_cut_anywhere) {
  for (std::size_t cut = 0; cut <= chat.size(); ++cut) {
    answer_reader reader;
    const auto pieces = reader.read(chat.substr(0, cut)) + reader.read(chat.substr(cut));
    BOOST_TEST(pieces == 2u);
    BOOST_TEST(reader.done());
    BOOST_TEST(reader.failure() == "");
    BOOST_TEST(reader.input_tokens() == 7u);
    BOOST_TEST(reader.output_tokens() == 3u);
  }
}

BOOST_AUTO_TEST_CASE(texts_of_completions) {
  answer_reader reader;
  BOOST_TEST(reader.read("data: {\"choices\":[{\"text\":\"x\"}]}\ndata:{\"choices\":[{\"text\":\"\"}]}\n") == 1u);
  BOOST_TEST(!reader.done());
}

BOOST_AUTO_TEST_CASE(errors_in_the_stream) {
  answer_reader object, flat, garbage;
  (void)object.read("data: {\"error\":{\"message\":\"lost\"}}\n");
  BOOST_TEST(object.failure() == "lost");
  (void)flat.read("data: {\"error\":\"no\"}\n");
  BOOST_TEST(flat.failure() == "no");
  (void)garbage.read("data: {\n");
  BOOST_TEST(garbage.failure() == "an event is not valid JSON");
}
