#include "tests/protocol/request_rows.hpp"

#include <boost/test/unit_test.hpp>

namespace skein::protocol::test {

void check_accepted(parser parse, const std::string& base, std::span<const accepted_row> rows) {
  for (const auto& row : rows) {
    const auto body = base + (row.member.empty() ? "" : ",") + row.member + "}";
    const auto request = parse(body, {}, {});
    BOOST_TEST_CONTEXT(row.member) {
      BOOST_TEST(request.has_value(), (request ? "" : request.error().message));
      if (request) BOOST_TEST(row.fact(*request));
    }
  }
}

void check_refused(parser parse, const std::string& base, std::span<const refused_row> rows) {
  for (const auto& row : rows) {
    const auto request = parse(base + "," + row.member + "}", {}, {});
    BOOST_TEST_CONTEXT(row.member.substr(0, 200)) {
      BOOST_TEST(!request.has_value());
      if (request) continue;
      BOOST_TEST(request.error().field == row.field);
      BOOST_TEST(to_string(request.error().kind) == to_string(row.kind));
      BOOST_TEST(!request.error().message.empty());
    }
  }
}

namespace {

using request = const generation_request&;

std::string repeated(int times, const std::function<std::string(int)>& element) {
  std::string list;
  for (int i = 0; i < times; ++i) list += (i ? "," : "") + element(i);
  return list;
}

std::string stops(int count) {
  return R"("stop":[)" + repeated(count, [](int i) { return "\"s" + std::to_string(i) + "\""; }) + "]";
}

std::string biases(int count) {
  return R"("logit_bias":{)" + repeated(count, [](int i) { return "\"" + std::to_string(i) + "\":1"; }) + "}";
}

bool plain_filters(request r, float temperature, float top_p, int top_k) {
  return r.sampling.temperature == temperature && r.sampling.top_p == top_p && r.sampling.top_k == top_k;
}

bool penalties(request r, float first, float repeat, float decay) {
  return r.sampling.first_penalty == first && r.sampling.repeat_penalty == repeat && r.sampling.penalty_decay == decay;
}

using constraint = text_constraint::kind;

bool constrains(request r, constraint what, std::string_view text, std::string_view field) {
  return r.constraint && r.constraint->what == what && r.constraint->text == text && r.constraint->field == field;
}

bool names_stop(request r, std::string_view stop) { return !r.stop.empty() && r.stop.back() == stop; }

const std::vector<accepted_row> accepted{
    {R"("model":"m")", [](request r) { return r.model == "m"; }},
    {R"("model":null)", [](request r) { return r.model.empty(); }},
    {R"("unknown":{"a":[1,{"b":2}]})", [](request r) { return r.n == 1; }},
    {R"("metadata":{"a":"b"},"store":true,"service_tier":"auto","parallel_tool_calls":false)",
     [](request r) { return !r.stream; }},
    {R"("user":"u")", [](request r) { return r.user == "u"; }},

    {R"("temperature":0.5)", [](request r) { return plain_filters(r, 0.5f, 1, 0); }},
    {R"("temperature":0)", [](request r) { return plain_filters(r, 0, 1, 0); }},
    {R"("temperature":1000)", [](request r) { return plain_filters(r, 1000, 1, 0); }},
    {R"("top_p":0.25)", [](request r) { return plain_filters(r, 1, 0.25f, 0); }},
    {R"("top_p":0)", [](request r) { return plain_filters(r, 1, 0, 0); }},
    {R"("top_k":7)", [](request r) { return plain_filters(r, 1, 1, 7); }},
    {R"("top_k":7.0)", [](request r) { return plain_filters(r, 1, 1, 7); }},
    {R"("top_k":-1)", [](request r) { return plain_filters(r, 1, 1, 0); }},
    {R"("top_k":9000000000000000000)", [](request r) { return plain_filters(r, 1, 1, 0); }},
    {R"("top_k":5,"temperature":2,"top_p":0.5)", [](request r) { return plain_filters(r, 2, 0.5f, 5); }},
    {R"("min_p":0.125)", [](request r) { return r.sampling.min_p == 0.125f; }},

    {R"("presence_penalty":0.5)", [](request r) { return penalties(r, 0.5f, 0, 1); }},
    {R"("frequency_penalty":-2)", [](request r) { return penalties(r, -2, -2, 1); }},
    {R"("presence_penalty":0.5,"frequency_penalty":0.25)", [](request r) { return penalties(r, 0.75f, 0.25f, 1); }},
    {R"("presence_penalty":0.5,"alpha_decay":0.5)", [](request r) { return penalties(r, 0.5f, 0, 0.5f); }},
    {R"("presence_penalty":0.5,"penalty_decay":0.5)", [](request r) { return penalties(r, 0.5f, 0, 0.5f); }},
    {R"("alpha_presence":2,"alpha_frequency":5,"alpha_decay":0.5)", [](request r) { return penalties(r, 2, 5, 0.5f); }},
    {R"("alpha_presence":2,"alpha_frequency":5)", [](request r) { return penalties(r, 2, 5, 0.996f); }},
    {R"("alpha_presence":2,"presence_penalty":1,"frequency_penalty":0.5)",
     [](request r) { return penalties(r, 2, 0.5f, 0.996f); }},
    {R"("presence_penalty":0,"frequency_penalty":0)", [](request r) { return penalties(r, 0, 0, 1); }},

    {R"("logit_bias":{"0":-100,"65535":2.5})",
     [](request r) {
       const auto& b = r.sampling.logit_bias;
       return b.size() == 2 && b[0].token == 0 && b[0].bias == -100 && b[1].token == 65535 && b[1].bias == 2.5f;
     }},
    {R"("logit_bias":{})", [](request r) { return r.sampling.logit_bias.empty(); }},
    {biases(1024), [](request r) { return r.sampling.logit_bias.size() == 1024; }},

    {R"("max_tokens":0)", [](request r) { return r.sampling.max_tokens == 0; }},
    {R"("max_tokens":7)", [](request r) { return r.sampling.max_tokens == 7; }},
    {R"("max_tokens":7,"max_completion_tokens":9)", [](request r) { return r.sampling.max_tokens == 9; }},
    {R"("max_tokens":7,"max_completion_tokens":null)", [](request r) { return r.sampling.max_tokens == 7; }},
    {R"("max_tokens":4000000000000)", [](request r) { return r.sampling.max_tokens == 1u << 20; }},

    {R"("stop":"###")", [](request r) { return names_stop(r, "###"); }},
    {R"("stop":["a","b"])", [](request r) { return names_stop(r, "b") && r.sampling.stop_ids.empty(); }},
    {R"("stop":"")", [](request r) { return !names_stop(r, ""); }},
    {R"("stop":["a",""])", [](request r) { return names_stop(r, "a") && !names_stop(r, ""); }},
    {R"("logit_bias":[])", [](request r) { return r.sampling.logit_bias.empty(); }},
    {R"("grammar":"","json_schema":null,"bnf_schema":"","ebnf":"","regex":"","format":"","guided_json":"")",
     [](request) { return true; }},
    {R"("guided_choice":[],"guided_json_object":false,"structured_outputs":{"json":null,"choice":[]})",
     [](request) { return true; }},
    {R"("response_format":{},"structured_outputs":{})", [](request) { return true; }},
    {R"("response_format":{"type":"json_object"})",
     [](request r) { return constrains(r, constraint::json_object, "", "response_format"); }},
    {R"("response_format":{"type":"json_object","schema":{"type":"object"}})",
     [](request r) {
       return constrains(r, constraint::json_schema, R"({"type":"object"})", "response_format.schema");
     }},
    {R"("response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"maximum":1.5e9}}})",
     [](request r) {
       return constrains(r, constraint::json_schema, R"({"maximum":1500000000})", "response_format.json_schema.schema");
     }},
    {R"("response_format":{"type":"grammar","grammar":"root ::= x"})",
     [](request r) { return constrains(r, constraint::gbnf, "root ::= x", "response_format.grammar"); }},
    {R"("response_format":{"type":"regex","pattern":"a+"})",
     [](request r) { return constrains(r, constraint::regex, "a+", "response_format.pattern"); }},
    {R"("guided_json":{"enum":["\u00e9",null,true,-1]})",
     [](request r) {
       return constrains(r, constraint::json_schema, "{\"enum\":[\"\xc3\xa9\",null,true,-1]}", "guided_json");
     }},
    {R"("guided_json":"{}")", [](request r) { return constrains(r, constraint::json_schema, "{}", "guided_json"); }},
    {R"("guided_choice":["a","\"b"])",
     [](request r) { return constrains(r, constraint::choices, R"(["a","\"b"])", "guided_choice"); }},
    {R"("guided_json_object":true)",
     [](request r) { return constrains(r, constraint::json_object, "", "guided_json_object"); }},
    {R"("structured_outputs":{"json":{"type":"null"},"regex":null})",
     [](request r) { return constrains(r, constraint::json_schema, R"({"type":"null"})", "structured_outputs.json"); }},
    {R"("format":"json")", [](request r) { return constrains(r, constraint::json_object, "", "format"); }},
    {R"("format":{"type":"object"})",
     [](request r) { return constrains(r, constraint::json_schema, R"({"type":"object"})", "format"); }},
    {R"("regex":"a+","stop":"x")", [](request r) { return r.stop == std::vector<std::string>{"x"}; }},
    {R"("tool_choice":"auto")", [](request) { return true; }},
    {R"("tool_choice":"none","tools":[{"type":"function","function":{"name":"f"}}])", [](request) { return true; }},
    {R"("tool_choice":"","tools":[],"functions":[],"function_call":"none")", [](request) { return true; }},
    {R"("stop":"\u0000")", [](request r) { return names_stop(r, std::string_view("\0", 1)); }},
    {stops(16), [](request r) { return names_stop(r, "s15"); }},
    {R"("stop_tokens":[0,261,24281])",
     [](request r) {
       return r.stop.empty() && r.sampling.stop_ids == std::vector<token_id>{0, 261, 24281};
     }},
    {R"("stop_tokens":["\nUser:"])", [](request r) { return r.stop == std::vector<std::string>{"\nUser:"}; }},
    {R"("stop_tokens":[0,"x",5])",
     [](request r) {
       return r.stop == std::vector<std::string>{"x"} && r.sampling.stop_ids == std::vector<token_id>{0, 5};
     }},
    {R"("stop_tokens":[])", [](request r) { return r.stop.empty() && r.sampling.stop_ids.empty(); }},
    {R"("stop_tokens":["x"],"stop":"y")",
     [](request r) {
       return r.stop == std::vector<std::string>{"x", "y"};
     }},
    {R"("stop_token_ids":[3])", [](request r) { return r.sampling.stop_ids == std::vector<token_id>{3}; }},
    {R"("ignore_eos":true)", [](request r) { return r.ignore_eos && r.stop.empty(); }},
    {R"("ignore_eos":true,"stop":"z")", [](request r) { return r.stop == std::vector<std::string>{"z"}; }},
    {R"("ignore_eos":false)", [](request r) { return !r.ignore_eos; }},

    {R"("stream":true)", [](request r) { return r.stream && !r.include_usage; }},
    {R"("stream":true,"stream_options":{"include_usage":true})", [](request r) { return r.include_usage; }},
    {R"("stream_options":null)", [](request r) { return !r.include_usage; }},
    {R"("chunk_size":32)", [](request r) { return r.chunk_size == 32; }},
    {R"("chunk_size":-3)", [](request r) { return r.chunk_size == 1; }},
    {R"("n":128)", [](request r) { return r.n == 128; }},
    {R"("n":3)", [](request r) { return r.n == 3 && r.best_of == 3; }},
    {R"("seed":42)", [](request r) { return r.seed_given && r.sampling.seed == 42; }},
    {R"("seed":-1)", [](request r) { return r.seed_given && r.sampling.seed == ~0ull; }},
    {R"("seed":18446744073709551615)", [](request r) { return r.sampling.seed == ~0ull; }},
    {R"("seed":-9223372036854775808)", [](request r) { return r.sampling.seed == 1ull << 63; }},
    {R"("seed":null)", [](request r) { return !r.seed_given; }},

    {R"("tools":[],"functions":[],"tool_choice":"none")", [](request r) { return r.n == 1; }},
    {R"("tools":null,"audio":null,"prediction":null)", [](request r) { return r.n == 1; }},
    {R"("response_format":{"type":"text"},"modalities":["text"])", [](request r) { return r.n == 1; }},
};

