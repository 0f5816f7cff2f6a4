// Shows that no session is lost, torn or mixed: seeded lives of several sessions with tiny tiers, turns that commit,
// fail or break, one after another and beside each other, forks, ways back, removals, full disks, crashes and orderly
// ends, against a model that remembers the tokens of every version. Every state that is handed out must be the one that
// its tokens make. SKEIN_LIVES says how many lives.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <functional>
#include <span>

#include "storage/database/database_impl.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/repair/verify.hpp"
#include "tests/actors/persistence/keeper_bench.hpp"
#include "tests/support/random_cases.hpp"

using namespace skein;
using namespace skein::test;

namespace {

using tokens_t = std::vector<token_id>;

struct model_version {
  version_id parent = 0;
  tokens_t all;          // from the beginning
  bool durable = false;  // reported so
  bool deleted = false;  // others go on from it

  bool is(const version_record& found) const {
    return parent == found.parent && deleted == found.deleted && all.size() == found.total_tokens && ends_with(found);
  }
  bool ends_with(const version_record& found) const {
    return found.tokens.size() <= all.size() &&
           std::ranges::equal(std::span(all).last(found.tokens.size()), found.tokens);
  }
};
struct model_session {
  std::map<version_id, model_version> versions;
  version_id head = 0;
  bool head_durable = true;  // the log has this head, and not an earlier one
  // What a crash may leave in place of this: a refused write may have reached the disk before the disk failed.
  std::vector<model_session> perhaps;

