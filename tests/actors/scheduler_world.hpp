#pragma once
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "actors/device/scheduler.hpp"
#include "tests/support/failing_new.hpp"

/// What the tests of the scheduler step by hand: a model of an engine whose state is a hash chain, clients that check
/// every event, and a sink that checks every state. A mixed-up, stale or lost state shows as a wrong token or a wrong
/// hash.
namespace skein::test {

using namespace skein::device;
using namespace std::chrono_literals;

inline constexpr token_id vocab = 1000;
inline constexpr token_id stop_id = 7;
inline constexpr std::uint32_t endless = 2000;  // tokens: more than a case takes turns
inline constexpr model::state_layout state_layout{.layers = 1, .embd = 2};
inline constexpr std::size_t state_bytes = 4 * sizeof(float);

inline std::uint64_t mix(std::uint64_t state, std::uint64_t with) {
  state ^= with + 0x9e3779b97f4a7c15ull + (state << 6) + (state >> 2);
  state *= 0xff51afd7ed558ccdull;
  return state ^ (state >> 33);
}
inline std::uint64_t swallow(std::uint64_t state, std::span<const token_id> tokens) {
  for (token_id t : tokens) state = mix(state, static_cast<std::uint64_t>(t));
  return state;
}
/// Of the engine of the world at work. An end of a chunk counts like a token, so that a hash shows which tokens went in
/// which chunk.
inline std::uint32_t chunk_tokens = 0;
inline std::uint64_t end_chunk(std::uint64_t state) { return mix(state, vocab); }
/// The first tokens of a prompt, as its parts say.
inline std::uint64_t swallow_prompt(std::uint64_t state, const std::vector<token_id>& prompt,
                                    std::span<const engine::prompt_part> parts, std::size_t count) {
  const engine::prompt_part whole{static_cast<std::uint32_t>(prompt.size()), false};
  if (parts.empty()) parts = {&whole, 1};
  std::size_t at = 0;
  for (const auto& part : parts)
    for (std::uint32_t i = 1; i <= part.tokens && at < count; ++i) {
      state = mix(state, static_cast<std::uint64_t>(prompt[at++]));
      const std::uint32_t chunked = engine::chunked_tokens(part, chunk_tokens);
      if (i <= chunked && (i % chunk_tokens == 0 || i == chunked)) state = end_chunk(state);
    }
  return state;
}
inline token_id drawn_from(std::uint64_t state, std::uint32_t row, std::uint32_t index) {
  return static_cast<token_id>(mix(mix(state, row), index) % vocab);
}

/// One state of a mixture, as a hash.
struct part {
  std::uint64_t state;
  float weight;
};
/// What a group draws from instead of one state.
inline std::uint64_t mixed(std::span<const part> parts) {
  std::uint64_t all = 0;
  for (const part& p : parts) all = mix(mix(all, p.state), static_cast<std::uint64_t>(p.weight * 1024));
  return all;
}

/// A hash as a state, twice, so that a torn one shows.
inline void to_state(std::uint64_t hash, model::state_value& out) {
  out.format = state_layout;
  out.bytes.resize(state_bytes);
  const std::uint64_t both[2] = {hash, ~hash};
  std::memcpy(out.bytes.data(), both, state_bytes);
}
inline std::uint64_t from_state(const model::state_value& state) {
  std::uint64_t both[2];
  BOOST_REQUIRE_EQUAL(state.bytes.size(), state_bytes);
  std::memcpy(both, state.bytes.data(), state_bytes);
  BOOST_REQUIRE_EQUAL(both[0], ~both[1]);
  return both[0];
}
inline state_buffer state_of(std::uint64_t hash) {
  model::state_value state;
  to_state(hash, state);
  return std::make_shared<const model::state_value>(std::move(state));
}

/// What a row must answer: tokens up to the stop id (included) or the budget.
inline std::vector<token_id> expected_tokens(const std::vector<token_id>& prompt, std::uint32_t row,
                                             std::uint32_t budget, std::uint64_t beginning = 0,
                                             std::span<const engine::prompt_part> parts = {}) {
  std::uint64_t state = swallow_prompt(beginning, prompt, parts, prompt.size());
  std::vector<token_id> out;
  while (out.size() < budget) {
    out.push_back(drawn_from(state, row, static_cast<std::uint32_t>(out.size())));
    if (out.back() == stop_id) break;
    state = mix(state, static_cast<std::uint64_t>(out.back()));
  }
  return out;
}

/// The same of a mixture.
inline std::vector<token_id> expected_tokens(const std::vector<token_id>& prompt, std::uint32_t budget,
                                             std::vector<part> parts) {
  for (part& p : parts) p.state = swallow_prompt(p.state, prompt, {}, prompt.size());
  std::vector<token_id> out;
  while (out.size() < budget) {
    out.push_back(drawn_from(mixed(parts), 0, static_cast<std::uint32_t>(out.size())));
    if (out.back() == stop_id) break;
    for (part& p : parts) p.state = mix(p.state, static_cast<std::uint64_t>(out.back()));
  }
  return out;
}

/// A prompt token whose row gives logits that are not finite.
constexpr token_id not_finite = 1 << 20;

/// An engine as the contract describes it. Commands and ticks run at once, but results come one tick late, and buffers
/// are read and written when `moves_at_once` lets their states move: until then they must stay alive.
class model_engine {
 public:
  explicit model_engine(std::uint32_t slots) : slots_(slots) {}

