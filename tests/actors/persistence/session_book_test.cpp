// Shows which turns of a session run beside each other, pair by pair, and the leases of sessions in seeded lives
// against a plain list: each turn that may run does, the others run in order, none is forgotten; and that trees are
// dropped only while no turn needs them.
#include "actors/persistence/sessions/session_book.hpp"

#include <boost/test/unit_test.hpp>
#include <functional>
#include <set>

#include "tests/support/aborts.hpp"
#include "tests/support/random_cases.hpp"

using namespace skein;
using namespace skein::persistence;
using namespace std::chrono_literals;
using skein::test::aborts;

namespace {

open_entry entry_named(const std::string& id, session_uid uid) {
  open_entry e;
  e.key.id = id;
  session_record record;
  record.uid = uid;
  record.key = e.key;
  e.hold(session_tree(record));
  return e;
}

open_session question(ticket number, steady_time deadline) {
  open_session q;
  q.reply = {0, number};
  q.deadline = deadline;
  return q;
}

version_record numbered(version_id id, version_id parent, std::string request_key = {}) {
  version_record v;
  v.id = id;
  v.parent = parent;
  v.request_key = std::move(request_key);
  return v;
}

/// A session in a book, with versions 1 (of the turn "one") and 2, which is broken (of the turn "two").
struct book_of_one {
  explicit book_of_one(config::session_settings options = {}) : book(options), entry(book.add(entry_named("s", 1))) {
    entry.tree->add(numbered(1, 0, "one"), 1);
    auto broken = numbered(2, 1, "two");
    broken.unfinished = true;
    entry.tree->add(broken, 1);
  }
  session_book book;
  open_entry& entry;
};

struct kind_of_turn {
  const char* name;
  bool beside;  ///< runs beside others
  std::function<void(open_session&)> as{};
};

const std::vector<kind_of_turn>& kinds() {
  static const std::vector<kind_of_turn> all{
      {"at the head", false, [](open_session&) {}},
      {"from a version", true, [](open_session& q) { q.from = 1; }},
      {"from the beginning", true, [](open_session& q) { q.from = 0; }},
      {"a history from a version", true,
       [](open_session& q) {
         q.from = 1;
         q.kind = turn_text::chat_messages;
       }},
      {"from a turn", true, [](open_session& q) { q.from_key = "one"; }},
      {"resuming a turn", true,
       [](open_session& q) {
         q.continue_unfinished = true;
         q.request_key = "two";
       }},
      {"a history", false, [](open_session& q) { q.kind = turn_text::chat_messages; }},
      {"a prompt", false, [](open_session& q) { q.kind = turn_text::raw_text; }},
      {"from a version, expecting a head", false,
       [](open_session& q) {
         q.from = 1;
         q.expected_version = 1;
       }},
      {"expecting a head", false, [](open_session& q) { q.expected_version = 1; }},
      {"from a version that is not there", false, [](open_session& q) { q.from = 3; }},
      {"from a turn that is not there", false, [](open_session& q) { q.from_key = "three"; }},
      {"resuming any interrupted turn", false, [](open_session& q) { q.continue_unfinished = true; }},
      {"resuming a turn that is complete", false,
       [](open_session& q) {
         q.continue_unfinished = true;
         q.request_key = "one";
       }},
  };
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_turn_runs_in_parallel_if_it_names_its_parent) {
  using place = session_book::place;
  for (const auto& first : kinds())
    for (const auto& second : kinds()) {
      if (&first == &second && std::string(first.name) == "resuming a turn") continue;  // of the same key: see below
      for (const bool waits : {true, false}) {
        BOOST_TEST_INFO(first.name << ", then " << second.name);
        book_of_one b({.busy = waits ? "wait" : "refuse"});
        auto one = question(1, {}), two = question(2, {});
        first.as(one);
        second.as(two);
        BOOST_REQUIRE((b.book.enter(b.entry, one) == place::free));
        const auto& w = b.book.begin(b.entry, one, 1);
        BOOST_REQUIRE((b.book.enter(b.entry, two) == (second.beside ? place::free
                                                      : waits       ? place::waits
                                                                    : place::refused)));
        if (second.beside) BOOST_REQUIRE_EQUAL(b.book.begin(b.entry, two, 1).number, 4u);
        if (second.beside || !waits) continue;
        BOOST_REQUIRE(!b.book.next(b.entry));
        b.book.end(b.entry, w.lease, true);
        BOOST_REQUIRE_EQUAL(b.book.next(b.entry)->reply.number, 2u);
      }
    }
}

BOOST_AUTO_TEST_CASE(turns_keep_their_order_and_their_limit) {
  using place = session_book::place;
  book_of_one b({.writers_max = 2});
  const auto come = [&](ticket number, bool beside, std::string key = {}) {
    auto q = question(number, {});
    if (beside) q.from = 1;
    q.request_key = std::move(key);
    const auto where = b.book.enter(b.entry, q);
    if (where == place::free) b.book.begin(b.entry, q, 1);
    return where;
  };
  const auto go = [&](ticket number) {
    const auto [entry, w] = b.book.withdraw({0, number});
    BOOST_REQUIRE(entry == &b.entry);
    if (w) b.book.end(b.entry, w->lease, false);
    std::vector<ticket> begun;
    while (auto q = b.book.next(b.entry)) {
      begun.push_back(q->reply.number);
      b.book.begin(b.entry, *q, 1);
    }
    return begun;
  };
  using tickets = std::vector<ticket>;
  BOOST_TEST((come(1, true, "k") == place::free));
  BOOST_TEST((come(2, true, "k") == place::waits));  // the same turn once more
  BOOST_TEST((come(3, true) == place::waits));       // behind it
  BOOST_TEST((go(1) == tickets{2, 3}));
  BOOST_TEST((come(4, true) == place::waits));  // two run
  BOOST_TEST((go(2) == tickets{4}));
  BOOST_TEST((come(5, false) == place::waits));
  BOOST_TEST((come(6, true) == place::waits));  // though it could run
  BOOST_TEST((go(3) == tickets{}));
  BOOST_TEST((go(5) == tickets{6}));  // who waited before it has left
  BOOST_TEST((come(7, false) == place::waits));
  BOOST_TEST((come(8, true) == place::waits));
  BOOST_TEST((go(4) == tickets{}));
  BOOST_TEST((go(6) == tickets{7, 8}));  // the one begins alone, the other beside it
  b.entry.begin_removal();
  BOOST_TEST((come(9, true) == place::waits));
  BOOST_TEST(!b.book.next(b.entry));
}

BOOST_AUTO_TEST_CASE(numbers_are_reserved_and_no_key_is_given_out_twice) {
  book_of_one b;
  auto q = question(1, {});
  q.from = 1;
  std::set<state_key> keys;
  const auto begin = [&] {
    const auto& w = b.book.begin(b.entry, q, 1);
    BOOST_TEST(keys.insert(w.key).second);
    BOOST_TEST(version_of(w.key) == w.number);
    return std::pair(w.lease, w.number);
  };
  const auto commit = [&](auto turn) {
    b.entry.tree->add(numbered(turn.second, 1), 1);
    b.book.end(b.entry, turn.first, true);
  };
  const auto a = begin(), c = begin(), d = begin();
  BOOST_TEST((a.second == 3u && c.second == 4u && d.second == 5u));
  b.book.end(b.entry, d.first, false);
  commit(c);
  BOOST_TEST(b.entry.tree->record().head == 4u);
  const auto e = begin();  // the number of the turn that failed, under another key
  BOOST_TEST(e.second == 5u);
  b.book.end(b.entry, e.first, false);
  commit(a);
  BOOST_TEST(b.entry.tree->record().head == 4u);  // it began later
  BOOST_TEST(b.entry.tree->record().last_version == 4u);
  const auto f = begin(), g = begin();
  BOOST_TEST((f.second == 5u && g.second == 6u));
  b.book.end(b.entry, f.first, false);
  commit(g);
  BOOST_TEST(begin().second == 7u);  // the gap stays
  BOOST_TEST(!b.book.self_check());
}

BOOST_AUTO_TEST_CASE(who_may_run_runs_and_the_others_get_their_turns) {
  test::random_cases random;
  struct expected_turn {
    ticket number;
    bool beside;
    std::string key;
    steady_time deadline;
    lease_id lease = 0;
  };
  for (int life = 0; life < 100; ++life) {
    const std::uint32_t writers_max = 1 + random.below(4);
    session_book book({.tree_bytes_max = 1 << 20, .writers_max = writers_max, .waiters_max = 3});
    std::vector<open_entry*> entries;
    for (session_uid uid = 1; uid <= 3; ++uid)
      entries.push_back(&book.add(entry_named("s" + std::to_string(uid), uid)));
    std::map<open_entry*, std::vector<expected_turn>> writing;
    std::map<open_entry*, std::deque<expected_turn>> waiting;
    std::set<state_key> keys;
    steady_time now{1h};
    ticket last = 0;
    std::size_t most = 0;
    const auto may = [&](open_entry* e, const expected_turn& turn) {
      const auto& all = writing[e];
      const auto same = [&](const auto& one) { return !turn.key.empty() && one.key == turn.key; };
      return all.empty() || (all.size() < writers_max && turn.beside && std::ranges::none_of(all, same));
    };
    const auto begin = [&](open_entry* e, const open_session& q, expected_turn turn) {
      const auto& w = book.begin(*e, q, 0);
      BOOST_REQUIRE(keys.insert(w.key).second);  // no key is given out twice, also not after a failure
      BOOST_REQUIRE_EQUAL(version_of(w.key), w.number);
      turn.lease = w.lease;
      writing[e].push_back(turn);
      most = std::max(most, writing[e].size());
    };
    const auto proceed = [&](open_entry* e) {
      for (;;) {
        auto q = book.next(*e);
        BOOST_REQUIRE_EQUAL(q.has_value(), !waiting[e].empty() && may(e, waiting[e].front()));
        if (!q) return;
        const expected_turn turn = waiting[e].front();
        BOOST_REQUIRE_EQUAL(q->reply.number, turn.number);
        waiting[e].pop_front();
        begin(e, *q, turn);
      }
    };
    const auto take = [&](open_entry* e) {
      auto& all = writing[e];
      const auto at = all.begin() + random.below(static_cast<std::uint32_t>(all.size()));
      const expected_turn turn = *at;
      all.erase(at);
      return turn;
    };
    for (int step = 0; step < 200; ++step) {
      open_entry* const e = entries[random.below(3)];
      switch (random.below(5)) {
        case 0:
        case 1: {
          auto q = question(++last, now + std::chrono::seconds(1 + random.below(20)));
          expected_turn turn{last, random.below(3) > 0, random.below(4) == 0 ? "key" : "", q.deadline};
          if (turn.beside) q.from = 0;
          q.request_key = turn.key;
          switch (book.enter(*e, q)) {
            case session_book::place::free:
              BOOST_REQUIRE((waiting[e].empty() && may(e, turn)));
              begin(e, q, turn);
              break;
            case session_book::place::waits:
              BOOST_REQUIRE((!waiting[e].empty() || !may(e, turn)));
              waiting[e].push_back(turn);
              break;
            default: BOOST_REQUIRE(waiting[e].size() == 3); break;
          }
          break;
        }
        case 2: {
          if (writing[e].empty()) break;
          const lease_id lease = take(e).lease;
          const bool committed = random.below(2);
          if (committed) {
            e->tree->add(numbered(book.find_lease(lease).writer->number, 0), 1);
            book.recount(*e);
          }
          book.end(*e, lease, committed);
          proceed(e);
          break;
        }
        case 3: {
          if (random.below(2) && !writing[e].empty()) {
            const expected_turn turn = take(e);
            const auto [entry, w] = book.withdraw({0, turn.number});
            BOOST_REQUIRE((entry == e && w && w->lease == turn.lease));
            book.end(*e, turn.lease, false);
            proceed(e);
          } else if (!waiting[e].empty()) {
            const auto at = random.below(static_cast<std::uint32_t>(waiting[e].size()));
            const auto [entry, w] = book.withdraw({0, waiting[e][at].number});
            BOOST_REQUIRE((entry == e && !w));
            waiting[e].erase(waiting[e].begin() + at);
            proceed(e);
          }
          BOOST_REQUIRE(!book.withdraw({0, 999'999}).entry);
          break;
        }
        case 4: {
          now += 2s;
          std::set<ticket> late, expected;
          for (const auto& q : book.expire(now)) late.insert(q.reply.number);
          for (auto& [entry, queue] : waiting)
            std::erase_if(queue, [&](const auto& one) {
              if (one.deadline <= now) expected.insert(one.number);
              return one.deadline <= now;
            });
          BOOST_REQUIRE((late == expected));
          for (open_entry* entry : book.awaited()) proceed(entry);
          break;
        }
      }
      const auto wrong = book.self_check();
      BOOST_REQUIRE_MESSAGE(!wrong, wrong.value_or(""));
      std::size_t running = 0;
      for (const auto& [entry, all] : writing) running += all.size();
      BOOST_REQUIRE_EQUAL(book.leases(), running);
    }
    BOOST_REQUIRE_EQUAL(most, writers_max);
  }
}

BOOST_AUTO_TEST_CASE(the_phase_of_a_session_changes_as_its_life_allows) {
  const auto tree = [] {
    session_record record;
    record.uid = 1;
    return session_tree(record);
  };
  open_entry e;
  BOOST_TEST((e.phase() == session_phase::absent && !e.exists()));
  e.begin(tree());
  BOOST_TEST((e.provisional() && !e.exists() && e.uid == 1));
  e.drop();
  BOOST_TEST((e.phase() == session_phase::absent && !e.tree && e.uid == 0));
  e.begin(tree());
  e.confirm();
  e.confirm();
  BOOST_TEST((e.phase() == session_phase::stored && e.exists()));
  e.begin_removal();
  BOOST_TEST((e.removing() && e.busy()));
  BOOST_TEST(aborts([&] { e.begin_removal(); }));
  BOOST_TEST(aborts([&] { e.confirm(); }));
  BOOST_TEST(aborts([&] { e.drop(); }));
  e.end_removal();
  BOOST_TEST((e.phase() == session_phase::stored));
  BOOST_TEST(aborts([&] { e.end_removal(); }));
  BOOST_TEST(aborts([&] { e.begin(tree()); }));
  BOOST_TEST(aborts([&] { e.hold(tree()); }));
  e.writers[1];
  BOOST_TEST(aborts([&] { e.drop(); }));
  e.writers.clear();
  e.drop();
  e.hold(tree());
  BOOST_TEST(e.exists());
  BOOST_TEST(aborts([] { open_entry().confirm(); }));
  BOOST_TEST(aborts([] { open_entry().begin_removal(); }));
  BOOST_TEST(aborts([] { open_entry().drop(); }));
}

BOOST_AUTO_TEST_CASE(trees_are_dropped_by_use_and_never_while_needed) {
  session_book book({.tree_bytes_max = 4000, .waiters_max = 3});
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
