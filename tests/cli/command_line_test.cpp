// Shows that the command line, old spellings included, becomes the right plain values; by parsing it, without running
// anything. Values of settings are followed through config::load, where spellings meet their keys.
#include "cli/command_line.hpp"

#include <boost/test/unit_test.hpp>
#include <functional>

namespace {

using namespace skein;
using words = std::vector<std::string>;

template <typename Command>
Command parsed(const words& arguments) {
  const auto command = cli::parse_command_line(arguments);
  BOOST_REQUIRE_MESSAGE(command, command.error().message);
  BOOST_REQUIRE(std::holds_alternative<Command>(*command));
  return std::get<Command>(*command);
}

config::config settings_of(const words& flags) {
  words arguments{"serve"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const auto merged = config::load(parsed<cli::serve_command>(arguments).configuration);
  for (const auto& fault : merged.faults) BOOST_ERROR(config::to_string(fault));
  return merged.settings;
}

std::string refusal(const words& arguments) {
  const auto command = cli::parse_command_line(arguments);
  BOOST_REQUIRE(!command);
  BOOST_TEST(to_string(command.error().kind) == "invalid_argument");
  return command.error().message;
}

}  // namespace

BOOST_AUTO_TEST_CASE(serve_flags_set_their_keys) {
  const auto c =
      settings_of({"--model",     "m.pth", "--model-name",  "demo",  "--vocab",      "bytes", "--device", "cpu",
                   "--dtype",     "bf16",  "--state-dtype", "fp16",  "--host",       "::1",   "--port",   "9",
                   "--state-dir", "/s",    "--log-level",   "debug", "--invariance", "strict"});
  BOOST_TEST(c.model.path == "m.pth");
  BOOST_TEST(c.model.name == "demo");
  BOOST_TEST(c.model.vocab == "bytes");
  BOOST_TEST(c.engine.device == "cpu");
  BOOST_TEST(c.engine.dtype == "bf16");
  BOOST_TEST(c.engine.state_dtype == "fp16");
  BOOST_TEST(c.engine.invariance == "strict");
  BOOST_TEST(c.server.host == "::1");
  BOOST_TEST(c.server.port == 9u);
  BOOST_TEST(c.server.state_dir == "/s");
  BOOST_TEST(c.log.level == "debug");
}

BOOST_AUTO_TEST_CASE(spellings_of_earlier_servers) {
  using check_of = std::function<bool(const config::config&)>;
  using config::config;
  const std::vector<std::pair<words, check_of>> rows{
      {{"--model-path", "m"}, [](const config& c) { return c.model.path == "m"; }},
      {{"--password", "secret"}, [](const config& c) { return c.server.password == "secret"; }},
      {{"--pp-devices", "[0,1,2,3]"}, [](const config& c) { return c.engine.device == "cuda:0"; }},
      {{"--pp-devices=[2]"}, [](const config& c) { return c.engine.device == "cuda:2"; }},
      {{"--inference-engine", "fp16"}, [](const config& c) { return c.engine.dtype == "fp16"; }},
      {{"--inference-engine", "gemlite"}, [](const config& c) { return c.engine.dtype == "int8"; }},
      {{"--inference-engine=cutlass"}, [](const config& c) { return c.engine.dtype == "int8"; }},
      {{"--localhost", "0.0.0.0"}, [](const config& c) { return c.server.host == "0.0.0.0"; }},
      {{"--port", "9000"}, [](const config& c) { return c.server.port == 9000; }},
      {{"--debug", "False"}, [](const config& c) { return c.log.level == "info"; }},
      {{"--debug", "True"}, [](const config& c) { return c.log.level == "debug"; }},
      {{"--debug=1"}, [](const config& c) { return c.log.level == "debug"; }},
      {{"--debug", "--port", "1"}, [](const config& c) { return c.log.level == "debug" && c.server.port == 1; }},
      {{"--workers", "64"}, [](const config& c) { return c.server.io_threads == 64; }},
      {{"--dynamic_state_cache_size", "512"}, [](const config& c) { return c.engine.slots == 512; }},
      {{"--mrssmax", "5"}, [](const config& c) { return c.limits.mixture_max == 5; }},
      {{"--vocab-path", "v.txt"}, [](const config& c) { return c.model.vocab == "v.txt"; }},
      {{"--host", "::1"}, [](const config& c) { return c.server.host == "::1"; }},
      {{"--chunk-size", "128"}, [](const config& c) { return c.engine.prefill_chunk_tokens == 128; }},
      {{"--chunk-size=300", "--max-tick-tokens", "900"},
       [](const config& c) { return c.engine.prefill_chunk_tokens == 300 && c.engine.max_tick_tokens == 900; }},
      {{"--state-db-path", "/db"}, [](const config& c) { return c.server.state_dir == "/db"; }},
      {{"--wkv32"}, [](const config& c) { return c.engine.state_dtype == "fp32"; }},
      {{"--chunk-load", "--port", "2"}, [](const config& c) { return c.server.port == 2; }},
      {{"--enable-dynamic-loading", "--port", "2"}, [](const config& c) { return c.server.port == 2; }},
      {{"--webui", "--rwkv-beta", "--port", "2"}, [](const config& c) { return c.server.port == 2; }},
  };
  for (auto [flags, right] : rows) {
    if (flags[0] == "--localhost") flags.emplace_back("--allow-unauthenticated");
    BOOST_TEST(right(settings_of(flags)), flags[0] + ' ' + flags.back());
  }
}

BOOST_AUTO_TEST_CASE(what_an_old_flag_does_not_get_is_said) {
  const auto remarks = [](const words& flags) { return parsed<cli::serve_command>(flags).remarks; };
  BOOST_TEST(remarks({"serve", "--pp-devices", "[0]", "--debug"}).empty());
  const auto several = remarks({"serve", "--pp-devices", "[1,2]"});
  BOOST_REQUIRE_EQUAL(several.size(), 1u);
  BOOST_TEST(several[0] == "--pp-devices: a model runs on one GPU only; using cuda:1");
}

BOOST_AUTO_TEST_CASE(an_old_flag_with_a_bad_value_is_refused) {
  for (const words& flags : {words{"--pp-devices", "[a]"}, words{"--pp-devices", "[]"}, words{"--pp-devices"},
                             words{"--inference-engine", "fast"}, words{"--mrssmax"}}) {
    words arguments{"serve"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    BOOST_TEST(refusal(arguments).find(flags[0]) != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(set_reaches_every_key) {
  const auto c = settings_of({"--set", "limits.n_max=7", "--set", "models.rwkv7-1.5b.top_p=0.25"});
  BOOST_TEST(c.limits.n_max == 7u);
  BOOST_TEST(c.models.at("rwkv7-1.5b").top_p == 0.25);
  BOOST_TEST(refusal({"serve", "--set", "limits.n_max"}).find("KEY=VALUE") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_repeated_flag_counts_with_its_last_value) {
  BOOST_TEST(settings_of({"--port", "1", "--port", "2"}).server.port == 2u);
}

BOOST_AUTO_TEST_CASE(no_flag_takes_a_number_that_is_none_or_has_no_end) {
  const words generate{"generate", "--model", "m", "--prompt", "x"}, engine{"bench", "engine", "--model", "m"},
      serve{"bench", "serve"};
  const std::pair<words, words> commands[] = {
      {generate, {"--temperature", "--top-p", "--top-k", "--max-tokens", "--seed"}},
      {engine, {"--seconds", "--temperature", "--batches"}},
      {serve,
       {"--request-rate", "--timeout", "--input-mean", "--input-sigma", "--output-mean", "--output-sigma",
        "--num-prompts", "--concurrency", "--seed"}}};
  for (const auto& [command, flags] : commands)
    for (const auto& flag : flags)
      for (const char* value : {"nan", "-nan", "NaN", "nan(1)", "inf", "-inf", "1e999", "0.5x", ""}) {
        words all = command;
        all.push_back(flag + '=' + value);
        BOOST_TEST_CONTEXT(flag << ' ' << value)
        BOOST_TEST(refusal(all).find(flag) != std::string::npos);
      }
}

BOOST_AUTO_TEST_CASE(a_seed_out_of_range_is_not_another_seed) {
  for (const words& command : {words{"generate", "--model", "m", "--prompt", "x"}, words{"bench", "serve"}})
    for (const char* seed : {"-1", "18446744073709551616", "99999999999999999999999", "0x1", "1.5"}) {
      words all = command;
      all.insert(all.end(), {"--seed", seed});
      BOOST_TEST(refusal(all).find("--seed: " + std::string(seed) + " is out of range (0 to ") != std::string::npos,
                 refusal(all));
    }
}

BOOST_AUTO_TEST_CASE(generate_takes_one_prompt) {
  const words model{"generate", "--model", "m"};
  const auto with = [&](const words& more) {
    words all = model;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const auto text =
      parsed<cli::generate_command>(with({"--prompt", "[a,b]", "--max-tokens", "5", "--temperature", "0.5", "--top-k",
                                          "3", "--top-p", "0.9", "--seed", "18446744073709551615"}));
  BOOST_TEST(std::get<std::string>(text.prompt) == "[a,b]");
  BOOST_TEST(text.max_tokens == 5u);
  BOOST_TEST(text.sampling.temperature == 0.5f);
  BOOST_TEST(text.sampling.top_k == 3);
  BOOST_TEST(text.sampling.top_p == 0.9f);
  BOOST_TEST(text.sampling.seed == ~0ull);
  BOOST_TEST(text.seed_given);
  BOOST_TEST(std::get<std::string>(parsed<cli::generate_command>(with({"--prompt", "-x"})).prompt) == "-x");
  const auto tokens = parsed<cli::generate_command>(with({"--tokens", "1, 2,3", "--show-tokens"}));
  BOOST_TEST(std::get<std::vector<token_id>>(tokens.prompt) == (std::vector<token_id>{1, 2, 3}),
             boost::test_tools::per_element());
  BOOST_TEST(tokens.show_tokens);
  BOOST_TEST(!tokens.seed_given);
  refusal(with({}));
  refusal(with({"--prompt", "a", "--tokens", "1"}));
  refusal(with({"--tokens", "1,x"}));
  refusal(with({"--prompt", "a", "--max-tokens", "0"}));
  BOOST_TEST(parsed<cli::generate_command>({"generate", "--prompt", "a"}).model.path.empty());
}

BOOST_AUTO_TEST_CASE(logits_names_its_files) {
  const auto what =
      parsed<cli::logits_command>({"logits", "--model", "m", "--device", "cpu", "--dtype", "fp32", "--tokens-file",
                                   "ids", "--chunk", "7", "--state-in", "i", "--state-out", "s", "--out", "f"});
  BOOST_TEST(what.model.path == "m");
  BOOST_TEST(what.model.dtype == "fp32");
  BOOST_TEST(what.tokens_file == "ids");
  BOOST_TEST(what.chunk_tokens == 7u);
  BOOST_TEST(what.state_in == "i");
  BOOST_TEST(what.state_out == "s");
  BOOST_TEST(what.out == "f");
  refusal({"logits", "--model", "m", "--tokens-file", "ids"});
}

BOOST_AUTO_TEST_CASE(the_remaining_commands) {
  BOOST_TEST(parsed<cli::tokenize_command>({"tokenize", "--vocab", "bytes", "--ids"}).ids);
  BOOST_TEST(parsed<cli::inspect_command>({"inspect", "m.pth"}).path == "m.pth");
  BOOST_TEST(parsed<cli::inspect_command>({"inspect"}).path.empty());
  const auto bench =
      parsed<cli::bench_engine_command>({"bench", "engine", "--random", "0.4b", "--json", "f", "--batches", "1,32",
                                         "--prefill", "1x512,32x128", "--state-dtype", "fp16", "--invariance", "fast"});
  BOOST_TEST(bench.random_size == "0.4b");
  BOOST_TEST(bench.json == "f");
  BOOST_TEST(bench.model.state_dtype == "fp16");
  BOOST_TEST(bench.model.invariance == "fast");
  BOOST_TEST((bench.batches == std::vector<std::uint32_t>{1, 32}));
  BOOST_REQUIRE(bench.prefill.size() == 2u);
  BOOST_TEST(bench.prefill[1].sequences == 32u);
  BOOST_TEST(bench.prefill[1].tokens == 128u);
  for (const char* shape : {"512", "1x", "x1", "0x4", "1x2x3", "65536x65536"})
    refusal({"bench", "engine", "--random", "0.4b", "--prefill", shape});
  refusal({"bench", "engine", "--random", "0.4b", "--batches", "0"});

  const auto serve = parsed<cli::bench_serve_command>({"bench", "serve", "--url", "http://h:1", "--request-rate", "4",
                                                       "--num-prompts", "1200", "--input-len", "9", "--output-mean",
                                                       "50", "--output-sigma", "0.1", "--seed", "7", "--timeout", "3"});
  BOOST_TEST(serve.url == "http://h:1");
  BOOST_TEST(serve.plan.rate == 4);
  BOOST_TEST(serve.plan.prompts == 1200u);
  BOOST_TEST(serve.plan.input.fixed == 9u);
  BOOST_TEST(serve.plan.output.fixed == 0u);
  BOOST_TEST(serve.plan.output.mean == 50);
  BOOST_TEST(serve.plan.output.sigma == 0.1);
  BOOST_TEST(serve.plan.seed == 7u);
  BOOST_TEST(serve.timeout_s == 3);
  refusal({"bench", "serve", "--request-rate", "0"});
  refusal({"bench", "serve", "--concurrency", "-1"});
  refusal({"bench", "serve", "--input-len", "0"});
  refusal({"bench", "serve", "--output-mean", "0.5"});
  refusal({"bench", "serve", "--url", "http://h", "--unix-socket", "s"});
  refusal({"bench", "serve", "--chat", "--vocab-size", "9"});
  refusal({"bench", "engine", "--random", "0.4b", "--model", "m"});
  BOOST_TEST(parsed<cli::check_config_command>({"check-config", "--config", "f"}).configuration.file == "f");
  refusal({});
  refusal({"no-such-command"});
}

BOOST_AUTO_TEST_CASE(an_empty_path_does_not_choose_the_demo_model) {
  for (const words& command : {words{"inspect", ""}, words{"convert", "", "out"}, words{"convert", "in", ""},
                               words{"score", "--model", "", "text"}, words{"generate", "--prompt", "x", "--model", ""},
                               words{"logits", "--tokens-file", "i", "--out", "o", "--model", ""}})
    BOOST_TEST(refusal(command).find(": must not be empty") != std::string::npos, command.front());
}

/// These commands search no folder of a model, and not the current one.
BOOST_AUTO_TEST_CASE(help_says_where_a_vocabulary_is_searched) {
  for (const char* name : {"tokenize", "grammar"}) {
    std::string text = parsed<cli::print_text>({name, "--help"}).text;
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
    BOOST_TEST(text.find("default:searchedin$SKEIN_DATA_DIRand/usr/share/skein") != std::string::npos, text);
  }
}

BOOST_AUTO_TEST_CASE(help_of_each_command_and_version_are_texts) {
  for (const char* name : {"serve", "generate", "logits", "tokenize", "inspect", "check-config"})
    BOOST_TEST(parsed<cli::print_text>({name, "--help"}).text.find(name) != std::string::npos);
  BOOST_TEST(parsed<cli::print_text>({"bench", "engine", "--help"}).text.find("--random") != std::string::npos);
  BOOST_TEST(parsed<cli::print_text>({"--help"}).text.find("check-config") != std::string::npos);
  BOOST_TEST(parsed<cli::print_text>({"--version"}).text.starts_with("skein "));
}