  void operator()(const start_slot& c) {
    bring_in(c.slot);
    begin(slots_[c.slot] = {}, *c.params);
  }
  void operator()(const restart_slot& c) { begin(slots_[c.slot], *c.params); }
  void operator()(const write_slot& c) {
    bring_in(c.slot);
    slots_[c.slot].state = from_state(*c.state);
    coming_.push_back({c.state, c.slot});
  }
  void operator()(const clear_slot& c) {
    bring_in(c.slot);
    slots_[c.slot] = {};
  }
  void operator()(const copy_slot& c) {
    slots_[c.to].state = slots_[c.from].state;
    slots_[c.to].last = slots_[c.from].last;
    slots_[c.to].frozen = slots_[c.from].frozen;
  }
  void operator()(const park_slot& c) {
    bring_in(c.slot);
    outside_[c.to.get()] = slots_[c.slot];
    leaving_.push_back({c.to, c.to.get(), slots_[c.slot].state});
    BOOST_REQUIRE_LE(leaving_.size(), leaving_max);
  }
  void operator()(const unpark_slot& c) {
    bring_in(c.slot);
    for (const leaving_state& l : leaving_) BOOST_REQUIRE(l.filled != c.from.get());
    slots_[c.slot] = outside_.at(c.from.get());
    slots_[c.slot].row = c.params->row;
    slots_[c.slot].budget = c.params->max_tokens;
    coming_.push_back({c.from, c.slot});
    BOOST_REQUIRE_LE(coming_.size(), coming_max);
  }