  /// Call when a write that may have reached the disk was refused. `change` is what the write was to do.
  void doubt(const std::function<void(model_session&)>& change) {
    model_session other = *this;
    other.perhaps.clear();
    change(other);
    perhaps.push_back(std::move(other));
  }
  /// The log has all of this and nothing else.
  void settle() {
    perhaps.clear();
    head_durable = true;
    for (auto& [number, v] : versions) v.durable = true;
  }
  bool is(const std::map<version_id, version_record>& there, version_id its_head) const {
    return head == its_head && std::ranges::equal(versions, there, [](const auto& own, const auto& found) {
             return own.first == found.first && own.second.is(found.second);
           });
  }
  bool offers(version_id v) const { return v == 0 || (versions.contains(v) && !versions.at(v).deleted); }
  bool is_last(version_id v) const {
    return std::ranges::none_of(versions, [v](const auto& one) { return one.second.parent == v; });
  }
  /// With what was only there for it.
  void remove(version_id v) {
    version_id up = v;
    if (!is_last(v))
      versions.at(v).deleted = true;
    else
      do up = versions.extract(up).mapped().parent;
      while (up != 0 && versions.at(up).deleted && is_last(up));
    while (!offers(head)) --head;
  }
  const tokens_t& tokens(version_id v) const {
    static const tokens_t none;
    return v == 0 ? none : versions.at(v).all;
  }
};

struct running_turn {
  std::string id;
  session_opened opened;
  tokens_t fed, all;
  bool known = false;  // the session had versions
};

struct life : keeper_bench {
  explicit life(test::random_cases& r, bool faults) : random(r), with_faults(faults) {
    const auto few = [&] { return (random.below(6)) * bench_floats * sizeof(float); };
    options.session_states.ram_bytes_max = few();
    options.session_states.dirty_bytes_max = few();
    options.session_states.disk_bytes_max = 1 + few() * 30;
    options.sessions.tree_bytes_max = random.below(3) * 2000;
    options.sessions.unsaved_bytes_max = 3000 + random.below(20'000);
    open();
  }

  std::string name() { return "s" + std::to_string(random.below(5)); }
  tokens_t some_tokens() {
    tokens_t t(1 + random.below(4));
    for (auto& token : t) token = static_cast<token_id>(random.below(vocab));
    return t;
  }

  /// While the disk works, nothing is in memory only, and refused writes are undone.
  void settle() {
    if (!sessions->disk_works()) return;
    for (auto& [id, session] : model) session.settle();
  }
  void recover() {
    keeper_bench::recover();
    settle();
  }

  bool busy(const std::string& id) const { return std::ranges::find(running, id, &running_turn::id) != running.end(); }

  /// A turn that goes on from a version may run beside others, and so stays open for a while.
  void turn_of(const std::string& id) {
    if (std::ranges::count(running, id, &running_turn::id) == 8) return;
    auto q = question(id);
    auto& session = model[id];
    const bool known = !session.versions.empty() || busy(id);
    if (busy(id) || random.below(3) == 0) q.from = some_version(session);
    q.deadline = time.now() + 1h;
    tell(q);
    // States that never came are waited for, one after another.
    for (int i = 0; i < 100 && silent(); ++i) pass(11s);
    auto o = take<session_opened>();
    const version_id base = q.from.value_or(session.head);
    BOOST_REQUIRE_EQUAL(o.base, base);
    BOOST_REQUIRE((o.state == (known ? session_state::continued : session_state::fresh)));
    const tokens_t& before = session.tokens(base);
    BOOST_REQUIRE_EQUAL(o.resume.cached_tokens + o.resume.feed.size(), before.size());
    BOOST_REQUIRE(std::equal(o.resume.feed.begin(), o.resume.feed.end(),
                             before.begin() + static_cast<std::ptrdiff_t>(o.resume.cached_tokens)));
    if (o.resume.state)
      BOOST_REQUIRE(*o.resume.state == *state_after(std::span(before).first(o.resume.cached_tokens)));
    else
      BOOST_REQUIRE_EQUAL(o.resume.cached_tokens, 0u);

    tokens_t fed = some_tokens(), all = before;
    all.insert(all.end(), fed.begin(), fed.end());
    o.resume.state.reset();  // else it would take room from those of others
    const running_turn turn{id, o, fed, all, !session.versions.empty()};
    if (q.from && random.below(2) == 0)
      running.push_back(turn);
    else
      finish(turn);
  }

  void finish_one() {
    if (running.empty()) return;
    const auto at = running.begin() + random.below(static_cast<std::uint32_t>(running.size()));
    const running_turn turn = std::move(*at);
    running.erase(at);
    finish(turn);
  }

  void finish(const running_turn& turn) {
    const auto& [id, o, fed, all, known] = turn;
    auto& session = model[id];
    const bool state_first = random.below(3) == 0, state_comes = random.below(5) != 0;
    const auto send_state = [&, &o = o, &all = all] {
      tell(state_kept{o.key, state_comes ? state_after(all) : nullptr});
    };
    if (state_first) send_state();
    // A first turn that broke while the disk failed may come back as a broken answer, which this model does not know.
    if ((known || !with_faults) && random.below(4) == 0) {
      note_running note{o.lease, {}, "x"};
      note.so_far.tokens = tokens_t(20, 1);
      tell(note);
    }
    if (random.below(5) == 0) {
      tell(release{o.reply, o.lease});
      if (!state_first) send_state();
      return;
    }
    auto c = commit_of(o, fed, "x");
    if (random.below(3) == 0) c.wanted = durability::power;
    const auto wanted = c.wanted;
    const bool worked = sessions->disk_works();
    tell(std::move(c));
    if (const auto* why = std::get_if<refused>(&replies.all.front())) {
      BOOST_REQUIRE((why->why.kind == error_kind::no_space));
      BOOST_REQUIRE(with_faults);
      if (worked)
        session.doubt([&, &o = o, &all = all](model_session& other) {
          other.versions[o.number] = {o.base, all};
          other.head = std::max(other.head, o.number);
        });
      replies.all.clear();
      if (!state_first) send_state();
      return;
    }
    const auto done = take<turn_committed>();
    const bool durable = done.durable != durability::memory;
    BOOST_REQUIRE(durable || with_faults);
    if (durable) BOOST_REQUIRE((done.durable == wanted));
    session.versions[done.version] = {o.base, all, durable};
    if (done.version > session.head) {
      session.head = done.version;
      session.head_durable = durable;
    } else {
      session.head_durable = session.head_durable || durable;  // each commit writes the session as a whole
    }
    if (!state_first && random.below(6) != 0) send_state();
  }

  version_id some_version(const model_session& s) {
    const auto at = random.below(static_cast<std::uint32_t>(s.versions.size()) + 1);
    const version_id v = at == 0 ? 0 : std::next(s.versions.begin(), at - 1)->first;
    return s.offers(v) ? v : 0;
  }

  void fork_to(const std::string& from, const std::string& to) {
    const bool worked = sessions->disk_works();
    tell(fork_session{{0, 1}, {default_tenant, from}, {default_tenant, to}, {}});
    auto r = std::move(replies.all.front());
    replies.all.pop_front();
    const bool possible = !model[from].versions.empty() && model[to].versions.empty() && !busy(to);
    const bool is_refused = std::holds_alternative<refused>(r);
    BOOST_REQUIRE((possible || is_refused));
    BOOST_REQUIRE((!possible || !is_refused || with_faults));
    if (!possible) return;
    model_session copy;
    copy.head = model[from].head;
    for (version_id v = copy.head; v != 0; v = model[from].versions.at(v).parent) {
      copy.versions[v] = model[from].versions.at(v);
      copy.versions[v].durable = true;
    }
    if (is_refused) {
      if (worked) model[to].doubt([&](model_session& other) { other = copy; });
      return;
    }
    model[to] = copy;
    // Forked at its beginning there is a session without a version, which this model does not know.
    if (copy.versions.empty()) remove(to);
  }

  void roll_back(const std::string& id) {
    auto& session = model[id];
    if (session.versions.empty()) return;
    const version_id to = some_version(session);
    const bool worked = sessions->disk_works();
    tell(rollback_session{{0, 1}, {default_tenant, id}, to});
    if (std::holds_alternative<refused>(replies.all.front())) {
      BOOST_REQUIRE((with_faults || busy(id)));
      if (worked && !busy(id)) session.doubt([&](model_session& other) { other.head = to; });
    } else {
      BOOST_REQUIRE(!busy(id));
      session.head = to;
      session.head_durable = true;
    }
    replies.all.clear();
  }

  void remove(const std::string& id) {
    const bool worked = sessions->disk_works();
    tell(remove_session{{0, 1}, {default_tenant, id}, false});
    if (std::holds_alternative<answer>(replies.all.front())) {
      BOOST_REQUIRE(!busy(id));
      model.erase(id);
    } else if (model.contains(id) && !busy(id) && worked) {
      model[id].doubt([](model_session& other) { other = {}; });
    }
    replies.all.clear();
  }

  void remove_branch(const std::string& id) {
    auto& session = model[id];
    const version_id v = some_version(session);
    if (v == 0) return;
    // Broken answers count as versions, and this model does not know them.
    if (std::ranges::any_of(described(id).versions, &version_record::unfinished)) return;
    const bool worked = sessions->disk_works();
    tell(remove_session{{0, 1}, {default_tenant, id + ':' + std::to_string(v)}, false});
    if (std::holds_alternative<answer>(replies.all.front())) {
      BOOST_REQUIRE(!busy(id));
      session.remove(v);
      session.head_durable = true;
    } else if (!busy(id)) {
      BOOST_REQUIRE(with_faults);
      if (worked) session.doubt([&](model_session& other) { other.remove(v); });
    }
    replies.all.clear();
  }

  /// Once all sessions are removed, no record and no state is left.
  void remove_all() {
    while (!running.empty()) finish_one();
    for (int i = 0; i < 5; ++i) remove("s" + std::to_string(i));
    pass(3s);
    BOOST_REQUIRE(states->list().value().empty());
    const auto left_in = [&](storage::family where, const std::string& first) {
      std::size_t count = 0;
      const auto end = first.empty() ? first : storage::keys::after_all(first);
      BOOST_REQUIRE(db->internals().scan(where, first, end, [&](auto, auto) { return ++count > 0; }));
      return count;
    };
    BOOST_REQUIRE_EQUAL(left_in(storage::family::versions, {}), 0u);
    for (const auto what : {storage::keys::forks_prefix, storage::keys::stems_prefix, storage::keys::trims_prefix,
                            storage::keys::shares_prefix})
      BOOST_REQUIRE_EQUAL(left_in(storage::family::meta, std::string(what)), 0u);
    sessions->publish();
    BOOST_REQUIRE_EQUAL(counters.sessions.ram + counters.sessions.disk, 0u);
  }

  /// The sessions as they are now are those of the model. After a crash the model forgets what was not durable, and a
  /// refused write that is on the disk has taken effect.
  void compare(bool after_crash) {
    if (!after_crash) settle();
    for (auto it = model.begin(); it != model.end();) {
      auto& [id, session] = *it;
      tell(describe_session{{0, 1}, {default_tenant, id}, false, {}});
      auto r = std::move(replies.all.front());
      replies.all.pop_front();
      std::map<version_id, version_record> there;
      session_record record;
      if (const auto* a = std::get_if<answer>(&r)) {
        const auto& description = std::get<session_description>(a->body);
        record = description.session.record;
        for (const auto& v : description.versions)
          if (!v->unfinished) there[v->id] = *v;
      } else {
        const error& why = std::get<refused>(r).why;
        BOOST_REQUIRE_MESSAGE((why.kind == error_kind::not_found), why.message);
      }
      if (const auto other =
              std::ranges::find_if(session.perhaps, [&](const auto& one) { return one.is(there, record.head); });
          after_crash && other != session.perhaps.end()) {
        model_session taken = *other;
        session = std::move(taken);
      }
      if (after_crash) session.perhaps.clear();
      for (auto v = session.versions.begin(); v != session.versions.end();) {
        const bool found = there.contains(v->first);
        BOOST_REQUIRE_MESSAGE(found || (after_crash && !v->second.durable),
                              "version " << v->first << " of " << id << " is lost");
        if (found) {
          BOOST_REQUIRE_EQUAL(there.at(v->first).parent, v->second.parent);
          BOOST_REQUIRE_EQUAL(there.at(v->first).total_tokens, v->second.all.size());
          BOOST_REQUIRE(v->second.ends_with(there.at(v->first)));
          BOOST_REQUIRE_EQUAL(there.at(v->first).deleted, v->second.deleted);
          v->second.durable |= after_crash;
          there.erase(v->first);
          ++v;
        } else {
          v = session.versions.erase(v);
        }
      }
      BOOST_REQUIRE_MESSAGE(there.empty(), id << " has versions that were not committed");
      if (!session.versions.empty() && (session.head_durable || !after_crash))
        BOOST_REQUIRE_EQUAL(record.head, session.head);
      if (after_crash) session.head = record.head, session.head_durable = true;
      it = session.versions.empty() && session.perhaps.empty() ? model.erase(it) : std::next(it);
    }
  }

  void step() {
    settle();
    switch (random.below(with_faults ? 16 : 14)) {
      case 7: fork_to(name(), name()); break;
      case 8: roll_back(name()); break;
      case 9: random.below(3) == 0 ? remove(name()) : remove_branch(name()); break;
      case 10: pass(std::chrono::milliseconds(random.below(2500))); break;
      case 11:
        if (random.below(4) == 0) {
          const bool crashes = random.below(2) == 0;
          if (crashes) {
            crash();
          } else {
            recover();
            end();
          }
          running.clear();
          open();
          compare(crashes);
        } else {
          compare(false);
        }
        break;
      case 12:
      case 13: finish_one(); break;
      case 14: files->plan({.kind = fault_kind::no_space, .first = 1 + random.below(3), .count = 1'000'000}); break;
      case 15: recover(); break;
      default: turn_of(name()); break;
    }
  }

  /// What tenants store was counted as the log has it.
  void counts_agree() {
    sessions->publish();
    storage::stored_amount all;
    for (const auto& [tenant, amount] : storage::session_store(db).amounts().value()) all = all + amount;
    BOOST_REQUIRE_EQUAL(counters.stored_sessions.load(), all.sessions);
    BOOST_REQUIRE_EQUAL(counters.stored_versions.load(), all.versions);
    BOOST_REQUIRE_EQUAL(counters.stored_bytes.load(), all.bytes);
  }

  test::random_cases& random;
  const bool with_faults;
  std::map<std::string, model_session> model;
  std::vector<running_turn> running;
};

void live(bool with_faults, int steps) {
  const char* const given = std::getenv("SKEIN_LIVES");
  const int lives = given ? std::atoi(given) : 12;
  test::random_cases random;
  for (int i = 0; i < lives; ++i) {
    BOOST_TEST_INFO_SCOPE("life " << i);
    life l(random, with_faults);
    for (int step = 0; step < steps; ++step) l.step();
    while (!l.running.empty()) l.finish_one();
    l.recover();
    l.counts_agree();
    l.compare(false);
    l.crash();
    l.running.clear();
    l.open();
    l.compare(true);
    l.counts_agree();
    const auto checked = storage::verify(*l.db);
    BOOST_REQUIRE(checked);
    for (const auto& one : checked->damaged) BOOST_ERROR(one.record << ": " << one.why);
    if (!with_faults) l.remove_all();
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(sessions_survive_evictions_and_crashes) { live(false, 150); }

// The log's write reaches the file, and only its flush fails: the change is refused, and a crash brings it back.
BOOST_AUTO_TEST_CASE(refused_changes_that_the_disk_stored_come_back_with_a_crash) {
  const auto fail_behind_the_next_write = [](life& l) {
    l.pass(3s);
    l.files->plan({.kind = fault_kind::no_space, .first = 2, .count = 1'000'000});
  };
  const auto commit = [](life& l, const std::string& id) {
    for (const auto before = l.model[id].versions.size(); l.model[id].versions.size() == before;) {
      l.turn_of(id);
      while (!l.running.empty()) l.finish_one();
    }
  };
  const auto crash = [](life& l) {
    l.crash();
    l.open();
    l.compare(true);
  };
  test::random_cases random;
  for (int i = 0; i < 8; ++i) {
    life l(random, true);
    commit(l, "s0");
    const tokens_t whole = l.model["s0"].tokens(l.model["s0"].head);
    fail_behind_the_next_write(l);
    l.fork_to("s0", "s1");
    BOOST_REQUIRE_EQUAL(l.model["s1"].perhaps.size(), 1u);
    commit(l, "s1");  // in memory, under the name and the number that the fork has on the disk
    crash(l);
    BOOST_REQUIRE((l.model["s1"].tokens(1) == whole));

    commit(l, "s0");
    const version_id head = l.model["s0"].head;
    fail_behind_the_next_write(l);
    while (l.model["s0"].perhaps.empty()) l.roll_back("s0");
    const version_id to = l.model["s0"].perhaps.front().head;
    l.compare(false);
    BOOST_REQUIRE_EQUAL(l.model["s0"].head, head);
    crash(l);
    BOOST_REQUIRE_EQUAL(l.model["s0"].head, to);
  }
}

BOOST_AUTO_TEST_CASE(sessions_survive_full_disks_too) { live(true, 120); }
