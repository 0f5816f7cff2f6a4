// Every field of /v1/chat/completions: a base body, then one change a row, with what the parsed request must say or the
// field that the refusal must name. Then bodies that are hardly JSON at all, which must be refused and never crash.
#include <boost/test/unit_test.hpp>
#include <random>

#include "tests/protocol/request_rows.hpp"

namespace skein::protocol {
namespace {

using request = const generation_request&;

const std::string chat_base = R"({"messages":[{"role":"user","content":"hi"}])";

/// A body that is nothing but these messages.
std::string with_messages(const std::string& messages) { return R"({"messages":)" + messages; }

BOOST_AUTO_TEST_SUITE(chat_request)

BOOST_AUTO_TEST_CASE(a_request_that_names_nothing_gets_the_preset) {
  const auto r = test::parse_chat_completion(chat_base + "}", {}, {});
  BOOST_REQUIRE(r.has_value());
  BOOST_TEST(r->chat);
  BOOST_TEST(r->messages.size() == 1u);
  BOOST_TEST(r->messages[0].role == "user");
  BOOST_TEST(r->messages[0].content == "hi");
  BOOST_TEST(r->sampling.temperature == 1.0f);
  BOOST_TEST(r->sampling.top_p == 0.6f);
  BOOST_TEST(r->sampling.top_k == 20);
  BOOST_TEST(r->sampling.first_penalty == 1.0f);
  BOOST_TEST(r->sampling.repeat_penalty == 0.1f);
  BOOST_TEST(r->sampling.penalty_decay == 0.996f);
  BOOST_TEST(r->sampling.max_tokens == 4096u);
  BOOST_TEST(r->stop == std::vector<std::string>{"\nUser:"});
  BOOST_TEST((r->think == think_mode::off));
  BOOST_TEST(!r->stream);
  BOOST_TEST(!r->seed_given);
}

BOOST_AUTO_TEST_CASE(thoughts_and_tools_have_samplers_of_their_own) {
  const std::string tools = R"(,"tools":[{"type":"function","function":{"name":"add"}}])";
  const auto sampler = [](const std::string& fields, const model_preset& preset) {
    const auto r = test::parse_chat_completion(chat_base + fields + "}", preset, {});
    BOOST_REQUIRE(r.has_value());
    const auto& s = r->sampling;
    return std::vector<double>{s.temperature,   s.top_p,          double(s.top_k),
                               s.first_penalty, s.repeat_penalty, s.penalty_decay};
  };
  const auto of = [](const config::sampler_defaults& s) {
    const auto as_float = [](double value) { return double{static_cast<float>(value)}; };
    return std::vector<double>{as_float(s.temperature),    as_float(s.top_p),           double(s.top_k),
                               as_float(s.alpha_presence), as_float(s.alpha_frequency), as_float(s.alpha_decay)};
  };
  model_preset preset;
  BOOST_TEST(sampler(R"(,"reasoning_effort":"high")", preset) == of({0.96, 0.76, 32, 1, 0.1, 0.988}));
  BOOST_TEST(sampler(tools, preset) == of({0.96, 0.76, 0, 0, 0, 0.996}));
  preset.thinking.temperature = 0.25, preset.tools.top_k = 7, preset.default_think = true;
  BOOST_TEST(sampler("", preset) == of(preset.thinking));
  BOOST_TEST(sampler(tools, preset) == of(preset.tools));
  BOOST_TEST(sampler(tools + R"(,"tool_choice":"none")", preset) == of(preset.thinking));
  BOOST_TEST(sampler(R"(,"thinking_budget":0)", preset) == of(preset));
  preset.by_client.temperature = 0.5f;  // /v1/set_params and the like hold for all answers
  BOOST_TEST(sampler("", preset).front() == 0.5);
}

BOOST_AUTO_TEST_CASE(fields_of_both_routes) {
  const auto neutral = [](std::string_view text, const model_preset& given, const request_limits& limits) {
    model_preset preset = given;
    preset.unset_sampling = "neutral";
    return test::parse_chat_completion(text, preset, limits);
  };
  test::check_accepted(neutral, chat_base, test::common_accepted());
  test::check_refused(test::parse_chat_completion, chat_base, test::common_refused());
}

BOOST_AUTO_TEST_CASE(chat_fields) {
  const auto mode = [](think_mode m) { return [m](request r) { return r.think == m; }; };
  const auto limit = [](std::uint32_t tokens) {
    return [tokens](request r) { return (r.thoughts ? r.thoughts->tokens_max : 0) == tokens; };
  };
  const std::vector<test::accepted_row> rows{
      // naming a field of the sampler leaves the others
      {R"("temperature":0.5)",
       [](request r) { return r.sampling.temperature == 0.5f && r.sampling.top_p == 0.6f && r.sampling.top_k == 20; }},
      {R"("top_p":0.9)", [](request r) { return r.sampling.top_p == 0.9f && r.sampling.top_k == 20; }},
      {R"("top_k":0)", [](request r) { return r.sampling.top_p == 0.6f && r.sampling.top_k == 0; }},
      {R"("presence_penalty":0.5)",
       [](request r) {
         return r.sampling.first_penalty == 0.5f && r.sampling.repeat_penalty == 0.1f &&
                r.sampling.penalty_decay == 0.996f;
       }},
      {R"("frequency_penalty":0.5)",
       [](request r) { return r.sampling.first_penalty == 1.5f && r.sampling.repeat_penalty == 0.5f; }},
      {R"("presence_penalty":0,"frequency_penalty":0)",
       [](request r) { return r.sampling.first_penalty == 0.0f && r.sampling.repeat_penalty == 0.0f; }},
      {R"("alpha_presence":2)",
       [](request r) {
         return r.sampling.top_p == 0.6f && r.sampling.top_k == 20 && r.sampling.repeat_penalty == 0.1f;
       }},
      {R"("temperature":0.5)",
       [](request r) { return r.sampling.first_penalty == 1.0f && r.sampling.penalty_decay == 0.996f; }},
      {R"("alpha_decay":0.5)",
       [](request r) { return r.sampling.first_penalty == 1.0f && r.sampling.penalty_decay == 0.5f; }},
      // an answer also ends where its turn ends
      {R"("stop":"###")",
       [](request r) {
         return r.stop == std::vector<std::string>{"\nUser:", "###"};
       }},
      {R"("stop":"\nUser:")", [](request r) { return r.stop == std::vector<std::string>{"\nUser:"}; }},
      {R"("stop":[])", [](request r) { return r.stop == std::vector<std::string>{"\nUser:"}; }},
      {R"("stop_token_ids":[7])", [](request r) { return r.stop == std::vector<std::string>{"\nUser:"}; }},

      {R"("enable_think":true)", mode(think_mode::on)},
      {R"("enable_think":false)", mode(think_mode::off)},
      {R"("think":true)", mode(think_mode::on)},
      {R"("think":false,"enable_think":true)", mode(think_mode::off)},
      {R"("think_type":"fast","think":true)", mode(think_mode::off)},
      {R"("think_type":"free")", mode(think_mode::on)},
      {R"("think_type":"en")", mode(think_mode::english_think)},
      {R"("think_type":"enShort")", mode(think_mode::short_think)},
      {R"("think_type":"en_short")", mode(think_mode::short_think)},
      {R"("think_type":"enLong")", mode(think_mode::long_think)},
      {R"("think_type":"preferChinese")", mode(think_mode::chinese_think)},
      {R"("think_type":"enLong")", [](request r) { return r.force_reasoning; }},
      {R"("think_type":"fast","force_reasoning":true)", [](request r) { return !r.force_reasoning; }},
      {R"("think":true)", [](request r) { return !r.force_reasoning; }},
      {R"("force_reasoning":true)", [](request r) { return r.force_reasoning; }},
      {R"("chat_template_kwargs":{"enable_thinking":true,"other":1})", mode(think_mode::on)},
      {R"("chat_template_kwargs":{"enable_thinking":false},"reasoning_effort":"high")", mode(think_mode::off)},
      {R"("reasoning_effort":"none")", mode(think_mode::off)},
      {R"("reasoning_effort":"minimal")", mode(think_mode::short_think)},
      {R"("reasoning_effort":"low")", mode(think_mode::short_think)},
      {R"("reasoning_effort":"medium")", mode(think_mode::english_think)},
      {R"("reasoning_effort":"high")", mode(think_mode::long_think)},
      {R"("enable_thinking":true)", mode(think_mode::on)},
      {R"("chat_template_kwargs":{"thinking":true})", mode(think_mode::on)},
      {R"("thinking":{"type":"enabled"})", mode(think_mode::on)},
      {R"("thinking":{"type":"disabled"},"reasoning_effort":"high")", mode(think_mode::off)},
      {R"("thinking":{"type":"adaptive"},"reasoning_effort":"high")", mode(think_mode::long_think)},
      {R"("thinking":true)", mode(think_mode::on)},
      {R"("reasoning":{"effort":"low"})", mode(think_mode::short_think)},
      {R"("reasoning":{"enabled":true})", mode(think_mode::on)},
      {R"("think":true)", limit(0)},
      {R"("think":true,"max_reasoning_tokens":7)", limit(7)},
      {R"("thinking":{"type":"enabled","budget_tokens":7})", limit(7)},
      {R"("reasoning":{"effort":"high","max_tokens":7})", limit(7)},
      {R"("enable_thinking":true,"thinking_budget":7)", limit(7)},
      {R"("enable_thinking":true,"thinking_token_budget":7)", limit(7)},
      {R"("chat_template_kwargs":{"enable_thinking":true,"thinking_budget":7})", limit(7)},
      {R"("thinking":{"type":"enabled","budget_tokens":7},"max_reasoning_tokens":9)", limit(7)},
      {R"("think":true,"max_reasoning_tokens":-1)", limit(0)},
      {R"("think":true,"max_reasoning_tokens":0)", mode(think_mode::off)},
      {R"("max_reasoning_tokens":7)", limit(0)},  // it does not think
      {R"("reasoning_format":"raw","think":true,"max_reasoning_tokens":7)", limit(7)},
      {R"("reasoning_format":"raw")", [](request r) { return r.reasoning_raw; }},
      {R"("reasoning_format":"parsed")", [](request r) { return !r.reasoning_raw; }},

      {R"("logprobs":true)", [](request r) { return r.sampling.logprobs && r.sampling.top_logprobs == 0; }},
      {R"("logprobs":true,"top_logprobs":20)", [](request r) { return r.sampling.top_logprobs == 20; }},
      {R"("logprobs":false,"top_logprobs":0)", [](request r) { return !r.sampling.logprobs; }},

      {R"("contents":["more"])",
       [](request r) {
         return r.messages.size() == 2 && r.messages[1].role == "user" && r.messages[1].content == "more";
       }},
      {R"("contents":[])", [](request r) { return r.messages.size() == 1; }},
      {R"("system":"be kind")",
       [](request r) {
         return r.messages.size() == 2 && r.messages[0].role == "system" && r.messages[1].content == "hi";
       }},
  };
  test::check_accepted(test::parse_chat_completion, chat_base, rows);

  const std::vector<test::refused_row> wrong{
      {R"("think_type":"loud")", "think_type"},
      {R"("think":"yes")", "think"},
      {R"("enable_think":1)", "enable_think"},
      {R"("chat_template_kwargs":{"enable_thinking":"on"})", "chat_template_kwargs.enable_thinking"},
      {R"("reasoning_effort":"huge")", "reasoning_effort"},
      {R"("reasoning":{"effort":"huge"})", "reasoning.effort"},
      {R"("reasoning":"high")", "reasoning"},
      {R"("thinking":{"type":"odd"})", "thinking.type"},
      {R"("thinking":{"budget_tokens":"7"})", "thinking.budget_tokens"},
      {R"("thinking":"on")", "thinking"},
      {R"("max_reasoning_tokens":-2)", "max_reasoning_tokens"},
      {R"("max_reasoning_tokens":7.5)", "max_reasoning_tokens"},
      {R"("reasoning_format":"odd")", "reasoning_format"},
      {R"("logprobs":5)", "logprobs"},
      {R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
      {R"("logprobs":true,"top_logprobs":-1)", "top_logprobs"},
      {R"("top_logprobs":3)", "top_logprobs"},
      {R"("contents":"more")", "contents"},
      {R"("contents":[5])", "contents"},
      {R"("contents":["a","b"])", "contents"},
      {R"("system":5)", "system"},
  };
  test::check_refused(test::parse_chat_completion, chat_base, wrong);
}

BOOST_AUTO_TEST_CASE(a_preset_that_thinks) {
  model_preset preset;
  preset.default_think = true;
  BOOST_TEST((test::parse_chat_completion(chat_base + "}", preset, {})->think == think_mode::on));
  BOOST_TEST((test::parse_chat_completion(chat_base + R"(,"think":false})", preset, {})->think == think_mode::off));
  const auto limited = test::parse_chat_completion(chat_base + R"(,"max_reasoning_tokens":20})", preset, {});
  BOOST_TEST(limited->thoughts.value().tokens_max == 20u);

  preset.default_think_tokens_max = 7;
  const auto limit_of = [&](const std::string& more) {
    const auto thoughts = test::parse_chat_completion(chat_base + more + "}", preset, {})->thoughts;
    return thoughts ? std::to_string(thoughts->tokens_max) + thoughts->field : "none";
  };
  BOOST_TEST(limit_of("") == "7");
  BOOST_TEST(limit_of(R"(,"max_reasoning_tokens":20)") == "20max_reasoning_tokens");
  for (const auto none : {R"(,"max_reasoning_tokens":-1)", R"(,"thinking_budget":0)", R"(,"think":false)"})
    BOOST_TEST(limit_of(none) == "none", none);
}

BOOST_AUTO_TEST_CASE(messages_of_all_shapes) {
  const auto content = [](std::string_view text) {
    return [text](request r) { return r.messages.size() == 1 && r.messages[0].content == text; };
  };
  const std::vector<std::pair<std::string, std::function<bool(request)>>> right{
      {R"([{"role":"user","content":"x"}])", content("x")},
      {R"([{"role":"user","content":""}])", content("")},
      {R"([{"role":"user","content":null}])", content("")},
      {R"([{"role":"user","content":[]}])", content("")},
      {R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])", content("ab")},
      {R"([{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}])", content("no")},
      {R"([{"role":"assistant","content":"x","tool_calls":[],"function_call":null}])", content("x")},
      {R"([{"role":"user","content":"x","name":"Ada"}])", [](request r) { return r.messages[0].name == "Ada"; }},
      {R"([{"role":"system","content":"s"},{"role":"developer","content":"d"},{"role":"tool","content":"t"}])",
       [](request r) { return r.messages.size() == 3 && r.messages[2].role == "tool"; }},
      {R"([{"role":"user","content":"\ud83d\ude00 \u4f60"}])", content("😀 你")},
      {R"([],"contents":["only"])", content("only")},
  };
  for (const auto& [messages, fact] : right)
    test::check_accepted(test::parse_chat_completion, with_messages(messages), {{{"", fact}}});

  const auto unsupported = error_kind::unsupported;
  const std::vector<std::pair<std::string, test::refused_row>> wrong{
      {"null", {"", "messages"}},
      {"[]", {"", "messages"}},
      {"\"hi\"", {"", "messages"}},
      {"[5]", {"", "messages[0]"}},
      {R"([{"content":"x"}])", {"", "messages[0].role"}},
      {R"([{"role":"robot","content":"x"}])", {"", "messages[0].role"}},
      {R"([{"role":5,"content":"x"}])", {"", "messages[0].role"}},
      {R"([{"role":"user"}])", {"", "messages[0].content"}},
      {R"([{"role":"user","content":5}])", {"", "messages[0].content"}},
      {R"([{"role":"user","content":"x"},{"role":"user","content":["y"]}])", {"", "messages[1].content[0]"}},
      {R"([{"role":"user","content":[{"text":"y"}]}])", {"", "messages[0].content[0].type"}},
      {R"([{"role":"user","content":[{"type":"text"}]}])", {"", "messages[0].content[0].text"}},
      {R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u"}}]}])",
       {"", "messages[0].content[1].type", unsupported}},
      {R"([{"role":"user","content":[{"type":"input_audio"}]}])", {"", "messages[0].content[0].type", unsupported}},
      {R"([{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]}])",
       {"", "messages[0].tool_calls[0].function"}},
      {R"([{"role":"assistant","content":"x","function_call":{"name":"f"}}])",
       {"", "messages[0].function_call", unsupported}},
      {R"([{"role":"user","content":"x","name":5}])", {"", "messages[0].name"}},
      {R"([{"role":"user","content":"x","content":"y"}])", {"", "messages[0].content"}},
  };
  for (auto [messages, row] : wrong) {
    row.member = R"("user":"u")";
    test::check_refused(test::parse_chat_completion, with_messages(messages), {{row}});
  }
  test::check_accepted(test::parse_chat_completion, R"({"contents":["a"])", {{{"", [](const auto& r) {
                                                                                 return r.messages.size() == 1 &&
                                                                                        r.messages[0].role == "user" &&
                                                                                        r.messages[0].content == "a";
                                                                               }}}});
}

BOOST_AUTO_TEST_CASE(bodies_that_are_no_request) {
  for (const std::string& body : {std::string(),
                                  std::string(" "),
                                  std::string("null"),
                                  std::string("[]"),
                                  std::string("\"x\""),
                                  std::string("{"),
                                  std::string("{]"),
                                  std::string("NaN"),
                                  chat_base + R"(,"temperature":NaN})",
                                  chat_base + R"(,"temperature":1e999})",
                                  chat_base + "} {}",
                                  chat_base + "}x",
                                  chat_base + R"(,"x":[1,2 bad }})",
                                  chat_base + R"(,"x":"\ud800"})",
                                  chat_base + R"(,"x":"\ud800\u0041"})",
                                  chat_base + R"(,"x":"\udc00"})",
                                  chat_base + ",\"x\":\"\xff\"}",
                                  chat_base + ",\"x\":\"\xed\xa0\x80\"}",
                                  chat_base + ",\"x\":\"\xc0\x80\"}",
                                  chat_base + ",\"x\":\"a\nb\"}",
                                  chat_base + std::string(",\"x\":\"a\0b\"}", 11)}) {
    const auto r = test::parse_chat_completion(body, {}, {});
    BOOST_TEST_CONTEXT(body) {
      BOOST_TEST(!r.has_value());
      if (!r) BOOST_TEST((r.error().kind == error_kind::invalid_argument && r.error().field.empty()));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_body_at_the_limit_is_read_and_one_above_it_refused) {
  request_limits limits;
  const std::string before = R"({"messages":[{"role":"user","content":")";
  const std::string after = R"("}]})";
  const std::string text(limits.body_bytes_max - before.size() - after.size(), 'x');
  const auto fits = test::parse_chat_completion(before + text + after, {}, limits);
  BOOST_REQUIRE(fits.has_value());
  BOOST_TEST((fits->messages[0].content == text));

  const auto above = test::parse_chat_completion(before + text + "x" + after, {}, limits);
  BOOST_REQUIRE(!above.has_value());
  BOOST_TEST((above.error().kind == error_kind::too_large));
}

BOOST_AUTO_TEST_CASE(random_damage_is_refused_or_read_but_never_fatal) {
  const std::string seed_body =
      R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"caf\u00e9"}]}],)"
      R"("temperature":0.5,"stop":["a","b"],"stop_tokens":[0,"x"],"logit_bias":{"5":1},"n":2,"seed":-1,"logprobs":true})";
  const unsigned seed = std::random_device{}();
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 20000; ++round) {
    auto body = seed_body;
    for (unsigned edits = 1 + random() % 4; edits > 0 && !body.empty(); --edits) {
      const auto at = random() % body.size();
      switch (random() % 4) {
        case 0: body[at] = static_cast<char>(random()); break;
        case 1: body.erase(at, 1 + random() % 8); break;
        case 2: body.insert(at, body.substr(random() % body.size(), random() % 16)); break;
        default: body[at] = "{}[]\",:0-e.\\nu"[random() % 14];
      }
    }
    const auto r = test::parse_chat_completion(body, {}, {});
    if (!r) BOOST_REQUIRE_MESSAGE(!r.error().message.empty(), "seed " << seed << " body " << body);
    if (r) BOOST_REQUIRE_MESSAGE(!r->messages.empty(), "seed " << seed << " body " << body);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::protocol