  void run(const engine::tick_plan& plan) {
    engine::tick_result result;
    result.tick = ++ticks_;
    std::set<slot_id> seen;
    const auto comes = [this](const engine::row& row) { return is_coming(row.slot); };
    if (std::ranges::any_of(plan.rows, comes)) {  // no other row is delayed
      BOOST_REQUIRE(results_.empty());
      for (const auto& row : plan.rows)
        BOOST_REQUIRE(is_coming(row.slot) || row.group != 0 || row.kind != engine::row_kind::decode);
    }
    for (const auto& row : plan.rows) bring_in(row.slot);
    std::map<std::uint32_t, std::vector<std::size_t>> groups;  // rows that draw as one
    for (const auto& row : plan.rows) {
      BOOST_REQUIRE(seen.insert(row.slot).second);
      slot& s = slots_[row.slot];
      engine::row_result out;
      out.slot = row.slot;
      if (row.kind == engine::row_kind::decode) {
        if (s.frozen) {
          out.frozen = true;
          result.rows.push_back(out);
          continue;
        }
        BOOST_REQUIRE(!s.last.empty());
        const auto fed = mix(s.state, 1) % 4 == 0 ? s.last.begin() + 1 : s.last.end();  // is there room for the others?
        s.state = swallow(s.state, {s.last.begin(), fed});
        s.last.erase(s.last.begin(), fed);
        out.unfed = static_cast<std::uint32_t>(s.last.size());
      } else {
        BOOST_REQUIRE(row.tokens > 0);
        const auto tokens = std::span(plan.tokens).subspan(row.first_token, row.tokens);
        BOOST_REQUIRE_LE(row.chunked, row.tokens);
        for (std::uint32_t i = 0; i < row.chunked; ++i) {
          s.state = swallow(s.state, tokens.subspan(i, 1));
          if ((i + 1) % chunk_tokens == 0 || i + 1 == row.chunked) s.state = end_chunk(s.state);
        }
        s.state = swallow(s.state, tokens.subspan(row.chunked));
        out.finite = std::ranges::find(tokens, not_finite) == tokens.end();
        if (row.kind == engine::row_kind::score) out.scores.resize(row.tokens - (row.score_next == no_token ? 1 : 0));
      }
      if (row.kind != engine::row_kind::decode) s.last.clear();
      if (row.sample && row.group != 0) {
        groups[row.group].push_back(result.rows.size());
      } else if (row.sample && out.unfed == 0) {
        sample(s, s.state, out);
        run_ahead(s, out);
      }
      result.rows.push_back(out);
    }
    for (const auto& [group, rows] : groups) {
      std::vector<part> parts;
      for (const std::size_t i : rows) parts.push_back({slots_[plan.rows[i].slot].state, plan.rows[i].weight});
      for (const std::size_t i : rows) sample(slots_[plan.rows[i].slot], mixed(parts), result.rows[i]);
    }
    results_.push_back(std::move(result));
  }
  engine::tick_result collect() {
    engine::tick_result first = std::move(results_.front());
    results_.pop_front();
    return first;
  }
  /// Moves as many states as may, and counts.
  engine::moved_states moved() {
    for (std::size_t i = moves_at_once(); i > 0 && !leaving_.empty(); --i) {
      const leaving_state& first = leaving_.front();
      BOOST_REQUIRE(!first.alive.expired());
      if (!no_memory) to_state(first.state, first.filled->state);
      leaving_.pop_front();
      ++moved_.departed;
    }
    for (std::size_t i = moves_at_once(); i > 0 && !coming_.empty(); --i) bring_in_first();
    return moved_;
  }
  [[nodiscard]] std::size_t ticks_in_flight() const { return results_.size(); }
  /// The device is gone: nothing comes any more, and no buffer is touched.
  void lose() {
    results_.clear();
    leaving_.clear();
    coming_.clear();
  }
  std::function<std::size_t()> moves_at_once = [] { return std::numeric_limits<std::size_t>::max(); };
  std::size_t leaving_max = ~0u, coming_max = ~0u;
  bool no_memory = false;  ///< for states that leave: they become empty
  std::uint32_t forced_max = 0;
  [[nodiscard]] bool zeroed(slot_id i) const { return slots_[i].state == 0; }

 private:
  struct slot {
    std::uint64_t state = 0;
    std::uint32_t row = 0, sampled = 0, budget = 0;
    std::vector<token_id> last = {};  // not fed
    bool frozen = false;
  };
  struct leaving_state {
    std::weak_ptr<const void> alive;
    engine::parked_sequence* filled;
    std::uint64_t state;
  };
  struct coming_state {
    std::weak_ptr<const void> alive;
    slot_id slot;
  };
  static void sample(slot& s, std::uint64_t from, engine::row_result& out) {
    BOOST_REQUIRE(!s.frozen);
    if (s.sampled < s.budget) {
      out.sampled = true;
      out.token = drawn_from(from, s.row, s.sampled++);
      s.last.push_back(out.token);
    }
    end_at(s, out);
  }
  static void end_at(slot& s, engine::row_result& out) {
    if (out.sampled && s.last.back() == stop_id)
      out.stopped = engine::stop_cause::stop_id;
    else if (s.sampled == s.budget)
      out.stopped = engine::stop_cause::budget;
    s.frozen = out.stopped != engine::stop_cause::none;
  }
  /// Some tokens come with those before them: the same ones that would be sampled.
  void run_ahead(slot& s, engine::row_result& out) const {
    while (out.sampled && !s.frozen && out.forced.size() < forced_max) {
      const std::uint64_t ahead = swallow(s.state, s.last);
      if (mix(ahead, 2) % 3 == 0) return;
      out.forced.push_back(drawn_from(ahead, s.row, s.sampled++));
      s.last.push_back(out.forced.back());
      end_at(s, out);
    }
  }
  static void begin(slot& s, const sampling::sampling_params& params) {
    s = {s.state, params.row, 0, params.max_tokens, s.last, false};
  }
  [[nodiscard]] bool is_coming(slot_id slot) const {
    return std::ranges::find(coming_, slot, &coming_state::slot) != coming_.end();
  }
  void bring_in(slot_id slot) {
    while (is_coming(slot)) bring_in_first();
  }
  void bring_in_first() {
    BOOST_REQUIRE(!coming_.front().alive.expired());
    coming_.pop_front();
    ++moved_.arrived;
  }

