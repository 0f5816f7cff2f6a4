// Shows that sessions of a version that computed a model's identity in another way continue with that model.
#include <boost/test/unit_test.hpp>

#include "actors/persistence/keeper/session_keeper.hpp"
#include "tests/actors/persistence/keeper_bench.hpp"

using namespace skein;
using namespace skein::test;

BOOST_AUTO_TEST_CASE(a_session_of_the_former_identity_continues_with_its_state) {
  opened_bench b;
  b.turn("s", {1}, "a");
  b.end();
  b.former_model = b.model;
  b.model = "model-a-now";
  for (int opening = 0; opening < 2; ++opening) {
    b.open();
    const auto o = b.opened("s");
    BOOST_TEST(o.resume.state != nullptr);
    BOOST_TEST(o.resume.feed.empty());
    b.tell(release{o.reply, o.lease});
    b.turn("s", {2}, "b");
    b.turn("new", {1}, "a");
    b.sessions->publish();
    BOOST_TEST(b.counters.sessions.load_failures == 0u);
    BOOST_TEST(b.counters.sessions.write_failures == 0u);
    b.end();
  }
  b.former_model.clear();  // a conversion, which does not have the tensors that the former identity covers
  b.open();
  BOOST_TEST((b.opened("new").resume.state != nullptr));
  b.tell(b.question("s"));
  BOOST_TEST((b.refusal().kind == error_kind::conflict));
}
