// Shows that what is handed out about sessions is made only where the client's share of the memory has room for it.
#include <boost/test/unit_test.hpp>

#include "storage/sessions/session_file.hpp"
#include "tests/actors/persistence/keeper_bench.hpp"

using namespace skein;
using namespace skein::test;

BOOST_AUTO_TEST_CASE(a_page_and_a_file_are_made_only_where_memory_has_room) {
  opened_bench b;
  for (int i = 0; i < 5; ++i) b.turn("s" + std::to_string(i), {1}, "a");
  const auto whole = b.answered<session_list>(list_sessions{{0, 1}, default_tenant, "", 10});
  BOOST_TEST(whole.sessions.size() == 5u);
  list_sessions q{{0, 1}, default_tenant, "", 10};
  q.bytes_max = 1000;
  const auto cut = b.answered<session_list>(q);
  BOOST_TEST(cut.sessions.size() < 5u);
  BOOST_TEST(cut.more);
  q.bytes_max = 1;
  BOOST_TEST(b.answered<session_list>(q).sessions.size() == 1u);

  byte_budget budget;
  const auto share = [&](std::size_t most) { return byte_share{{budget.of("a"), most}, {}, {budget.all(), most}}; };
  q = {{0, 1}, default_tenant, "", 10};
  q.share = share(100);
  b.tell(q);
  BOOST_TEST((b.refusal().kind == error_kind::too_large));
  q.share = share(100'000);
  b.tell(q);
  {
    const auto told = b.take<answer>();
    BOOST_TEST(budget.held() > 500u);
    BOOST_TEST((share(100'000).take(99'900) == byte_share::outcome::share_full));
  }
  BOOST_TEST(budget.held() == 0u);
  export_session file{{0, 1}, named("s0"), true};
  file.share = share(10);
  b.tell(file);
  BOOST_TEST((b.refusal().kind == error_kind::too_large));
  file.share = share(1 << 20);
  b.tell(file);
  {
    const auto told = b.take<answer>();
    BOOST_TEST(budget.held() >= std::get<session_bytes>(told.body).file.size() / 4);
  }
  BOOST_TEST(budget.held() == 0u);
}

namespace {

byte_share share_of(byte_budget& budget, std::size_t most) {
  return {{budget.of("a"), most}, {}, {budget.all(), most}};
}

}  // namespace

// A message takes 2 bytes of a file and 64 of memory.
BOOST_AUTO_TEST_CASE(an_import_is_read_only_where_memory_has_room_for_its_contents) {
  opened_bench b;
  b.turn("s", {1}, "a");
  auto parts =
      storage::read_session_file(b.answered<session_bytes>(export_session{{0, 1}, named("s"), true}).file, {}).value();
  parts.versions[0].messages.assign(10'000, {});
  const auto file = storage::write_session_file(parts, {});
  BOOST_TEST(file.size() < 30'000u);
  byte_budget budget;
  import_session q{{0, 1}, named("t"), file};
  q.share = share_of(budget, 100'000);
  b.tell(import_session(q));
  BOOST_TEST((b.refusal().kind == error_kind::too_large));
  BOOST_TEST(budget.held() == 0u);
  q.share = share_of(budget, 4 << 20);
  b.sessions->handle(import_session(q));
  BOOST_REQUIRE(!b.runner.jobs.empty());
  {
    const auto after = b.runner.jobs.front()();
    b.runner.jobs.pop_front();
    BOOST_TEST(budget.held() >= 10'000 * sizeof(storage::message));
    after();
  }
  b.pump();
  BOOST_TEST(std::get<done>(b.take<answer>().body).session.log_bytes >= 10'000 * sizeof(storage::message));
  BOOST_TEST(budget.held() == 0u);
}