  std::vector<slot> slots_;
  std::map<const void*, slot> outside_;
  std::deque<leaving_state> leaving_;
  std::deque<coming_state> coming_;
  engine::moved_states moved_;
  std::deque<engine::tick_result> results_;
  std::uint64_t ticks_ = 0;
};

/// What a client asks for.
struct order {
  std::vector<token_id> prompt;
  std::uint32_t n = 1, budget = 5;
  bool scored = false;
  std::string who = "a";
  duration patience = 1h;
  std::uint64_t beginning = 0;  ///< hash of `from`
  device::beginning from = {};
  std::vector<std::uint32_t> copies = {};  ///< positions
  bool settles = false, may_cut = true;
  duration life = 2h;
  std::vector<part> mixture = {};
  std::vector<engine::prompt_part> parts = {};  ///< of the prompt
};

struct client_row {
  std::vector<token_id> got;
  std::optional<finish_cause> end;
};
struct client {
  order wish;
  std::vector<client_row> rows;
  std::size_t scores = 0;
  bool admitted = false, cancelled = false, settled = false;
  bool begins_in_slot_only = false;
  state_key settles_as = {};
  std::optional<error_kind> refused = {};
  [[nodiscard]] bool over() const {
    if (refused) return true;
    for (const auto& r : rows)
      if (!r.end) return false;
    return true;
  }
};

/// What is known of a key that the scheduler was given.
struct asked_state {
  request_id by = 0;
  std::optional<std::uint64_t> hash;  ///< that it must have
  bool answered = false;
  state_buffer state = nullptr;
};

/// Scheduler, engine model, clients and sink, with their own clock.
struct world {
  explicit world(const scheduler_options& o) : options(o), schedule(o), engine(o.slots) {
    chunk_tokens = o.chunk_tokens;
    if (o.leaving_max != ~0u) engine.leaving_max = o.leaving_max + o.mixture_max;  // one mixture may always leave
    if (o.coming_max != ~0u) engine.coming_max = o.coming_max + o.mixture_max;
  }

  request_id send(std::vector<token_id> prompt, std::uint32_t n, std::uint32_t budget, bool scored = false,
                  const std::string& who = "a", duration patience = 1h) {
    return send(
        {.prompt = std::move(prompt), .n = n, .budget = budget, .scored = scored, .who = who, .patience = patience});
  }

  request_id send(order o) {
    submit s;
    s.id = ++last_id;
    s.reply_to = static_cast<std::uint32_t>(s.id % 3);
    s.client = o.who;
    s.prompt = o.prompt, s.parts = o.parts;
    s.score_prompt = o.scored;
    for (std::uint32_t row = 0; row < o.n; ++row) {
      sampling::sampling_params p;
      p.row = row;
      p.max_tokens = o.budget;
      p.stop_ids = {stop_id};
      s.rows.push_back(p);
    }
    s.queue_deadline = time.now() + o.patience;
    s.total_deadline = time.now() + o.life;
    s.from = std::move(o.from);  // the scheduler is the only one that keeps the state alive
    for (const std::uint32_t position : o.copies)
      s.copies.push_back({ask(0, swallow_prompt(o.beginning, o.prompt, o.parts, position)), position});
    client c;
    for (const part& p : o.mixture) s.mixture.push_back({{p.state ? state_of(p.state) : nullptr, {}}, p.weight});
    c.begins_in_slot_only = s.from.key && !s.from.state;
    if (o.settles) c.settles_as = s.settles_as = ask(1 + s.id % 5, std::nullopt);
    s.may_cut = o.may_cut;
    c.rows.resize(o.n);
    c.wish = std::move(o);
    clients[s.id] = std::move(c);
    untaken = std::move(s);
    call([&] { schedule.handle(std::move(*untaken), time.now()); });
    untaken.reset();
    return last_id;
  }

