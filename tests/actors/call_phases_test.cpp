// Every message that can reach a generation call, in every phase, and every message after that one. A table says which
// phase each leads to. No order of messages makes an illegal transition, which would end this program; whatever comes,
// the client gets at most one response, and nothing is left behind: no device work, lease, memory, or entry in the
// register.
#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "actors/request/generation/phase.hpp"
#include "protocol/requests/dialect.hpp"
#include "tests/actors/session_bench.hpp"

namespace {

using namespace skein;
using namespace skein::request;
using namespace std::chrono_literals;

struct phase_bench : test::session_bench {
  phase_bench() {
    sessions.holds_back = true;
    context->settings.inline_json_bytes_max = 1000;
    context->settings.inline_text_bytes_max = 200;
  }

  /// A call whose body has not come.
  void open(const std::string& text, const protocol::dialect& as) {
    body = text;
    out = std::make_shared<test::response_recorder>();
    call_origin origin;
    origin.dialect = &as;
    origin.request_name = "req-1";
    origin.received = time.now();
    origin.model = model;
    origin.who = std::make_shared<const caller>(who);
    origin.share = share_of(*context, *origin.who, "127.0.0.1", true);
    origin.named = [this](const std::string& id) { name = id; };
    call = std::make_unique<generation_call>(
        origin, context, hub, [this](std::function<void()> w) { post(std::move(w)); }, out);
  }
  void start(const std::string& text, const protocol::dialect& as) {
    open(text, as);
    call->body(text);
    read_mailbox();
  }
  void generate() {
    pump();
    admit(submitted.size() - 1);
  }
  void tick() {
    hub.tick(time.now());
    pump();
  }
  /// Straight to the call, even if the hub would drop it.
  void event(device::event e) {
    call->on_event(0, e);
    call->on_events_done();
    read_mailbox();
  }
  void reply(persistence::reply r) {
    call->on_reply(r);
    read_mailbox();
  }
  void run_long_work() {
    for (auto works = std::exchange(pool.long_work, {}); !works.empty(); works = std::exchange(pool.long_work, {}))
      for (const auto& work : works) work();
    for (const auto& work : std::exchange(pool.posted, {})) work();
    read_mailbox();
  }

  caller who;
  std::string body, name;
};

const std::string chat = R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":40,"temperature":0)";
const std::string turn = R"({"session_id":"s",)" + chat.substr(1);
const std::string completion = R"({"max_tokens":40,"stream":true,"prompt":")";
const std::string response = R"({"input":"Hi","max_output_tokens":40,"temperature":0)";

/// A way into a phase.
struct place {
  std::string name;
  call_phase phase;
  std::function<void(phase_bench&)> go;
};

