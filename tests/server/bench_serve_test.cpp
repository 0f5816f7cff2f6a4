// `skein bench serve` against a server with the fake engine: what it reports is what the server counted, by rate, by
// concurrency, over a unix socket, and when requests or the whole server fail. Nothing here measures time.
#include <simdjson.h>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <string>
#include <vector>

#include "tests/cli/run_skein.hpp"
#include "tests/server/server_process.hpp"
#include "tests/support/oracle.hpp"

using namespace skein::test;

namespace {

struct bench_run {
  outcome ended;
  simdjson::dom::element figures;
};

/// Runs the load tool and reads its JSON.
class load_tool {
 public:
  bench_run run(std::vector<std::string> arguments) {
    const std::string file = folder_.path() / "figures.json";
    arguments.insert(arguments.begin(), {"bench", "serve", "--json", file});
    bench_run made{run_skein(arguments), {}};
    BOOST_TEST_MESSAGE(made.ended.out << made.ended.err);
    text_ = simdjson::padded_string(skein::test::content_of(file));
    BOOST_REQUIRE(parser_.parse(text_).at_key("figures").get(made.figures) == simdjson::SUCCESS);
    return made;
  }
  [[nodiscard]] std::string socket() const { return folder_.path() / "skein.sock"; }

 private:
  temporary_folder folder_;
  simdjson::padded_string text_;
  simdjson::dom::parser parser_;
};

std::uint64_t number(const bench_run& run, const char* name) { return run.figures[name].get_uint64().value(); }

}  // namespace

BOOST_AUTO_TEST_CASE(counts_are_those_of_the_server) {
  load_tool tool;
  server_process server(SKEIN_PROGRAM, {"--device", "fake", "--unix-socket", tool.socket()});
  const std::string url = "http://127.0.0.1:" + std::to_string(server.port());

  const auto burst = tool.run({"--url", url, "--num-prompts", "300", "--input-len", "32", "--output-len", "16"});
  BOOST_TEST(burst.ended.exit_code == 0);
  BOOST_TEST(burst.ended.out.find("300 completed, 0 failed") != std::string::npos);
  BOOST_TEST(number(burst, "completed") == 300u);
  BOOST_TEST(number(burst, "failed") == 0u);
  BOOST_TEST(number(burst, "input_tokens") == 300u * 32);
  BOOST_TEST(number(burst, "output_tokens") == 300u * 16);
  BOOST_TEST(server.counters().generated == 300u * 16);
  BOOST_TEST(server.counters().finished == 300u);

  const auto few = tool.run(
      {"--url", url, "--num-prompts", "100", "--input-len", "5", "--output-len", "9", "--concurrency", "7", "--chat"});
  BOOST_TEST(number(few, "completed") == 100u);
  BOOST_TEST(number(few, "output_tokens") == 100u * 9);
  BOOST_TEST(number(few, "most_at_once") == 7u);

  const auto rated = tool.run({"--unix-socket", tool.socket(), "--num-prompts", "200", "--request-rate", "500"});
  BOOST_TEST(number(rated, "completed") == 200u);
  BOOST_TEST(server.counters().finished == 600u);
  // A chat may have drawn up to eight tokens more: those that close the template's think tag do not count.
  const auto counted = 300u * 16 + 100u * 9 + number(rated, "output_tokens");
  BOOST_TEST(server.counters().generated >= counted);
  BOOST_TEST(server.counters().generated <= counted + 100u * 8);
}

BOOST_AUTO_TEST_CASE(failures_are_counted_by_what_went_wrong) {
  load_tool tool;
  server_process server(SKEIN_PROGRAM, {"--device", "fake", "--set", "limits.prompt_tokens_max=100"});
  const std::string url = "http://127.0.0.1:" + std::to_string(server.port());
  const auto mixed = tool.run({"--url", url, "--num-prompts", "200", "--input-mean", "100", "--output-len", "3"});
  BOOST_TEST(mixed.ended.exit_code == 0);
  BOOST_TEST(number(mixed, "completed") + number(mixed, "failed") == 200u);
  BOOST_TEST(number(mixed, "completed") > 0u);
  BOOST_TEST(mixed.figures["failures"]["status 400"].get_uint64().value() == number(mixed, "failed"));
  BOOST_TEST(number(mixed, "output_tokens") == number(mixed, "completed") * 3);

  server.signal(SIGKILL);
  (void)server.wait_for_exit();
  const auto none = tool.run({"--url", url, "--num-prompts", "3"});
  BOOST_TEST(none.ended.exit_code == 69);
  BOOST_TEST(number(none, "failed") == 3u);
}
