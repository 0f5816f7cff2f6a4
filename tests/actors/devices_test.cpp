// A model on several devices, by all routes and over each engine: the fake one, the CPU's and the emulated GPU's. An
// answer is the same on whichever device it is computed, and a device that is lost ends its own requests only.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/actors/engine_bench.hpp"

namespace {

using namespace skein;
using namespace skein::test;
namespace data = boost::unit_test::data;

/// Requests of several kinds: greedy and sampled, short and of several parts, of one and of several rows.
std::string wish(int i) {
  const std::string prompt = "begin " + std::string(static_cast<std::size_t>(7 * i), 'x');
  return R"({"messages":[{"role":"user","content":")" + prompt + R"("}],"stream":true,"max_tokens":)" +
         std::to_string(12 + i) + R"(,"seed":)" + std::to_string(i) + (i % 2 ? R"(,"temperature":1.1)" : "") +
         (i % 3 == 2 ? R"(,"n":2)" : "") + R"(,"logit_bias":{"0":-100}})";
}

constexpr int wishes = 8;

/// The answers to all wishes, which run at the same time.
std::vector<std::string> answers(engine_bench& b) {
  const auto name = [](int i) { return "job-" + std::to_string(i); };
  for (int i = 0; i < wishes; ++i) b.open(name(i), "/v1/chat/completions", wish(i));
  std::vector<std::string> all;
  for (int i = 0; i < wishes; ++i) {
    b.turn_until_ended(name(i));
    all.push_back(engine_bench::text_of(*b.clients[name(i)].out));
  }
  return all;
}

}  // namespace

BOOST_DATA_TEST_CASE(answers_are_the_same_on_every_device, data::make(byte_engines()), which) {
  engine_bench alone(which);
  std::vector<std::string> expected;
  for (int i = 0; i < wishes; ++i) {
    alone.open("job", "/v1/chat/completions", wish(i));
    alone.turn_until_ended("job");
    if (i % 3 == 2) {  // rows arrive together, in an order that depends on the load
      expected.emplace_back();
      continue;
    }
    expected.push_back(engine_bench::text_of(*alone.clients["job"].out));
    BOOST_TEST(!expected.back().empty());
  }
  for (const int devices : {3, 2, 1}) {  // in part: three devices and one round
    engine_bench b(which);
    for (int more = 1; more < devices; ++more) b.add_device();
    for (int round = 0; round < (which.in_part() ? 1 : 3); ++round) {  // on other devices each time
      const auto told = answers(b);
      for (int i = 0; i < wishes; ++i)
        if (i % 3 != 2) BOOST_TEST(told[static_cast<std::size_t>(i)] == expected[static_cast<std::size_t>(i)]);
      b.open("one more", "/v1/chat/completions", wish(0));
      b.turn_until_ended("one more");
    }
    for (int i = 0; i < devices; ++i) BOOST_TEST(b.generated_on(static_cast<device_id>(i)) > 0u);
    b.expect_idle();
    if (which.in_part()) break;
  }
}

BOOST_DATA_TEST_CASE(a_lost_device_ends_its_own_requests_only, data::make(byte_engines()), which) {
  engine_bench b(which);
  b.add_device();
  for (const char* name : {"on-0", "on-1"}) b.open(name, "/v1/chat/completions", wish(1));
  b.turn_until([&] { return b.sampled("on-0") > 2 && b.sampled("on-1") > 2; });
  b.lose(1);
  b.turn_until_ended("on-0");
  b.turn_until_ended("on-1");
  BOOST_TEST(b.clients["on-1"].out->has("the device failed while it processed this request"));
  BOOST_TEST(!b.clients["on-0"].out->has("\"error\""));
  const std::string whole = engine_bench::text_of(*b.clients["on-0"].out);
  BOOST_TEST(whole.starts_with(engine_bench::text_of(*b.clients["on-1"].out)));
  for (int i = 0; i < 3; ++i) {
    b.open("later", "/v1/chat/completions", wish(1));
    b.turn_until_ended("later");
    BOOST_TEST(engine_bench::text_of(*b.clients["later"].out) == whole);
  }
}