  void cancel(request_id id) {
    clients[id].cancelled = true;
    call([&] { schedule.handle(device::cancel{id}, time.now()); });
  }

  /// The text is the prompt, what came of the answer until `sampled`, and `more`.
  void settle(request_id id, std::uint32_t sampled, std::vector<token_id> more = {}) {
    client& c = clients.at(id);
    if (!std::exchange(c.settled, true) && c.settles_as) {
      std::uint64_t hash = swallow_prompt(c.wish.beginning, c.wish.prompt, c.wish.parts, c.wish.prompt.size());
      hash = swallow(hash, std::span(c.rows[0].got).first(sampled));
      asked.at(c.settles_as).hash = swallow(hash, more);
    }
    device::settle message{id, sampled, std::move(more)};
    call([&] { schedule.handle(std::move(message), time.now()); });
  }

  /// One turn of the device actor's loop. False when nothing ran.
  bool turn(std::span<const std::uint8_t> congested = {}) {
    time.advance(1ms);
    const tick_work* planned_work = nullptr;
    call([&] {
      schedule.expire(time.now());
      schedule.absorb(engine.moved());
      planned_work = &schedule.plan(time.now(), congested);
    });
    const tick_work& work = *planned_work;
    for (const auto& c : work.commands) std::visit(engine, c);
    const bool planned = !work.plan.rows.empty();
    if (planned) {
      BOOST_REQUIRE_LE(work.plan.tokens.size(), options.max_tick_tokens);
      BOOST_REQUIRE_LE(work.plan.rows.size(), options.max_tick_rows);
      engine.run(work.plan);
    }
    bool absorbed = false;
    while (engine.ticks_in_flight() > (planned ? 1u : 0u)) {
      const engine::tick_result result = engine.collect();
      call([&] { schedule.absorb(result, time.now()); });
      absorbed = true;
    }
    schedule.self_check();
    BOOST_REQUIRE_LE(schedule.counts().parked_bytes, options.parked_bytes_max + state_bytes);
    BOOST_REQUIRE_LE(schedule.counts().undo_bytes, options.undo_bytes_max);
    read_events();
    BOOST_REQUIRE_EQUAL(kept.size(), schedule.counts().slots_kept);
    return planned || absorbed;
  }
  /// Turns until nothing runs. The actor would sleep then: only a message or a deadline may bring new work.
  void run_dry() {
    while (turn() || schedule.waits_for_states()) {
    }
    if (schedule.next_deadline() > time.now() + 1ms) BOOST_REQUIRE(!turn());
  }
  void lose_device() {
    schedule.lose_device({error_kind::unavailable, "gone", ""});
    engine.lose();
    try {
      call([this] { schedule.end_lost(); });
    } catch (const std::bad_alloc&) {
      fails_from = 0;
      schedule.end_lost();
    }
    if (untaken) schedule.handle(std::move(*untaken), time.now());
    read_events();
  }
  /// A call of the scheduler, for which memory may lack.
  template <typename Work>
  void call(Work work) {
    if (fails_from == 0) return work();
    const failing_new lack(fails_from);
    work();
  }
  void read_events() {
    schedule.take_events([this](std::uint32_t to, events&& batch) {
      for (auto& e : batch.items) std::visit([&](auto& one) { read(to, one); }, e);
    });
    schedule.take_news([this](const state_news& news) { read(news); });
  }

  client& mine(std::uint32_t to, request_id id) {
    BOOST_REQUIRE_EQUAL(to, id % 3);
    return clients.at(id);
  }
  void read(std::uint32_t to, admitted& e) { mine(to, e.id).admitted = true; }
  void read(std::uint32_t to, rejected& e) {
    BOOST_REQUIRE(!mine(to, e.id).admitted);
    BOOST_REQUIRE(!mine(to, e.id).refused);
    mine(to, e.id).refused = e.why.kind;
  }
  void read(std::uint32_t to, prompt_scored& e) { mine(to, e.id).scores += e.scores.size(); }
  void read(std::uint32_t to, token& e) {
    client& c = mine(to, e.id);
    BOOST_REQUIRE(c.admitted && !c.rows[e.row].end);
    BOOST_REQUIRE_EQUAL(e.index, c.rows[e.row].got.size());
    c.rows[e.row].got.push_back(e.id_of_token);
  }
  void read(std::uint32_t to, row_finished& e) {
    client& c = mine(to, e.id);
    BOOST_REQUIRE(!c.rows[e.row].end);
    c.rows[e.row].end = e.cause;
  }
  void read(const state_news& news) {
    asked_state& a = asked.at(news.key);
    switch (news.what) {
      case state_news::kind::state:
        BOOST_REQUIRE(!std::exchange(a.answered, true));
        if (!news.state) return;
        BOOST_REQUIRE(a.hash);
        BOOST_REQUIRE_EQUAL(from_state(*news.state), *a.hash);
        a.state = news.state;
        return;
      case state_news::kind::slot_kept: BOOST_REQUIRE(kept.insert(news.key).second); return;
      case state_news::kind::slot_dropped: BOOST_REQUIRE_EQUAL(kept.erase(news.key), 1u); return;
    }
  }

