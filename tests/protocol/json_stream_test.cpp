// Objects that arrive in pieces: the output is what copy_json writes, apart from numbers, which stay as they are,
// however they are cut. What is not JSON is found at its first wrong byte.
#include "protocol/json/json_stream.hpp"

#include <boost/test/unit_test.hpp>

#include "protocol/json/json_copy.hpp"

using namespace skein::protocol;

namespace {

std::string copied(std::string_view text) {
  const auto document = json_document::parse(text, {});
  BOOST_REQUIRE_MESSAGE(document.has_value(), text);
  std::string json;
  json_writer out(json);
  copy_json(out, document->root());
  return json;
}

struct streamed {
  std::string text;
  std::size_t read = 0;
  json_stream::phase end = json_stream::phase::open;
};

streamed stream(std::string_view text, std::size_t step) {
  json_stream reader;
  streamed out;
  while (out.read < text.size() && reader.now() == json_stream::phase::open)
    out.read += reader.push(text.substr(out.read, step), out.text);
  out.end = reader.now();
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(json_streams)

BOOST_AUTO_TEST_CASE(the_output_is_that_of_a_copy) {
  for (const std::string_view text :
       {R"({})", R"({ })", R"( { "a" : [ ] , "b":{"c":[[],{}]} } )", R"({"n":[0,1.5,-0.001,18446744073709551615,-7]})",
        R"({"t":[true,false,null , "x"]})", R"({"s":"a\/b\"\\\b\f\n\r\t\u0041\u00e9\ud83d\ude00\u0007é你😀"})",
        R"({"\u0061\n":"","":" spaces stay "})", "{\"\x7f\":1}"})
    for (std::size_t step = 1; step <= text.size(); ++step) {
      const auto out = stream(text, step);
      BOOST_TEST_CONTEXT(text << " in steps of " << step) {
        BOOST_TEST(out.text == copied(text));
        BOOST_TEST((out.end == json_stream::phase::over));
        BOOST_TEST(out.read == text.find_last_of('}') + 1);
      }
    }
}

BOOST_AUTO_TEST_CASE(numbers_stay_as_they_are_written) {
  const std::string text = R"({"n":[-0,1.50,2.0,1e2,-1E-3,123456789012345678901234567890]})";
  for (std::size_t step = 1; step <= text.size(); ++step) BOOST_TEST(stream(text, step).text == text);
}

BOOST_AUTO_TEST_CASE(output_comes_as_early_as_it_is_certain) {
  json_stream reader;
  std::string out;
  const auto more = [&](std::string_view text) {
    out.clear();
    reader.push(text, out);
    return out;
  };
  BOOST_TEST(more("{ \"na") == "{\"na");
  BOOST_TEST(more("me\" : \"so") == "me\":\"so");
  BOOST_TEST(more(" on\\") == " on");
  BOOST_TEST(more("u00") == "");
  BOOST_TEST(more("e9") == "é");
  BOOST_TEST(more("\", \"n\": 12") == "\",\"n\":12");
  BOOST_TEST(more("3") == "3");
  BOOST_TEST(more(" ") == "");
  BOOST_TEST(more("}") == "}");
  BOOST_TEST((reader.now() == json_stream::phase::over));
}

BOOST_AUTO_TEST_CASE(what_is_no_json_breaks_it) {
  const std::pair<std::string_view, std::size_t> rows[] = {{"[1]", 0},
                                                           {"x", 0},
                                                           {"{1", 1},
                                                           {"{,", 1},
                                                           {"{\"a\" 1", 5},
                                                           {"{\"a\":,", 5},
                                                           {"{\"a\":1,}", 7},
                                                           {"{\"a\":[1,]", 8},
                                                           {"{\"a\":[1}", 7},
                                                           {"{\"a\":01,", 7},
                                                           {"{\"a\":tru,", 8},
                                                           {"{\"a\":1.}", 7},
                                                           {"{\"a\":--1}", 8},
                                                           {"{\"a\":\"\n", 6},
                                                           {"{\"a\":\"\\x", 7},
                                                           {"{\"a\":\"\\u12g4", 11},
                                                           {"{\"a\":\"\\ud800x2345678", 17},
                                                           {"{\"a\":\"\\udc00", 11},
                                                           {"{\"a\":1 2", 7},
                                                           {"{\"a\":@", 5},
                                                           {"{\"a\":+1}", 7}};
  for (const auto& [text, wrong] : rows)
    for (std::size_t step = 1; step <= text.size(); ++step) {
      const auto out = stream(text, step);
      BOOST_TEST_CONTEXT(text << " in steps of " << step) {
        BOOST_TEST((out.end == json_stream::phase::broken));
        BOOST_TEST(out.read == wrong);
      }
    }
  BOOST_TEST((stream("{\"a\":" + std::string(2000, '1'), 7).end == json_stream::phase::broken));
  const auto nested = [](std::size_t arrays) {
    return "{\"a\":" + std::string(arrays, '[') + "1" + std::string(arrays, ']') + "}";
  };
  BOOST_TEST((stream(nested(255), 7).end == json_stream::phase::over));
  BOOST_TEST((stream(nested(256), 7).end == json_stream::phase::broken));
  BOOST_TEST((stream("{\"a\":[", 3).end == json_stream::phase::open));
}

BOOST_AUTO_TEST_SUITE_END()
