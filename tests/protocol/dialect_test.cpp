// The dialects of older servers: what each makes of the prompts, the fields and the silences of its clients' bodies,
// and which of them a path with several forms takes.
#include "protocol/requests/dialect.hpp"

#include <boost/test/unit_test.hpp>

#include "protocol/dialects/languages.hpp"

namespace {

using namespace skein;
using namespace skein::protocol;

generation_request read(const dialect& as, const std::string& body) {
  auto [by, request, refusal, ignored] = read_request(body, as, {}, {});
  BOOST_REQUIRE_MESSAGE(request, (request ? "" : request.error().message));
  return *request;
}
error refused(const dialect& as, const std::string& body, const request_limits& limits = {}) {
  const auto [by, request, refusal, ignored] = read_request(body, as, {}, limits);
  BOOST_REQUIRE_MESSAGE(!request, body);
  return request.error();
}
std::string form(const dialect& as, const std::string& body) {
  return std::string(read_request(body, as, {}, {}).as->name);
}
std::vector<std::string> texts(const generation_request& request) {
  std::vector<std::string> all;
  for (const auto& p : request.prompts) all.push_back((p.after_lead ? request.lead : "") + p.text);
  return all;
}
using strings = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(older_dialects)

BOOST_AUTO_TEST_CASE(a_path_with_several_forms_looks_at_the_members) {
  const auto& v1 = dialects::chat_or_batch;
  BOOST_TEST(form(v1, R"({"messages":[{"role":"user","content":"x"}]})") == "chat");
  BOOST_TEST(form(v1, R"({"messages":[{"role":"user","content":"x"}],"contents":["y"]})") == "chat");
  BOOST_TEST(form(v1, R"({"contents":["x"],"prompt":"y"})") == "batch");
  BOOST_TEST(form(v1, R"({"contents":["x"],"messages":[]})") == "batch");
  BOOST_TEST(form(v1, R"({"contents":[],"messages":null})") == "batch");
  BOOST_TEST(form(v1, R"({"prompt":"x"})") == "completions");
  BOOST_TEST(form(v1, "{}") == "chat");
  const auto of_runner = read(v1, R"({"messages":[{"role":"user","content":"x"}],"user_name":"Bob"})");
  BOOST_TEST(of_runner.style.user == "Bob");
  BOOST_TEST(form(v1, "[") == "chat");
  BOOST_TEST(form(dialects::text_or_chat, R"({"prompt":"x"})") == "completions");
  BOOST_TEST(form(dialects::text_or_chat, R"({"messages":[{"role":"user","content":"x"}]})") == "chat");
  const auto both = read(v1, R"({"messages":[{"role":"user","content":"x"}],"contents":["y"]})");
  BOOST_TEST(both.messages.at(1).content == "y");
  BOOST_TEST((read_request(R"({"contents":[]})", v1, {}, {}).as->errors == error_style::flat));
}

BOOST_AUTO_TEST_CASE(no_dialect_ignores_a_constraint_on_the_answer) {
  const std::pair<const dialect*, std::string> bodies[] = {
      {&dialects::chat, R"({"messages":[{"role":"user","content":"x"}])"},
      {&dialects::completions, R"({"prompt":"x")"},
      {&dialects::responses, R"({"input":"x")"},
      {&dialects::state, R"({"session_id":"s","contents":["x"])"},
      {&dialects::multi_state, R"({"session_id":"s","dialogue_idx":0,"contents":["x"])"},
      {&dialects::batch, R"({"contents":["x"])"},
      {&dialects::big_batch, R"({"contents":["x"])"},
      {&dialects::fill_in, R"({"prefix":["x"],"suffix":["y"])"},
      {&dialects::infill, R"({"input_prefix":"x","input_suffix":"y")"},
      {&dialects::infer_chat, R"({"messages":[{"role":"user","content":"x"}])"},
      {&dialects::infer_completions, R"({"prompt":"x")"},
      {&dialects::ai_chat, R"({"messages":[{"role":"user","content":"x"}])"},
      {&dialects::ai_completions, R"({"prompt":"x")"}};
  for (const auto& [as, body] : bodies) {
    for (const auto field : {"grammar", "json_schema", "ebnf", "bnf_schema", "regex", "guided_grammar"}) {
      BOOST_TEST_CONTEXT(as->name << ' ' << field) {
        const auto constraint = read(*as, body + ",\"" + field + "\":\"x\"}").constraint;
        BOOST_REQUIRE(constraint.has_value());
        BOOST_TEST(constraint->field == field);
        BOOST_TEST(!read(*as, body + ",\"" + field + "\":\"\"}").constraint.has_value());
      }
    }
    for (const auto field : {"structural_tag", "guided_decoding", "guided_whitespace_pattern", "guided_x"}) {
      const auto no = refused(*as, body + ",\"" + field + "\":\"x\"}");
      BOOST_TEST((no.field == field && no.kind == error_kind::unsupported));
      BOOST_TEST(!read(*as, body + ",\"" + field + "\":\"\"}").constraint.has_value());
    }
    BOOST_TEST(!read(*as, body + R"(,"guided_decoding_backend":"x","nvext":{"greed_sampling":true}})").constraint);
    BOOST_TEST(refused(*as, body + R"(,"nvext":{"guided_regex":"a"}})").field == "nvext.guided_regex");
    const auto choice = read(*as, body + R"(,"structured_outputs":{"choice":["a"]}})");
    BOOST_REQUIRE(choice.constraint.has_value());
    BOOST_TEST(choice.constraint->field == "structured_outputs.choice");
    const auto object = read(*as, body + R"(,"response_format":{"type":"json_object"}})");
    BOOST_REQUIRE(object.constraint.has_value());
    BOOST_TEST(object.stop.empty());  // no turn end cuts it
  }
}

BOOST_AUTO_TEST_CASE(prompts_beyond_the_limit_are_counted_but_not_kept) {
  request_limits limits;
  limits.prompts_max = 2;
  const std::pair<const dialect*, const char*> bodies[] = {
      {&dialects::batch, R"({"contents":["a","b","c","d"]})"},
      {&dialects::batch_v3, R"({"contents":["a","b","c","d"]})"},
      {&dialects::fill_in, R"({"prefix":["a","b","c","d"],"suffix":["a","b","c","d"]})"},
      {&dialects::completions, R"({"prompt":["a",[1],[2],"d"]})"},
      {&dialects::ai_choices, R"({"choices":["a","b","c","d"]})"},
      {&dialects::ai_choices, R"({"choices":["a","b"],"calibrate":true})"},
      {&dialects::translate, R"({"target_lang":"en","text_list":["a\n\nb\n\nc","d"]})"},
  };
  for (const auto& [as, body] : bodies) {
    generation_request out;
    const auto ok = read_body(body, limits, [&](const object_reader& reader) {
      as->read_prompts(reader, {*as, {}, limits}, out);
      return true;
    });
    BOOST_TEST(ok.has_value());
    BOOST_TEST(out.prompts.size() == 2u, body);
    BOOST_TEST(out.prompts_left_out == 2u, body);
    const auto no = read_request(body, *as, {}, limits);
    BOOST_TEST(!no.request, body);
    if (as->errors == error_style::flat)
      BOOST_TEST(no.refusal == R"({"error":"bsz overflow, Max bsz=2","request_bsz":4,"max_bsz":2})");
  }
  BOOST_TEST(read_request(R"({"target_lang":"en","text_list":["","",""]})", dialects::translate, {}, limits).refusal ==
             R"({"error":"bsz overflow, Max bsz=2","request_bsz":3,"max_bsz":2})");
}

BOOST_AUTO_TEST_CASE(lists_of_raw_prompts) {
  const auto v2 = read(dialects::batch_v2, R"({"contents":["a","b"]})");
  BOOST_TEST(texts(v2) == (strings{"a", "b"}), boost::test_tools::per_element());
  BOOST_TEST(v2.pad_zero);
  BOOST_TEST(v2.chunk_size == 4u);
  BOOST_TEST(!v2.stream);
  BOOST_TEST(v2.lenient);
  BOOST_TEST(!read(dialects::batch_v2, R"({"contents":["a"],"pad_zero":false})").pad_zero);
  BOOST_TEST(!read(dialects::batch, R"({"contents":["a"],"pad_zero":true})").pad_zero);
  BOOST_TEST(texts(read(dialects::batch_v2, R"({"contents":["a"],"penalty_mode":"rapid"})")).size() == 1u);
  for (const char* mode : {R"("v2")", "2"}) {
    const auto no = refused(dialects::batch_v2, R"({"contents":["a"],"penalty_mode":)" + std::string(mode) + '}');
    BOOST_TEST(no.field == "penalty_mode");
  }
  BOOST_TEST(!read(dialects::batch, R"({"contents":["a"],"session_id":"s"})").session);
  for (const auto* as : {&dialects::batch, &dialects::batch_v2, &dialects::batch_v3, &dialects::big_batch})
    for (const char* empty : {"{}", R"({"contents":[]})"})
      BOOST_TEST(refused(*as, empty).message == "Empty prompts list");
  BOOST_TEST(refused(dialects::batch, R"({"contents":["a",7]})").field == "contents");
  BOOST_TEST(refused(dialects::batch, "{").message.starts_with("Invalid JSON: "));
  request_limits limits;
  limits.prompts_max = 5;
  const auto [as, many, refusal, ignored] =
      read_request(R"({"contents":["a","b","c"],"n":2})", dialects::batch, {}, limits);
  BOOST_TEST(many.error().field == "contents");
  BOOST_TEST(refusal == R"({"error":"bsz overflow, Max bsz=5","request_bsz":6,"max_bsz":5})");
  BOOST_TEST(refused(dialects::completions, R"({"prompt":["a","b","c"],"n":2})", limits).field == "prompt");
}

BOOST_AUTO_TEST_CASE(big_batches_have_a_temperature_and_no_more) {
  const auto r = read(dialects::big_batch, R"({"contents":["a"],"temperature":0.7,"top_k":1,"top_p":0,)"
                                           R"("alpha_presence":2,"noise":1.5})");
  BOOST_TEST(r.stream);
  BOOST_TEST(r.chunk_size == 32u);
  BOOST_TEST(r.sampling.temperature == 0.7f);
  BOOST_TEST(r.sampling.top_k == 0);
  BOOST_TEST(r.sampling.top_p == 1.0f);
  BOOST_TEST(r.sampling.first_penalty == 0.0f);
  BOOST_TEST(r.sampling.max_tokens == 512u);
  BOOST_TEST(!read(dialects::big_batch, R"({"contents":["a"],"stream":false})").stream);
  BOOST_TEST(read(dialects::big_batch, R"({"contents":["a"],"temperature":-3})").sampling.temperature == 0.0f);
}

BOOST_AUTO_TEST_CASE(noise_is_read_by_big_batches_alone_and_where_it_may_be) {
  const char* const body = R"({"contents":["a"],"temperature":0.7,"noise":1.5})";
  request_limits limits;
  BOOST_TEST(read(dialects::big_batch, body).sampling.noise == 0.0f);
  limits.noise = true;
  BOOST_TEST(read_request(body, dialects::big_batch, {}, limits).request.value().sampling.noise == 1.5f);
  BOOST_TEST(read_request(body, dialects::batch, {}, limits).request.value().sampling.noise == 0.0f);
  BOOST_TEST(read_request(R"({"contents":["a"]})", dialects::big_batch, {}, limits).request.value().sampling.noise ==
             0.0f);
  for (const char* bad : {R"({"contents":["a"],"noise":-1})", R"({"contents":["a"],"noise":"much"})"})
    BOOST_TEST(refused(dialects::big_batch, bad, limits).field == "noise");
}

BOOST_AUTO_TEST_CASE(what_is_not_read_of_a_body_is_named_where_that_is_wanted) {
  request_limits limits;
  limits.tells_ignored = true;
  const auto ignored = [&](const dialect& as, const std::string& body) {
    return read_request(body, as, {}, limits).ignored;
  };
  const char* const chat = R"({"messages":[],"temprature":1,"stream":false,"prompt":null,"password":"x","a\nb":0})";
  BOOST_TEST(ignored(dialects::chat_or_batch, chat) == (strings{"temprature", "prompt", "a\nb"}),
             boost::test_tools::per_element());
  BOOST_TEST(read_request(chat, dialects::chat_or_batch, {}, {}).ignored.empty());
  BOOST_TEST(ignored(dialects::big_batch, R"({"contents":["a"],"top_k":1})") == strings{"top_k"},
             boost::test_tools::per_element());
  BOOST_TEST(ignored(dialects::infer_chat, R"({"messages":[],"params":{"top_p":"1"},"x":1})") == strings{"x"},
             boost::test_tools::per_element());
  BOOST_TEST(ignored_fields_header(strings{"temprature", "a\r\nb: c", "é"}) == "temprature, a%0D%0Ab%3A%20c, %C3%A9");
  BOOST_TEST(ignored_fields_header(strings{std::string(70, 'x')}) == std::string(64, 'x'));
  BOOST_TEST(ignored_fields_header(strings(33, "y")).ends_with("y, y, ..."));
}

BOOST_AUTO_TEST_CASE(global_penalty_is_read_where_penalties_are) {
  const auto penalises = [](const dialect& as, const char* field) {
    const std::string body =
        std::string(R"({"messages":[{"role":"user","content":"a"}],"contents":["a"])") + field + "}";
    return read(as, body.c_str()).penalises_prompt;
  };
  for (const auto* as : {&dialects::infer_chat, &dialects::chat, &dialects::batch}) {
    BOOST_TEST(!penalises(*as, ""));
    BOOST_TEST(!penalises(*as, R"(,"global_penalty":false)"));
    BOOST_TEST(penalises(*as, R"(,"global_penalty":true)"));
  }
  BOOST_TEST(!penalises(dialects::big_batch, R"(,"global_penalty":true)"));

  model_preset preset;  // as /update-config leaves it
  preset.by_client.penalises_prompt = true;
  const auto by_preset = [&](const char* body) {
    return read_request(body, dialects::infer_chat, preset, {}).request.value().penalises_prompt;
  };
  BOOST_TEST(by_preset(R"({"messages":[{"role":"user","content":"a"}]})"));
  BOOST_TEST(!by_preset(R"({"messages":[{"role":"user","content":"a"}],"global_penalty":false})"));
}

BOOST_AUTO_TEST_CASE(questions_are_put_into_the_template) {
  const auto plain = read(dialects::batch_v3, R"({"contents":["One","Two"]})");
  BOOST_TEST(texts(plain) ==
                 (strings{"User: One\n\nAssistant: <think>\n</think>", "User: Two\n\nAssistant: <think>\n</think>"}),
             boost::test_tools::per_element());
  const auto thinking = read(dialects::batch_v3, R"({"contents":["One"],"enable_think":true})");
  BOOST_TEST(texts(thinking).at(0) == "User: One\n\nAssistant: <think");
  const auto chat = read(dialects::batch_v3, R"({"messages":[{"role":"user","content":"One"}]})");
  BOOST_TEST(chat.chat);
  BOOST_TEST(chat.messages.size() == 1u);
  BOOST_TEST(chat.style.no_think_opening == "Assistant: <think>\n</think>");
  BOOST_TEST(chat.reasoning_raw);
  BOOST_TEST(chat.writer->id({}) == "rwkv7-batch-v3");
}

BOOST_AUTO_TEST_CASE(what_editors_want_filled_in) {
  const auto r = read(dialects::infill, R"({"input_prefix":"int a = ","input_suffix":";\n","prompt":"4",)"
                                        R"("input_extra":[{"filename":"b.c","text":"int b;"}],"id_slot":0})");
  BOOST_TEST(texts(r) == (strings{"✿prefix✿✿suffix✿;\n✿middle✿int a = 4"}), boost::test_tools::per_element());
  BOOST_TEST(r.sampling.temperature == 0.8f);
  BOOST_TEST(r.sampling.top_k == 40);
  BOOST_TEST(r.sampling.max_tokens == 256u);
  BOOST_TEST(r.stop.empty());
  const auto with = [](const std::string& member) {
    return R"({"input_prefix":"a","input_suffix":"b",)" + member + '}';
  };
  BOOST_TEST(read(dialects::infill, with(R"("n_predict":7,"max_tokens":3)")).sampling.max_tokens == 7u);
  BOOST_TEST(read(dialects::infill, with(R"("n_predict":0)")).sampling.max_tokens == 0u);
  BOOST_TEST(read(dialects::infill, with(R"("n_predict":-1)")).sampling.max_tokens == request_limits{}.max_tokens_max);
  BOOST_TEST(read(dialects::infill, with(R"("temperature":0.1)")).sampling.top_k == 40);
  BOOST_TEST(refused(dialects::infill, R"({"input_suffix":"b"})").field == "input_prefix");
  BOOST_TEST(refused(dialects::infill, R"({"input_prefix":"a"})").field == "input_suffix");
  BOOST_TEST(refused(dialects::infill, R"({"input_prefix":"a","input_suffix":["b"]})").field == "input_suffix");
  BOOST_TEST(refused(dialects::infill, with(R"("prompt":[1,2])")).field == "prompt");
  BOOST_TEST(refused(dialects::infill, with(R"("n":2)")).field == "n");
  BOOST_TEST(read(dialects::infill, with(R"("grammar":"x")")).constraint.has_value());
}

BOOST_AUTO_TEST_CASE(what_was_filled_in_is_told_as_editors_know_it) {
  const auto r = read(dialects::infill, R"({"input_prefix":"a","input_suffix":"b"})");
  answer_head head;
  head.model = "m";
  const token_usage usage{.prompt_tokens = 9, .completion_tokens = 2, .cached_tokens = 4};
  const std::string numbers = R"("tokens_predicted":2,"tokens_evaluated":9,"tokens_cached":4,"truncated":false,)";
  const answer_end word{finish_reason::stop, std::string(";"), {}};
  BOOST_TEST(r.writer->body(head, {{.reasoning = {}, .content = "x", .logprobs = {}, .end = word}}, usage, nullptr) ==
             R"({"index":0,"content":"x","stop":true,"model":"m",)" + numbers +
                 R"("stop_type":"word","stopping_word":";"})");
  const row_delta delta{0, "", "x"};
  BOOST_TEST(r.writer->delta_events(head, {&delta, 1}) == "data: {\"index\":0,\"content\":\"x\",\"stop\":false}\n\n");
  const auto end_of = [&](const answer_end& end) {
    const auto before = r.writer->end_event(head, 0, end, nullptr);
    return before + r.writer->last_events(head, usage, nullptr);
  };
  const std::string last = R"(data: {"index":0,"content":"","stop":true,"model":"m",)" + numbers;
  BOOST_TEST(end_of({finish_reason::length, {}, {}}) == last + "\"stop_type\":\"limit\",\"stopping_word\":\"\"}\n\n");
  BOOST_TEST(end_of({finish_reason::stop, token_id{0}, {}}) ==
             last + "\"stop_type\":\"eos\",\"stopping_word\":\"\"}\n\n");
}

BOOST_AUTO_TEST_CASE(pairs_to_fill_in) {
  const auto r = read(dialects::fill_in, R"({"prefix":["a","b"],"suffix":["c","d"]})");
  BOOST_TEST(texts(r) == (strings{"✿prefix✿✿suffix✿c✿middle✿a", "✿prefix✿✿suffix✿d✿middle✿b"}),
             boost::test_tools::per_element());
  const auto e = refused(dialects::fill_in, R"({"prefix":["a","b"],"suffix":["c"]})");
  BOOST_TEST(e.field == "suffix");
  BOOST_TEST(e.message == "suffix has 1 entries, but prefix has 2; they must have the same number");
  BOOST_TEST(refused(dialects::fill_in, "{}").message == "Empty prompts list");
  BOOST_TEST(r.writer->body({}, {}, {}, nullptr).find(R"("object":"FIM.completion")") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(translations_are_cut_and_put_together_again) {
  const auto r =
      read(dialects::translate,
           R"({"source_lang":"en","target_lang":"ja","text_list":["One.\n\n \nTwo\nlines. ",""," Three."]})");
  BOOST_TEST(
      texts(r) ==
          (strings{"English: One.\n\nJapanese:", "English: Two\nlines.\n\nJapanese:", "English: Three.\n\nJapanese:"}),
      boost::test_tools::per_element());
  BOOST_TEST(r.stop == strings{"\n\nEnglish:"}, boost::test_tools::per_element());
  BOOST_TEST(r.sampling.top_k == 1);
  BOOST_TEST(r.sampling.max_tokens == 2048u);
  BOOST_TEST(!r.stream);
  std::vector<whole_row> rows(3);
  rows[0].content = " 一 \n";
  rows[1].content = "二";
  rows[2].content = "三 ";
  BOOST_TEST(r.writer->body({}, std::move(rows), {}, nullptr) ==
             R"({"translations":[{"detected_source_lang":"en","text":"一\n\n \n二"},)"
             R"({"detected_source_lang":"en","text":""},{"detected_source_lang":"en","text":"三"}]})");
}

BOOST_AUTO_TEST_CASE(translations_that_leave_things_open) {
  const auto r =
      read(dialects::translate, R"({"target_lang":"Latin","stream":true,"text_list":["Привет","你好","x"]})");
  BOOST_TEST(texts(r) == (strings{"Russian: Привет\n\nLatin:", "Chinese: 你好\n\nLatin:", "English: x\n\nLatin:"}),
             boost::test_tools::per_element());
  BOOST_TEST(!r.stream);
  BOOST_TEST(read(dialects::translate, R"({"target_lang":"en","text_list":[]})").prompts.empty());
  BOOST_TEST(refused(dialects::translate, R"({"text_list":["x"]})").field == "target_lang");
  BOOST_TEST(refused(dialects::translate, R"({"target_lang":"en"})").field == "text_list");
  BOOST_TEST(refused(dialects::translate, R"({"target_lang":"en","text_list":[1]})").field == "text_list");
  BOOST_TEST(refused(dialects::translate, R"({"target_lang":"en\n","text_list":["x"]})").field == "target_lang");
}

BOOST_AUTO_TEST_CASE(a_language_that_is_none_is_refused) {
  const auto ask = [](const std::string& source, const std::string& target) {
    return R"({"source_lang":")" + source + R"(","target_lang":")" + target + R"(","text_list":["x"]})";
  };
  for (const char* none : {"Klingon", "xx", "xx-XX", "12", "-", "auto", "the moon"})
    BOOST_TEST(refused(dialects::translate, ask("en", none)).field == "target_lang");
  for (const char* none : {"Klingon", "xx"})
    BOOST_TEST(refused(dialects::translate, ask(none, "en")).field == "source_lang");
  for (const char* good : {"de", "DE", "zh-CN", "zh_Hant", "pt-BR", "sw", "yue", "German", "german",
                           "Simplified Chinese", "Portuguese (Brazil)", "Chinese-Traditional"})
    (void)read(dialects::translate, ask("auto", good));
}

BOOST_AUTO_TEST_CASE(errors_and_foreign_fields_of_ai00) {
  for (const char* field : {"states", "embeds", "sampler_override", "template"})
    for (const auto* as : {&dialects::ai_chat, &dialects::ai_completions}) {
      const auto no = refused(*as, R"({"prompt":"x","messages":[{"role":"user","content":"x"}],")" +
                                       std::string(field) + R"(":{"id":"00000000-0000-0000-0000-000000000001"}})");
      BOOST_TEST((no.field == field && no.kind == error_kind::unsupported));
      BOOST_TEST((as->errors == error_style::flat));
    }
  (void)read(dialects::ai_completions, R"({"prompt":"x","states":[],"sampler_override":null})");
  BOOST_TEST((dialects::ai_choices.errors == error_style::flat));
}

BOOST_AUTO_TEST_CASE(languages) {
  for (const auto& [code, name] : std::vector<std::pair<std::string, std::string>>{{"zh-CN", "Chinese"},
                                                                                   {"zh_TW", "Chinese"},
                                                                                   {"zh-Hant", "Chinese"},
                                                                                   {"EN", "English"},
                                                                                   {"pt-BR", "Portuguese"},
                                                                                   {"ko", "Korean"},
                                                                                   {"Latin", "Latin"},
                                                                                   {"", ""}})
    BOOST_TEST(language_name(code) == name);
  for (const auto& [text, code] : std::vector<std::pair<std::string, std::string>>{{"Hello", "en"},
                                                                                   {"Grüße", "en"},
                                                                                   {"漢字かな", "ja"},
                                                                                   {"漢字", "zh-CN"},
                                                                                   {"Ein Wort 字", "en"},
                                                                                   {"안녕", "ko"},
                                                                                   {"Мир", "ru"},
                                                                                   {"سلام", "ar"},
                                                                                   {"", "en"},
                                                                                   {"123", "en"},
                                                                                   {"\xff\xe4", "en"}})
    BOOST_TEST(guess_language(text) == code);
}

BOOST_AUTO_TEST_CASE(values_as_texts_and_fields_inside_params) {
  const auto r = read(
      dialects::infer_chat,
      R"({"messages":[{"role":"rag","content":"R"},{"role":"user","content":"x"}],"max_tokens":"7","stream":"True",)"
      R"("temperature":"0.5","params":{"temperature":2,"top_p":"0.9","penalty_decay":0.99,"stop":"END",)"
      R"("user_name":"Bob","assistant_name":"Alice"}})");
  BOOST_TEST(r.sampling.max_tokens == 7u);
  BOOST_TEST(r.stream);
  BOOST_TEST(r.sampling.temperature == 0.5f);  // the outer one counts
  BOOST_TEST(r.sampling.top_p == 0.9f);
  BOOST_TEST(r.sampling.filters_first);
  BOOST_TEST(r.sampling.lasting_penalty == 0.5f);
  BOOST_TEST(r.sampling.first_penalty == 0.5f);
  BOOST_TEST(r.sampling.repeat_penalty == 0.5f);
  BOOST_TEST(r.sampling.penalty_decay == 0.99f);
  BOOST_TEST(r.stop.back() == "END");
  BOOST_TEST(r.style.user == "Bob");
  const std::string chat = R"({"messages":[{"role":"user","content":"x"}],)";
  BOOST_TEST(refused(dialects::infer_chat, chat + R"("params":{"top_p":"much"}})").field == "params.top_p");
  BOOST_TEST(refused(dialects::infer_chat, chat + R"("temperature":"1001"})").field == "temperature");
  BOOST_TEST(refused(dialects::infer_chat, chat + R"("max_tokens":"7x"})").field == "max_tokens");
  BOOST_TEST(refused(dialects::infer_chat, chat + R"("user_name":"a\nb"})").field == "user_name");
  BOOST_TEST(refused(dialects::chat, chat + R"("max_tokens":"7"})").field == "max_tokens");
  const auto spoken = read(dialects::infer_chat, R"({"messages":[{"role":"Assistant","content":"A"},{"role":"USER",)"
                                                 R"("content":" as it is","raw":true}]})");
  BOOST_TEST(spoken.messages[0].role == "assistant");
  BOOST_TEST((spoken.messages[1].role == "user" && spoken.messages[1].raw));
  BOOST_TEST(refused(dialects::chat, R"({"messages":[{"role":"User","content":"A"}]})").field == "messages[0].role");
  BOOST_TEST(!read(dialects::chat, R"({"messages":[{"role":"user","content":"A","raw":true}]})").messages[0].raw);
  BOOST_TEST(read(dialects::infer_chat, chat + R"("presystem":true})").messages.size() == 3u);
  BOOST_TEST(read(dialects::infer_chat, chat + R"("presystem":false})").messages.size() == 1u);
  const auto text = read(dialects::infer_completions, R"({"prompt":"x","params":{"max_tokens":3}})");
  BOOST_TEST(text.sampling.max_tokens == 3u);
  BOOST_TEST(text.stop.empty());
}

BOOST_AUTO_TEST_CASE(a_sampler_in_a_member_of_its_own) {
  const std::string chat = R"({"messages":[{"role":"user","content":"x"}],)";
  const auto r = read(dialects::ai_chat, chat + R"("sampler":{"type":"Nucleus","top_p":0.9,"temperature":"2"}})");
  BOOST_TEST(r.sampling.top_p == 0.9f);
  BOOST_TEST(r.sampling.temperature == 2.0f);
  BOOST_TEST(r.sampling.top_k == 128);
  BOOST_TEST(r.sampling.max_tokens == 256u);
  BOOST_TEST(r.sampling.filters_first);
  BOOST_TEST((r.stop == std::vector<std::string>{"\n\n"}));
  const auto other = refused(dialects::ai_chat, chat + R"("sampler":{"type":"Mirostat"}})");
  BOOST_TEST((other.kind == error_kind::unsupported && other.field == "sampler.type"));
  BOOST_TEST(refused(dialects::ai_completions, R"({"prompt":"x","sampler":{"type":"Typical"}})").field ==
             "sampler.type");
}

BOOST_AUTO_TEST_CASE(names_biases_and_stops_of_ai00) {
  const std::string chat = R"({"messages":[{"role":"user","content":"x"}],)";
  const auto r = read(dialects::ai_chat, chat + R"("names":{"User":"Bob","assistant":"Alice"},"bias":{"5":2.5},)"
                                                R"("stop":["\n\nBob:"]})");
  BOOST_TEST((r.style.user == "Bob" && r.style.assistant == "Alice" && r.style.system == "System"));
  BOOST_TEST(r.stop == strings{"\n\nBob:"}, boost::test_tools::per_element());  // in place of the blank line
  BOOST_REQUIRE_EQUAL(r.sampling.logit_bias.size(), 1u);
  BOOST_TEST(r.sampling.logit_bias[0].token == 5);
  BOOST_TEST(r.sampling.logit_bias[0].bias == 2.5f);
  BOOST_TEST(read(dialects::chat, chat + R"("bias":{"5":2.5}})").sampling.logit_bias.empty());
  BOOST_TEST(refused(dialects::ai_chat, chat + R"("names":{"user":"a\nb"}})").field == "names.user");
  BOOST_TEST(refused(dialects::ai_chat, chat + R"("bias":{"5":101}})").field == "bias.5");
  BOOST_TEST(
      (refused(dialects::ai_completions, R"({"prompt":"x","template":{"sep":"|"}})").kind == error_kind::unsupported));
}

BOOST_AUTO_TEST_CASE(choices_are_ranked_by_their_cost) {
  const auto& as = dialects::ai_choices;
  const auto plain = read(as, R"({"input":["In ","a"],"choices":[" b","cd"],"max_tokens":9,"stream":true})");
  BOOST_TEST(texts(plain) == (strings{"In a b", "In acd"}), boost::test_tools::per_element());
  BOOST_TEST((plain.echo && plain.sampling.logprobs && plain.sampling.max_tokens == 0 && !plain.stream));
  BOOST_TEST(!plain.pad_zero);
  BOOST_TEST(plain.prompts.at(0).text == " b");  // the input is kept once: the product may be larger than any memory
  const auto alone = read(as, R"({"input":"In","choices":["b","cd"],"calibrate":true})");
  BOOST_TEST(texts(alone) == (strings{"Inb", "Incd", "b", "cd"}), boost::test_tools::per_element());
  BOOST_TEST((alone.pad_zero && read(as, R"({"choices":["b"]})").pad_zero));

  const auto row = [](std::vector<logprob_entry> scored) {
    whole_row r;
    r.logprobs = std::move(scored);
    return r;
  };
  const auto ranked = [](const generation_request& request, std::vector<whole_row> rows) {
    return request.writer->body({.model = "m"}, std::move(rows), {}, nullptr);
  };
  const auto told = ranked(plain, {row({{"In ", {}}, {"a", -9.0f}, {" b", -3.0f}}),
                                   row({{"In ", {}}, {"a", -9.0f}, {"c", -1.0f}, {"d", -2.0f}})});
  BOOST_TEST(told.starts_with(
      R"({"object":"list","model":"m","data":[{"object":"choice","index":1,"rank":0,"choice":"cd","perplexity":1.5},)"
      R"({"object":"choice","index":0,"rank":1,"choice":" b","perplexity":3}],"usage":{)"));
  const auto fair =
      ranked(alone, {row({{"b", -3.0f}}), row({{"cd", -2.0f}}), row({{"b", -8.0f}}), row({{"cd", -2.5f}})});
  BOOST_TEST(fair.find(R"("index":0,"rank":0,"choice":"b","perplexity":-5)") != std::string::npos);

  for (const char* body :
       {R"({"input":"x"})", R"({"input":"x","choices":[]})", R"({"choices":["a",""]})", R"({"choices":["a",1]})"})
    BOOST_TEST(refused(as, body).field == "choices");
  BOOST_TEST(refused(as, R"({"input":[1],"choices":["a"]})").field == "input");
}

BOOST_AUTO_TEST_CASE(what_a_client_made_the_defaults) {
  model_preset preset;
  preset.by_client.temperature = 0.0f;
  preset.by_client.top_p = 0.25f;
  preset.by_client.frequency = 1.5f;
  preset.by_client.max_tokens = 5;
  preset.by_client.end_text = "END";
  const auto made = [&](const dialect& as) {
    const auto found = read_request(R"({"messages":[{"role":"user","content":"x"}],"contents":[]})", as, preset, {});
    return *found.request;
  };
  for (const auto* as : {&dialects::chat, &dialects::infer_chat}) {
    const auto r = made(*as);
    BOOST_TEST((r.sampling.temperature == 0.0f && r.sampling.top_p == 0.25f && r.sampling.repeat_penalty == 1.5f));
    BOOST_TEST(r.sampling.max_tokens == 5u);
    BOOST_TEST(r.stop == strings{"END"}, boost::test_tools::per_element());
  }
  const auto native = read_request(R"({"contents":["x"]})", dialects::batch, preset, {});
  BOOST_TEST(native.request->sampling.temperature == 1.0f);
}

BOOST_AUTO_TEST_CASE(tuned_states_in_the_words_of_others) {
  const auto named = [](const std::string& members) {
    const auto r = read(dialects::batch, R"({"contents":["x"],)" + members + "}");
    return r.state_name + " by " + std::string(r.state_field);
  };
  BOOST_TEST(named(R"("state":"poet")") == "poet by state");
  BOOST_TEST(named(R"("state":"a/poet.pth","state_name":"other")") == "other by state_name");
  for (const char* none : {R"("state":"")", R"("state":null)", R"("state":"00000000-0000-0000-0000-000000000000")"})
    BOOST_TEST(named(none).starts_with(" by "));
  for (const char* wrong : {R"({"contents":["x"],"state":{"id":"x"}})", R"({"contents":["x"],"state":7})"})
    BOOST_TEST(refused(dialects::batch, wrong).field == "state");
}

BOOST_AUTO_TEST_CASE(a_conversation_without_text) {
  const auto& as = dialects::spoken_chat;
  for (const char* body : {"{}", R"({"messages":[]})", R"({"messages":[{"role":"user","content":""}]})",
                           R"({"messages":[{"role":"user","content":null}]})", R"({"messages":[],"session_id":"s"})",
                           R"({"contents":[""]})"})
    BOOST_TEST(refused(as, body).message == "Empty prompt");
  BOOST_TEST(read(as, R"({"contents":["x"]})").messages.size() == 1u);
  BOOST_TEST(read(as, R"({"session_id":"s","continue":true})").session->go_on);
  BOOST_TEST(refused(as, R"({"contents":["x","y"],"session_id":"s"})").message ==
             "State mode only supports a single contents item");
  BOOST_TEST(refused(as, R"({"contents":["x","y"]})").field == "contents");
}

BOOST_AUTO_TEST_CASE(no_opening_of_an_answer_and_stops_that_are_shown) {
  const std::string chat = R"({"messages":[{"role":"user","content":"x"}])";
  BOOST_TEST(read(dialects::chat, chat + "}").style.opens_answer);
  BOOST_TEST(!read(dialects::chat, chat + R"(,"add_generation_prompt":false})").style.opens_answer);
  BOOST_TEST(refused(dialects::chat, chat + R"(,"add_generation_prompt":false,"session_id":"a"})").field ==
             "add_generation_prompt");
  BOOST_TEST(!read(dialects::chat, chat + "}").shows_stop);
  BOOST_TEST(read(dialects::chat, chat + R"(,"include_stop_str_in_output":true})").shows_stop);
}

BOOST_AUTO_TEST_SUITE_END()
