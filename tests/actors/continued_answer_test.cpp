// Answers of sessions that were interrupted and continue, where one rule spans both parts.
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/actors/session_bench.hpp"

namespace {

using namespace skein;

using bench = test::session_bench;
namespace dialects = protocol::dialects;

}  // namespace

BOOST_AUTO_TEST_CASE(a_stop_string_may_begin_before_an_interruption) {
  for (const bool shown : {false, true}) {
    bench b;
    const std::string said = "ab###cd";
    std::size_t at = 0;
    b.next = [&](const std::vector<token_id>&) { return static_cast<unsigned char>(said.at(at++)); };
    const std::string more = R"("max_tokens":9,"temperature":0,"stop_tokens":["###"])" +
                             std::string(shown ? R"(,"include_stop_str_in_output":true})" : "}");
    test::call_origin origin;
    origin.dialect = &dialects::state;
    b.begin(R"({"session_id":"s","contents":["p"],)" + more, std::move(origin));
    b.start_device();
    for (int i = 0; i < 4; ++i) b.sample();
    b.tell(device::row_finished{b.submitted.back().id, 0, device::finish_cause::shutdown});
    b.settle();
    b.ran = b.submitted.size();
    BOOST_TEST(b.member("content") == "ab##");

    b.ask(R"({"session_id":"s","continue":true,)" + more, dialects::state);
    BOOST_TEST(at == 5u);
    BOOST_TEST(b.member("content") == (shown ? "#" : ""));
    BOOST_TEST(b.has(R"("finish_reason":"stop")"));
    BOOST_TEST(b.sessions.head("s").answer == (shown ? "ab###" : "ab##"));  // the client has the first two
  }
}
