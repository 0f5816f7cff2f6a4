// Shows that the bench counts what a tick costs as performance work does it: known sizes of a released model, and
// shares of made-up samples.
#include "cli/bench/bench_report.hpp"

#include <boost/test/unit_test.hpp>

using namespace skein;

namespace {

/// The released 7.2B model.
model::model_info large() {
  model::model_info info;
  info.layers = 32, info.embd = 4096, info.ffn = 16384, info.vocab = 65536, info.heads = 64, info.head_size = 64;
  info.parameters = 7199141888;
  info.state = {info.layers, info.embd, info.heads, info.head_size};
  return info;
}

cli::bench_case made_up(const char* kind, std::uint32_t sequences, std::uint32_t tokens, std::vector<double> seconds) {
  cli::bench_case made{kind, sequences, tokens, 1, {}};
  for (const double s : seconds) made.samples.push_back({s, {4e12, 800e12}});
  return made;
}

}  // namespace

BOOST_AUTO_TEST_CASE(costs_of_a_released_model) {
  const cli::tick_cost fp32(large(), "fp16", 0, "fp32"), fp16(large(), "fp16", 0, "fp16");
  const auto one = made_up("decode", 1, 1, {}), many = made_up("decode", 320, 1, {});
  const auto prompt = made_up("prefill", 1, 1024, {});
  BOOST_TEST(fp32.weight_bytes(one) == 13.861e9, boost::test_tools::tolerance(1e-3));
  BOOST_TEST(fp32.weight_bytes(many) == 13.861e9, boost::test_tools::tolerance(1e-3));
  BOOST_TEST(fp32.state_bytes(one) == 2 * (33.55e6 + 1.05e6), boost::test_tools::tolerance(1e-3));
  BOOST_TEST(fp16.state_bytes(many) == 320 * 2 * (16.78e6 + 0.52e6), boost::test_tools::tolerance(1e-3));
  BOOST_TEST(fp32.flop(one) == 13.86e9, boost::test_tools::tolerance(1e-3));
  BOOST_TEST(fp32.flop(many) == 320 * 13.86e9, boost::test_tools::tolerance(1e-3));
  BOOST_TEST(fp32.flop(prompt) == 1024 * 13.32e9 + 0.537e9, boost::test_tools::tolerance(1e-3));
  BOOST_TEST(fp32.state_bytes(prompt) == fp32.state_bytes(one));
}

BOOST_AUTO_TEST_CASE(states_of_version_4_are_vectors) {
  model::model_info info;
  info.version = model::rwkv_version::v4;
  info.layers = 40, info.embd = info.att = 5120, info.vocab = 65536;
  info.state = {.layers = info.layers, .embd = info.embd, .channels = info.att};
  const cli::tick_cost cost(info, "bf16", 0, "fp32");
  BOOST_TEST(cost.state_bytes(made_up("decode", 3, 1, {})) == 3 * 2 * 40 * 5 * 5120 * 4.0);
}

BOOST_AUTO_TEST_CASE(quantised_weights_cost_what_they_take_in_memory) {
  const cli::tick_cost cost(large(), "nf4", 1'000'000, "fp32");
  BOOST_TEST(cost.weight_bytes(made_up("decode", 3, 1, {})) == 1'000'000 + 2.0 * 3 * large().embd);
}

BOOST_AUTO_TEST_CASE(shares_are_of_the_limits_beside_each_sample) {
  const cli::tick_cost cost(large(), "fp16", 0, "fp32");
  auto decode = made_up("decode", 1, 1, {0.004, 0.008, 0.005});
  const auto rates = cli::rates_of(decode, cost);
  BOOST_TEST(rates.tick_s == 0.005);
  BOOST_TEST(rates.fastest_s == 0.004);
  BOOST_TEST(rates.slowest_s == 0.008);
  BOOST_TEST(rates.tokens_per_s == 200.0);
  const double bytes = cost.weight_bytes(decode) + cost.state_bytes(decode);
  BOOST_TEST(rates.share_of_read == bytes / 0.005 / 4e12, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(rates.share_of_least == bytes / 4e12 / 0.005, boost::test_tools::tolerance(1e-9));

  decode.samples[2].limits.read_bytes_per_s = 8e12;  // a machine that was twice as fast for one sample
  BOOST_TEST(cli::rates_of(decode, cost).share_of_read == bytes / 0.008 / 4e12, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(the_least_time_hides_products_or_weights_and_adds_states) {
  const cli::tick_cost cost(large(), "fp16", 0, "fp16");
  const auto many = made_up("decode", 960, 1, {0.03});
  const double expected = cost.flop(many) / 800e12 + cost.state_bytes(many) / 4e12;
  BOOST_TEST(cost.least_s(many, {4e12, 800e12}) == expected, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(cost.least_s(many, {}) == 0.0);
}

BOOST_AUTO_TEST_CASE(moves_of_states_are_told_as_shares_of_a_copy) {
  cli::bench_report report{
      "m", {}, "fp32", "default", "nothing", 0, 0.1, 1.0, cli::tick_cost(large(), "fp16", 0, "fp32"), {}};
  BOOST_TEST(cli::json_of(report).find("states\"") == std::string::npos);
  report.states = {
      8'000'000, 4, {{1e-3, 2e-3, 4e-3, 5e-3, 6e-3}, {2e-3, 2e-3, 2e-3, 1e-3, 1e-3}, {1e-3, 4e-3, 5e-3, 7e-3, 7e-3}}};
  const auto rates = cli::rates_of(report.states);
  BOOST_TEST(rates.copy_bytes_per_s == 8e9, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(rates.in_bytes_per_s == 4e9, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(rates.share_in == 0.5, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(rates.share_out == 0.25, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(rates.alone_out_s == 6e-3);
  const auto table = cli::table_of(report);
  BOOST_TEST(table.find("8.00 MB, 4 together") != std::string::npos, table);
  BOOST_TEST(table.find(" 50.0 % of the copy") != std::string::npos, table);
  BOOST_TEST(cli::json_of(report).find("\"share_out\":0.25") != std::string::npos, cli::json_of(report));
  BOOST_TEST(table.find("parked") == std::string::npos, table);
  report.states.parked = 320, report.states.park_s = 0.5, report.states.resume_s = 0.25;
  BOOST_TEST(cli::table_of(report).find("320 sequences: parked in 0.500 s, resumed in 0.250 s") != std::string::npos);
  BOOST_TEST(cli::json_of(report).find("\"parked\":320,\"park_s\":0.5,\"resume_s\":0.25") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_is_not_known_is_not_told) {
  cli::bench_report report{
      "m", {}, "fp32", "default", "nothing", 0, 0.1, 1.0, cli::tick_cost(large(), "fp16", 0, "fp32"), {}};
  report.cases.push_back(made_up("decode", 1, 1, {0.5}));
  report.cases[0].samples[0].limits = {};
  const auto json = cli::json_of(report);
  for (const char* name : {"share_of_read", "share_of_flop", "share_of_least", "read_limit_bytes_per_s", "least_s"})
    BOOST_TEST(json.find('"' + std::string(name) + "\":null") != std::string::npos, json << " tells " << name);
  BOOST_TEST(cli::table_of(report).find("%") == std::string::npos, cli::table_of(report));
}