const std::vector<place>& places() {
  using enum call_phase;
  namespace dialects = protocol::dialects;
  static const std::vector<place> all{
      {"no body", reading, [](phase_bench& b) { b.open(chat + "}", dialects::chat); }},
      {"parsing on the worker pool", reading,
       [](phase_bench& b) { b.start(completion + std::string(1500, 'x') + "\"}", dialects::completions); }},
      {"no model yet", reading,
       [](phase_bench& b) {
         b.context->models->put({{"tiny"}, nullptr, loaded_models::absence::coming}, true);
         b.start(chat + "}", dialects::chat);
       }},
      {"a turn", opening_session, [](phase_bench& b) { b.start(turn + "}", dialects::chat); }},
      {"a response", opening_session, [](phase_bench& b) { b.start(response + "}", dialects::responses); }},
      {"a long text", tokenising,
       [](phase_bench& b) { b.start(completion + std::string(500, 'x') + "\"}", dialects::completions); }},
      {"a prompt", finding_prefix, [](phase_bench& b) { b.start(completion + "Hi\"}", dialects::completions); }},
      {"a prompt", queued,
       [](phase_bench& b) {
         b.start(completion + "Hi\"}", dialects::completions);
         b.pump();
       }},
      {"a chat", queued,
       [](phase_bench& b) {
         b.start(chat + "}", dialects::chat);
         b.pump();
       }},
      {"a turn", queued,
       [](phase_bench& b) {
         b.start(turn + "}", dialects::chat);
         b.pump();
       }},
      {"a response", queued,
       [](phase_bench& b) {
         b.start(response + "}", dialects::responses);
         b.pump();
       }},
      {"a prompt", generating,
       [](phase_bench& b) {
         b.start(completion + "Hi\"}", dialects::completions);
         b.generate();
       }},
      {"a chat", generating,
       [](phase_bench& b) {
         b.start(chat + R"(,"stream":true})", dialects::chat);
         b.generate();
       }},
      {"a turn", generating,
       [](phase_bench& b) {
         b.start(turn + R"(,"stream":true})", dialects::chat);
         b.generate();
       }},
      {"a turn that is not stored", generating,
       [](phase_bench& b) {
         b.start(turn + R"(,"store":false})", dialects::chat);
         b.generate();
       }},
      {"a response", generating,
       [](phase_bench& b) {
         b.start(response + "}", dialects::responses);
         b.generate();
       }},
      {"a slow reader", generating,
       [](phase_bench& b) {
         b.start(chat + R"(,"stream":true})", dialects::chat);
         b.generate();
         b.out->queued = 10'000'000;
         b.say(">a", 0, b.submitted.size() - 1);
         b.out->queued = 0;
         BOOST_REQUIRE_EQUAL(b.pauses, 1);
       }},
      {"a turn", committing,
       [](phase_bench& b) {
         b.start(turn + "}", dialects::chat);
         b.generate();
         b.finish(device::finish_cause::budget, 0, b.submitted.size() - 1);
       }},
      {"a response", committing,
       [](phase_bench& b) {
         b.start(response + "}", dialects::responses);
         b.generate();
         b.finish(device::finish_cause::budget, 0, b.submitted.size() - 1);
       }},
      {"an answer", ended,
       [](phase_bench& b) {
         b.start(chat + "}", dialects::chat);
         b.generate();
         b.finish(device::finish_cause::budget, 0, b.submitted.size() - 1);
       }},
      {"a refusal", ended, [](phase_bench& b) { b.start("{", dialects::chat); }},
  };
  return all;
}

struct message {
  std::string name;
  std::function<void(phase_bench&)> tell;
  bool made_up = false;  ///< the persistence actor knows nothing of it
};

void begin(phase_bench& b) {
  auto read = protocol::read_request(turn + "}", protocol::dialects::chat, {}, b.context->settings.limits);
  b.call->begin(std::move(*read.request));
}

template <typename Reply>
message reply_of(const std::string& name, Reply r) {
  return {name, [r](phase_bench& b) { b.reply(r); }, true};
}

const std::vector<message>& messages() {
  static const error full{error_kind::overloaded, "full", ""}, late{error_kind::timeout, "late", ""};
  static const std::vector<message> all{
      {"body", [](phase_bench& b) { b.call->body(b.body); }},
      {"begin", begin},
      {"long work", [](phase_bench& b) { b.run_long_work(); }},
      {"writable", [](phase_bench& b) { b.call->writable(); }},
      {"gone", [](phase_bench& b) { b.call->gone("client closed", connection::client_gone); }},
      {"stop", [](phase_bench& b) { (void)b.call->obey(order::stop); }},
      {"pause", [](phase_bench& b) { (void)b.call->obey(order::pause); }},
      {"park", [](phase_bench& b) { (void)b.call->obey(order::park); }},
      {"tick", [](phase_bench& b) { b.tick(); }},
      {"model and tick",
       [](phase_bench& b) {
         b.context->models->put(b.model, true);
         b.tick();
       }},
      {"tick after prefix",
       [](phase_bench& b) {
         b.time.advance(3s);
         b.hub.tick(b.time.now());
       }},
      {"deadline",
       [](phase_bench& b) {
         b.time.advance(2h);
         b.hub.tick(b.time.now());
       }},
      {"revoked",
       [](phase_bench& b) {
         b.who.revoked = true;
         b.hub.tick(b.time.now());
       }},
      {"shutdown",
       [](phase_bench& b) {
         b.context->draining = true;
         b.hub.tick(b.time.now());
       }},
      {"admitted",
       [](phase_bench& b) {
         b.event(device::admitted{1, 5us});
       }},
      {"full",
       [](phase_bench& b) {
         b.event(device::rejected{1, full});
       }},
      {"rejected",
       [](phase_bench& b) {
         b.event(device::rejected{1, late});
       }},
      {"scored",
       [](phase_bench& b) {
         b.event(device::prompt_scored{1, {}});
       }},
      {"token",
       [](phase_bench& b) {
         b.event(device::token{1, 0, 0, 'x', nullptr});
       }},
      {"finished",
       [](phase_bench& b) {
         b.event(device::row_finished{1, 0, device::finish_cause::budget});
       }},
      {"lost",
       [](phase_bench& b) {
         b.event(device::row_finished{1, 0, device::finish_cause::device_lost});
       }},
      {"nothing", [](phase_bench& b) { b.call->on_events_done(); }},
      {"persistence", [](phase_bench& b) { b.pump(); }},
      reply_of("opened", persistence::session_opened{}),
      reply_of("replayed", persistence::session_replayed{}),
      reply_of("refused", persistence::refused{{}, late}),
      reply_of("prefix", persistence::prefix_found{}),
      reply_of("committed", persistence::turn_committed{}),
      reply_of("answer", persistence::answer{}),
  };
  return all;
}

