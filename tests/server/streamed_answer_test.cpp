// Shows that the load tests' reader of answers is exact: it says the same wherever the bytes are cut, gives strings
// back as they were before they became JSON, and takes nothing for an answer that is none.
#include "tests/server/streamed_answer.hpp"

#include <boost/test/unit_test.hpp>
#include <stdexcept>

#include "protocol/json/json_writer.hpp"

using skein::test::streamed_answer;

namespace {

const std::string text = "a \"text\":\"quoted\", \\ back\n\t\x01 \xC3\xA9 \xF0\x9F\xA6\xA2";

std::string event(const std::string& piece, const char* finish) {
  std::string json;
  skein::protocol::json_writer out(json);
  out.begin_object().key("text").value(piece).key("finish_reason");
  finish ? out.value(finish) : out.null();
  if (finish) out.key("rwkv").begin_object().key("stop_reason").value("drain").end_object();
  out.end_object();
  return "data: " + json + "\n\n";
}

std::string chunk(const std::string& bytes) {
  std::string size;
  for (std::size_t n = bytes.size(); n > 0; n /= 16) size.insert(size.begin(), "0123456789abcdef"[n % 16]);
  return size + "\r\n" + bytes + "\r\n";
}

const std::string response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(event(text, nullptr)) +
                             chunk(": keep-alive\n\n") + chunk(event("", "length") + "data: [DONE]\n\n") + "0\r\n\r\n";

}  // namespace

BOOST_AUTO_TEST_CASE(an_answer_reads_the_same_wherever_it_is_cut) {
  for (std::size_t cut = 0; cut <= response.size(); ++cut) {
    streamed_answer answer;
    answer.read(std::string_view(response).substr(0, cut));
    BOOST_TEST(answer.complete() == (cut == response.size()));
    answer.read(std::string_view(response).substr(cut));
    BOOST_TEST(answer.complete());
    BOOST_TEST(answer.done());
    BOOST_TEST(answer.status() == 200u);
    BOOST_TEST(answer.events() == 2u);
    BOOST_TEST(answer.text() == text);
    BOOST_TEST(answer.finish_reason() == "length");
    BOOST_TEST(answer.stop_reason() == "drain");
  }
}

BOOST_AUTO_TEST_CASE(escapes_of_other_writers_are_understood) {
  BOOST_TEST(skein::test::unescaped(R"("\ud83e\udda2\u00e9\/" and more)") == "\xF0\x9F\xA6\xA2\xC3\xA9/");
}

BOOST_AUTO_TEST_CASE(a_refusal_is_complete_with_its_body) {
  streamed_answer answer;
  answer.read("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\n{");
  BOOST_TEST(!answer.complete());
  answer.read("}");
  BOOST_TEST(answer.complete());
  BOOST_TEST(answer.status() == 429u);
  BOOST_TEST(!answer.done());
}

BOOST_AUTO_TEST_CASE(what_is_no_answer_is_refused) {
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& wrong :
       {std::string("SSH-2.0\r\n\r\n"), head + "zz\r\n", head + "1\r\nabc\r\n", head + chunk("event: x\n\n"),
        response + "HTTP/1.1", head + chunk("data: [DONE]\n\n" + event("late", nullptr))}) {
    streamed_answer answer;
    BOOST_CHECK_THROW(answer.read(wrong), std::runtime_error);
  }
}
