// Shows the leases of sessions in seeded lives against a plain list: one writer each, the others in order, nobody
// forgotten; and that trees are dropped only while nobody needs them.
#include "actors/persistence/session_book.hpp"

#include <boost/test/unit_test.hpp>
#include <set>

#include "tests/support/random_cases.hpp"

using namespace skein;
using namespace skein::persistence;
using namespace std::chrono_literals;

namespace {

open_entry entry_named(const std::string& id, session_uid uid) {
  open_entry e;
  e.key.id = id;
  e.uid = uid;
  session_record record;
  record.uid = uid;
  record.key = e.key;
  e.tree.emplace(record);
  return e;
}

open_session question(ticket number, steady_time deadline) {
  open_session q;
  q.reply = {0, number};
  q.deadline = deadline;
  return q;
}

}  // namespace

BOOST_AUTO_TEST_CASE(one_writes_and_the_others_get_their_turns) {
  test::random_cases random;
  for (int life = 0; life < 100; ++life) {
    session_book book({.tree_bytes_max = 1 << 20, .waiters_max = 3, .wait_when_busy = true});
    std::vector<open_entry*> entries;
    for (session_uid uid = 1; uid <= 3; ++uid)
      entries.push_back(&book.add(entry_named("s" + std::to_string(uid), uid)));
    std::map<open_entry*, ticket> writing;
    std::map<open_entry*, std::deque<std::pair<ticket, steady_time>>> waiting;
    std::set<state_key> keys;
    steady_time now{1h};
    ticket last = 0;
    const auto begin = [&](open_entry* e, const open_session& q) {
      const auto& w = book.begin(*e, q, 0);
      BOOST_REQUIRE(keys.insert(w.key).second);  // no key is given out twice, also not after a failure
      BOOST_REQUIRE_EQUAL(version_of(w.key), w.number);
      writing[e] = q.reply.number;
    };
    const auto proceed = [&](open_entry* e) {
      auto q = book.next(*e);
      BOOST_REQUIRE_EQUAL(q.has_value(), !waiting[e].empty());
      if (!q) return;
      BOOST_REQUIRE_EQUAL(q->reply.number, waiting[e].front().first);
      waiting[e].pop_front();
      begin(e, *q);
    };
    for (int step = 0; step < 150; ++step) {
      open_entry* const e = entries[random.below(3)];
      switch (random.below(5)) {
        case 0:
        case 1: {
          auto q = question(++last, now + std::chrono::seconds(1 + random.below(20)));
          const auto deadline = q.deadline;
          switch (book.enter(*e, q)) {
            case session_book::place::free:
              BOOST_REQUIRE((!writing.contains(e) && waiting[e].empty()));
              begin(e, q);
              break;
            case session_book::place::waits: waiting[e].emplace_back(last, deadline); break;
            default: BOOST_REQUIRE(waiting[e].size() == 3); break;
          }
          break;
        }
        case 2: {
          if (!writing.contains(e)) break;
          const bool committed = random.below(2);
          if (committed) {
            version_record v;
            v.id = e->writer->number;
            e->tree->add(v, 1);
            book.recount(*e);
          }
          book.end(*e, committed);
          writing.erase(e);
          proceed(e);
          break;
        }
        case 3: {
          if (random.below(2) && writing.contains(e)) {
            BOOST_REQUIRE(book.withdraw({0, writing[e]}) == e);
            book.end(*e, false);
            writing.erase(e);
            proceed(e);
          } else if (!waiting[e].empty()) {
            const auto at = random.below(static_cast<std::uint32_t>(waiting[e].size()));
            BOOST_REQUIRE(book.withdraw({0, waiting[e][at].first}) == nullptr);
            waiting[e].erase(waiting[e].begin() + at);
          }
          BOOST_REQUIRE(book.withdraw({0, 999'999}) == nullptr);
          break;
        }
        case 4: {
          now += 2s;
          std::set<ticket> late, expected;
          for (const auto& q : book.expire(now)) late.insert(q.reply.number);
          for (auto& [entry, queue] : waiting)
            std::erase_if(queue, [&](const auto& one) {
              if (one.second <= now) expected.insert(one.first);
              return one.second <= now;
            });
          BOOST_REQUIRE((late == expected));
          break;
        }
      }
      const auto wrong = book.self_check();
      BOOST_REQUIRE_MESSAGE(!wrong, wrong.value_or(""));
      BOOST_REQUIRE_EQUAL(book.leases(), writing.size());
    }
  }
}

BOOST_AUTO_TEST_CASE(trees_are_dropped_by_use_and_never_while_needed) {
  session_book book({.tree_bytes_max = 4000, .waiters_max = 3, .wait_when_busy = true});
  auto& writing = book.add(entry_named("writing", 1));
  book.begin(writing, question(1, {}), 0);
  book.add(entry_named("unsaved", 2)).unsaved = true;
  book.add(entry_named("expecting", 3)).expected[{3, 1}] = {};
  for (session_uid uid = 10; uid < 40; ++uid) {
    book.add(entry_named("s" + std::to_string(uid), uid));
    BOOST_TEST(book.find({default_tenant, "s10"}) != nullptr);  // used all the time
    book.tidy();
  }
  BOOST_TEST(book.tree_bytes() <= 4000u);
  for (const char* id : {"writing", "unsaved", "expecting", "s10", "s39"})
    BOOST_TEST(book.find({default_tenant, id}) != nullptr, id);
  BOOST_TEST(book.find({default_tenant, "s20"}) == nullptr);
  BOOST_TEST(book.find(session_uid{20}) == nullptr);
  BOOST_TEST(!book.self_check());
}
