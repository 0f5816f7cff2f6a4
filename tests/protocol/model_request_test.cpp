// Shows that bodies of the routes that load models are read as their old clients send them: numbers and truth values in
// strings, escapes in the end text; and that what this server does not have is refused by name.
#include "protocol/server/model_request.hpp"

#include <boost/test/unit_test.hpp>

namespace {

using namespace skein;
using namespace skein::protocol;

const request_limits limits;

std::string wrong_field(const std::string& body) {
  const auto request = parse_load_model_file(body, limits);
  BOOST_REQUIRE_MESSAGE(!request, body);
  return request.error().field;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(model_request)

BOOST_AUTO_TEST_CASE(a_whole_body_of_the_older_servers) {
  const auto request = parse_load_model_file(
      R"({"model_filename":"m/x.pth","model_viewname":"A b","model_strategy":"","adapter_filename":"",)"
      R"("adapter_mode":"","adapter_scaling":"2.0","default_temperature":"1.0","default_top_p":"0.3",)"
      R"("template":"world","endtoken":"\\n\\nUser:","rope_theta":"1000000","force":"True"})",
      limits);
  BOOST_REQUIRE_MESSAGE(request, (request ? "" : request.error().message));
  BOOST_TEST(request->file == "m/x.pth");
  BOOST_TEST(request->name == "A b");
  BOOST_TEST(request->defaults.temperature.value() == 1.0f);
  BOOST_TEST(request->defaults.top_p.value() == 0.3f);
  BOOST_TEST(request->defaults.end_text.value() == "\n\nUser:");
  BOOST_TEST(request->force);
}

BOOST_AUTO_TEST_CASE(an_adapter_and_its_scale) {
  const auto asked = [](const std::string& more) {
    return parse_load_model_file(
               R"({"model_filename":"x","adapter_filename":"a.pth","adapter_scaling":"0.25")" + more + '}', limits)
        .value();
  };
  BOOST_TEST((asked("").adapters == std::vector<std::string>{"a.pth"}));
  BOOST_TEST(asked("").adapter_scale.value() == 0.25);
  BOOST_TEST(asked(R"(,"adapter_mode":"lora")").adapter_scale.value() == 0.25);
  BOOST_TEST(!asked(R"(,"adapter_mode":"bone")").adapter_scale.has_value());  // sent, but it has no scale
}

BOOST_AUTO_TEST_CASE(adapters_of_two_files) {
  const auto listed = [](const std::string& files) {
    return parse_load_model_file(R"({"model_filename":"x","adapter_mode":"pissa","adapter_filename":)" + files + '}',
                                 limits);
  };
  BOOST_TEST((listed(R"(["a.pth","b.pth"])").value().adapters == std::vector<std::string>{"a.pth", "b.pth"}));
  std::string many = R"("a")";
  for (int i = 0; i < 16; ++i) many += R"(,"a")";
  for (const std::string& refused : {std::string(R"(["a",1])"), std::string(R"(["a",""])"), std::string("[[]]"),
                                     std::string("{}"), '[' + many + ']'}) {
    const auto request = listed(refused);
    BOOST_REQUIRE_MESSAGE(!request, refused);
    BOOST_TEST(request.error().field == "adapter_filename");
  }
}

BOOST_AUTO_TEST_CASE(what_is_left_open_stays_open) {
  const auto request = parse_load_model_id(R"({"model":"x"})", limits);
  BOOST_REQUIRE(request);
  BOOST_TEST(request->file == "x");
  BOOST_TEST(request->strategy.empty());
  BOOST_TEST(!request->defaults.temperature.has_value());
  BOOST_TEST(!request->defaults.end_text.has_value());
  BOOST_TEST(!request->force);
  BOOST_TEST(!parse_remove_model("", limits).value().force);
  BOOST_TEST(parse_remove_model(R"({"force":true})", limits).value().force);
  BOOST_TEST(parse_remove_model("", limits).value().model.empty());
  BOOST_TEST(parse_remove_model(R"({"model":"a b"})", limits).value().model == "a b");
  BOOST_TEST(parse_remove_model(R"({"model_viewname":"a"})", limits).value().model == "a");
}

BOOST_AUTO_TEST_CASE(faults_are_named) {
  BOOST_TEST(wrong_field("{}") == "model_filename");
  BOOST_TEST(wrong_field(R"({"model_filename":7})") == "model_filename");
  BOOST_TEST(wrong_field(R"({"model_filename":"x","default_top_p":"1.5"})") == "default_top_p");
  BOOST_TEST(wrong_field(R"({"model_filename":"x","template":"chatml"})") == "template");
  BOOST_TEST(wrong_field(R"({"model_filename":"x","adapter_mode":"lora"})") == "adapter_mode");
  BOOST_TEST(wrong_field(R"({"model_filename":"x","adapter_filename":"a","adapter_mode":"what"})") == "adapter_mode");
  BOOST_TEST(wrong_field(R"({"model_filename":"x","adapter_scaling":"much"})") == "adapter_scaling");
  BOOST_TEST(wrong_field(R"({"model_filename":"x","force":"perhaps"})") == "force");
  BOOST_TEST(wrong_field(R"({"model_filename":"x","model_viewname":")" + std::string(257, 'x') + "\"}") ==
             "model_viewname");
  BOOST_TEST(!parse_load_model_id("[]", limits));
}

BOOST_AUTO_TEST_CASE(escapes) {
  BOOST_TEST(without_escapes(R"(\n\t\r\\)") == "\n\t\r\\");
  BOOST_TEST(without_escapes(R"(a\0b)") == std::string("a\0b", 3));
  BOOST_TEST(without_escapes(R"(\x41\x4)") == R"(A\x4)");
  BOOST_TEST(without_escapes(R"(\q\xzz\)") == R"(\q\xzz\)");
  BOOST_TEST(without_escapes("\n") == "\n");
}

BOOST_AUTO_TEST_CASE(defaults_for_all_requests_from_now_on) {
  const auto made =
      parse_defaults(R"({"temperature":"0.5","top_p":0.25,"top_k":7,"presence_penalty":1,"frequency_penalty":null,)"
                     R"("penalty_decay":0.99,"max_tokens":"9999999","global_penalty":true,"state":""})",
                     {});
  BOOST_REQUIRE(made);
  BOOST_TEST(made->temperature.value() == 0.5f);
  BOOST_TEST(made->top_k.value() == 7);
  BOOST_TEST(made->presence.value() == 1.0f);
  BOOST_TEST(!made->frequency);
  BOOST_TEST(made->max_tokens.value() == request_limits{}.max_tokens_max);
  client_defaults all;
  all.frequency = 0.25f;
  all.temperature = 2.0f;
  all.change(*made);
  BOOST_TEST(all.temperature.value() == 0.5f);
  BOOST_TEST(all.frequency.value() == 0.25f);
  BOOST_TEST(all.penalises_prompt.value());
  for (const char* field : {"temperature", "top_p", "top_k", "presence_penalty", "penalty_decay", "max_tokens"}) {
    const auto no = parse_defaults("{\"" + std::string(field) + "\":\"-3\"}", {});
    BOOST_TEST_CONTEXT(field) BOOST_TEST(no.error().field == field);
  }
  BOOST_TEST(parse_defaults(R"({"top_p":2})", {}).error().message == "top_p must be a number from 0 to 1");
  BOOST_TEST(parse_defaults(R"({"penalty_decay":0})", {}).error().message ==
             "penalty_decay must be above 0 and at most 1");
  BOOST_TEST(parse_defaults(R"({"state":"poet"})", {}).error().field == "state");
}

BOOST_AUTO_TEST_SUITE_END()