const std::vector<refused_row> refused{
    {R"("model":5)", "model"},
    {R"("user":[])", "user"},
    {R"("temperature":-0.1)", "temperature"},
    {R"("temperature":1000.5)", "temperature"},
    {R"("temperature":"hot")", "temperature"},
    {R"("top_p":1.01)", "top_p"},
    {R"("top_p":-0.01)", "top_p"},
    {R"("top_k":1.5)", "top_k"},
    {R"("top_k":"5")", "top_k"},
    {R"("min_p":2)", "min_p"},
    {R"("presence_penalty":2.1)", "presence_penalty"},
    {R"("frequency_penalty":-2.1)", "frequency_penalty"},
    {R"("alpha_presence":101)", "alpha_presence"},
    {R"("alpha_frequency":true)", "alpha_frequency"},
    {R"("alpha_decay":0)", "alpha_decay"},
    {R"("alpha_decay":1.1)", "alpha_decay"},
    {R"("penalty_decay":-1)", "penalty_decay"},
    {R"("logit_bias":[1])", "logit_bias"},
    {R"("logit_bias":{"x":1})", "logit_bias.x"},
    {R"("logit_bias":{"-1":1})", "logit_bias.-1"},
    {R"("logit_bias":{"1":1,"01":1})", "logit_bias.01"},
    {R"("logit_bias":{"99999999999":1})", "logit_bias.99999999999"},
    {R"("logit_bias":{"5":100.5})", "logit_bias.5"},
    {R"("logit_bias":{"5":"1"})", "logit_bias.5"},
    {biases(1025), "logit_bias"},
    {R"("max_tokens":-1)", "max_tokens"},
    {R"("max_tokens":1.5)", "max_tokens"},
    {R"("max_tokens":18446744073709551615)", "max_tokens"},
    {R"("max_completion_tokens":"9")", "max_completion_tokens"},
    {R"("stop":5)", "stop"},
    {R"("stop":["a",5])", "stop[1]"},
    {R"("stop":")" + std::string(257, 'x') + R"(")", "stop"},
    {stops(17), "stop[16]"},
    {R"("stop_tokens":[1,-1])", "stop_tokens[1]"},
    {R"("stop_tokens":[true])", "stop_tokens[0]"},
    {R"("stop_tokens":[4294967296])", "stop_tokens[0]"},
    {R"("stop_token_ids":["a"])", "stop_token_ids[0]"},
    {R"("stop_token_ids":5)", "stop_token_ids"},
    {R"("stop_token_ids":[)" + repeated(129, [](int i) { return std::to_string(i); }) + "]", "stop_token_ids[128]"},
    {R"("ignore_eos":1)", "ignore_eos"},
    {R"("stream":"yes")", "stream"},
    {R"("stream_options":true)", "stream_options"},
    {R"("stream_options":{"include_usage":1})", "stream_options.include_usage"},
    {R"("chunk_size":"4")", "chunk_size"},
    {R"("n":0)", "n"},
    {R"("n":129)", "n"},
    {R"("seed":1.5)", "seed"},
    {R"("seed":"1")", "seed"},
    {R"("functions":[{}])", "functions", error_kind::unsupported},
    {R"("function_call":{"name":"f"})", "function_call", error_kind::unsupported},
    {R"("response_format":{"type":"xml"})", "response_format.type"},
    {R"("response_format":{"type":"json_schema"})", "response_format.json_schema"},
    {R"("response_format":{"type":"json_schema","json_schema":{"name":"x"}})", "response_format.json_schema.schema"},
    {R"("response_format":{"type":"json_schema","json_schema":{"schema":5}})", "response_format.json_schema.schema"},
    {R"("response_format":{"type":"json_schema","json_schema":{"schema":{},"strict":1}})",
     "response_format.json_schema.strict"},
    {R"("response_format":{"type":"grammar"})", "response_format.grammar"},
    {R"("response_format":{"type":"regex","pattern":5})", "response_format.pattern"},
    {R"("response_format":{"type":5})", "response_format.type"},
    {R"("response_format":"json")", "response_format"},
    {R"("audio":{"voice":"x"})", "audio", error_kind::unsupported},
    {R"("modalities":["text","audio"])", "modalities", error_kind::unsupported},
    {R"("prediction":{"type":"content"})", "prediction", error_kind::unsupported},
    {R"("web_search_options":{})", "web_search_options", error_kind::unsupported},
    {R"("guided_regex":5)", "guided_regex"},
    {R"("guided_regex":"a","regex":"b")", "guided_regex"},
    {R"("guided_json":"{}","response_format":{"type":"json_object"})", "guided_json"},
    {R"("guided_choice":["a",1])", "guided_choice"},
    {R"("guided_json_object":"yes")", "guided_json_object"},
    {R"("structured_outputs":{"regex":["a"]})", "structured_outputs.regex"},
    {R"("structured_outputs":{"structural_tag":"a"})", "structured_outputs.structural_tag", error_kind::unsupported},
    {R"("structured_outputs":{"regex":"a","json":{}})", "structured_outputs.regex"},
    {R"("structured_outputs":5)", "structured_outputs"},
    {R"("format":"yaml")", "format"},
    {R"("json_schema":5)", "json_schema"},
    {R"("structural_tag":{"a":1})", "structural_tag", error_kind::unsupported},
    {R"("guided_decoding":{"a":1})", "guided_decoding", error_kind::unsupported},
    {R"("bnf_schema":5)", "bnf_schema"},
    {R"("bnf_schema":"start::='a';","regex":"a")", "regex"},
    {R"("n":1,"n":2)", "n"},
    {R"("x":{"y":[0,{"z":1,"z":1}]})", "x.y[1].z"},
};

}  // namespace

std::span<const accepted_row> common_accepted() { return accepted; }
std::span<const refused_row> common_refused() { return refused; }

}  // namespace skein::protocol::test