/// Ends the call, and checks that nothing of it is left.
void judge(phase_bench& b, bool knows_all) {
  if (b.call->phase() != call_phase::ended) b.call->gone("client closed", connection::client_gone);
  b.pump();
  b.call.reset();
  b.pump();
  b.sessions.commit_now(b.hub);
  b.pool.long_work.clear();
  b.pool.posted.clear();
  b.submitted.clear();
  BOOST_TEST(b.context->memory->held() == 0u);
  BOOST_TEST(b.context->requests->running().empty());
  if (knows_all) BOOST_TEST(b.sessions.leases.empty());
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_message_may_follow_every_message_in_every_phase) {
  for (const place& where : places())
    for (const message& first : messages())
      for (const message& second : messages()) {
        BOOST_TEST_CONTEXT(where.name << ", then " << first.name << ", then " << second.name) {
          phase_bench b;
          where.go(b);
          BOOST_REQUIRE(b.call->phase() == where.phase);
          first.tell(b);
          const call_phase between = b.call->phase();
          BOOST_TEST((where.phase <= between));  // no phase comes back
          second.tell(b);
          BOOST_TEST((between <= b.call->phase()));
          judge(b, !first.made_up && !second.made_up);
        }
      }
}

// One letter for the phase after each message, in the order of messages(): r reading, o opening_session, t tokenising,
// f finding_prefix, q queued, g generating, c committing, e ended.
BOOST_AUTO_TEST_CASE(each_message_leads_to_one_phase) {
  const std::vector<std::string> table{
      "forrerrrrrrrerrrrrrrrrrrrrrrr",  // no body
      "rrtrerrrrrreerrrrrrrrrrrrrrrr",  // parsing on the worker pool
      "rrrrerrrrqreeerrrrrrrrrrrrrrr",  // no model yet
      "ooooeeoeqqoeeoooooooooqfeeooo",  // opening_session: a turn
      "ooooeeoeqqoeeoooooooooqfeeooo",  // opening_session: a response
      "ttfteetettteetttttttttttttttt",  // a long text
      "ffffeefeqqqeefffffffffqffqqff",  // finding_prefix: a prompt
      "qqqqeeqeqqqqeqgeeqqeeqqqqqqqq",  // queued: a prompt
      "qqqqeeqeqqqqeqgeeqqeeqqqqqqqq",  // a chat
      "qqqqeeqeqqqqeqgeeqqceqqqqqqqq",  // a turn
      "qqqqecqcqqqqeqgeeqqceqqqqqqqq",  // a response
      "ggggeegeggggegggeggeegggggggg",  // generating: a prompt
      "ggggeeeeggggegggeggeegggggggg",  // a chat
      "ggggecgcggggegggeggcegggggggg",  // a turn
      "ggggeegeggggegggeggeegggggggg",  // a turn that is not stored
      "ggggecgcggggegggeggcegggggggg",  // a response
      "ggggeeeeggggegggeggeegggggggg",  // a slow reader
      "ccccecccccceeccccccccccccecec",  // committing: a turn
      "ccccecccccceeccccccccccccecec",  // a response
      "eeeeeeeeeeeeeeeeeeeeeeeeeeeee",  // ended: an answer
      "eeeeeeeeeeeeeeeeeeeeeeeeeeeee",  // a refusal
  };
  const std::string letters = "rotfqgce";
  std::vector<std::string> found;
  for (const place& where : places()) {
    std::string row;
    for (const message& m : messages()) {
      phase_bench b;
      where.go(b);
      m.tell(b);
      row += letters[static_cast<std::size_t>(b.call->phase())];
    }
    found.push_back(row);
  }
  BOOST_TEST(found == table, boost::test_tools::per_element());
}