  /// Every row's tokens are a prefix of what it must answer, and all of it when it was not cut short.
  void judge() {
    for (const auto& [id, c] : clients) {
      if (c.refused) continue;
      for (std::uint32_t row = 0; row < c.rows.size(); ++row) {
        const auto want = c.wish.mixture.empty()
                              ? expected_tokens(c.wish.prompt, row, c.wish.budget, c.wish.beginning, c.wish.parts)
                              : expected_tokens(c.wish.prompt, c.wish.budget, c.wish.mixture);
        const auto& got = c.rows[row].got;
        BOOST_REQUIRE_LE(got.size(), want.size());
        BOOST_REQUIRE(std::equal(got.begin(), got.end(), want.begin()));
        const auto end = c.rows[row].end;
        if (end == finish_cause::stop_id || end == finish_cause::budget) BOOST_REQUIRE_EQUAL(got.size(), want.size());
      }
      if (c.wish.scored && c.rows[0].end == finish_cause::budget)
        BOOST_REQUIRE_EQUAL(c.scores, c.wish.prompt.size() - 1);
    }
  }
  /// Every key was answered.
  void judge_keys() {
    for (const auto& [key, a] : asked)
      BOOST_REQUIRE_MESSAGE(a.answered, "the key " << key.owner << '/' << key.number << " of request " << a.by);
  }
  [[nodiscard]] const asked_state& settled(request_id id) const { return asked.at(clients.at(id).settles_as); }

  state_key ask(storage::session_uid owner, std::optional<std::uint64_t> hash) {
    const state_key key{owner, ++last_number};
    asked[key] = {last_id, hash};
    return key;
  }

  scheduler_options options;
  fake_clock time;
  scheduler schedule;
  model_engine engine;
  std::map<request_id, client> clients;
  std::map<state_key, asked_state> asked;
  std::set<state_key> kept;
  request_id last_id = 0;
  std::uint64_t last_number = 0;
  std::optional<submit> untaken;  // by the scheduler
  std::size_t fails_from = 0;     // allocations of at least this size fail; 0: none
};

inline scheduler_options small(std::uint32_t slots) {
  scheduler_options o;
  o.slots = slots;
  o.max_tick_tokens = 16;
  o.max_tick_rows = 8;
  o.state = state_layout;
  o.prefill_chunk_tokens = 5;
  o.waiting_max = 50;
  o.turn_tokens = 6;
  o.keeps_states = true;
  return o;
}

/// A prompt whose answer meets no stop id within `endless` tokens.
inline std::vector<token_id> endless_prompt() {
  for (token_id first = 0; first < 100 * vocab; ++first)
    if (expected_tokens({first, first}, 0, endless).size() == endless) return {first, first};
  BOOST_FAIL("no endless prompt");
  return {};
}

/// Chunk size of an engine whose ticks carry that many tokens; 0: none.
inline std::uint32_t some_chunk(std::mt19937_64& random, std::uint32_t max_tick_tokens) {
  const auto wanted = 2 * (1 + static_cast<std::uint32_t>(random() % 4));
  return std::min(wanted, (max_tick_tokens - 1) / 2 * 2);
}

inline std::vector<token_id> random_prompt(std::mt19937_64& random, std::size_t longest) {
  std::vector<token_id> prompt(1 + random() % longest);
  for (auto& t : prompt) t = static_cast<token_id>(random() % vocab);
  return prompt;
}

}  // namespace skein::test
