// A device whose masks come from the host: a row with a rule gets its next row in a plan only when its last token is
// known, and the other rows do not wait for it.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tests/actors/scheduler_world.hpp"

namespace {

using namespace skein;
using namespace skein::test;

struct some_rule final : sampling::constraint {
  [[nodiscard]] std::unique_ptr<sampling::token_rule> begin() const override { return nullptr; }
  [[nodiscard]] const std::string& field() const override { return name; }
  std::string name = "regex";
};

submit request(request_id id, bool with_rule) {
  submit message;
  message.id = id;
  message.prompt = {1, 2, 3};
  message.rows.resize(1);
  message.rows[0].max_tokens = endless;
  if (with_rule) message.rows[0].rule = std::make_shared<some_rule>();
  message.queue_deadline = message.total_deadline = steady_time::max();
  return message;
}

/// Plans a tick; returns its rows.
std::vector<engine::row> plan(scheduler& of) { return of.plan(steady_time{} + 1s).plan.rows; }

void absorb(scheduler& to, const std::vector<engine::row>& rows) {
  engine::tick_result done;
  for (const auto& row : rows) {
    auto& result = done.rows.emplace_back();
    result.slot = row.slot;
    result.sampled = row.sample;
    result.token = 5;
  }
  to.absorb(done, steady_time{} + 1s);
}

scheduler_options options(bool rules_wait) {
  scheduler_options o = small(2);
  o.limits.rules_wait = rules_wait;
  return o;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(scheduler_rules)

BOOST_AUTO_TEST_CASE(a_row_with_a_rule_waits_for_its_token) {
  for (const bool rules_wait : {false, true}) {
    scheduler of(options(rules_wait));
    of.handle(request(1, false), steady_time{});
    of.handle(request(2, true), steady_time{});
    auto before = plan(of);
    BOOST_REQUIRE_EQUAL(before.size(), 2u);  // both prompts
    for (int i = 0; i < 4; ++i) {
      const auto ahead = plan(of);  // the tick before is in flight
      BOOST_TEST(ahead.size() == (rules_wait ? 1u : 2u));
      absorb(of, before);
      before = plan(of);
      BOOST_TEST(before.size() == 2u);
      absorb(of, ahead);
    }
    absorb(of, before);
  }
}

BOOST_AUTO_TEST_CASE(alone_it_is_planned_after_each_result) {
  scheduler of(options(true));
  of.handle(request(1, true), steady_time{});
  auto rows = plan(of);
  for (int i = 0; i < 4; ++i) {
    BOOST_REQUIRE_EQUAL(rows.size(), 1u);
    BOOST_TEST(plan(of).empty());
    absorb(of, rows);
    rows = plan(of);
  }
  absorb(of, rows);
}

BOOST_AUTO_TEST_CASE(forced_tokens_are_reported_like_sampled_ones) {
  scheduler of(options(true));
  submit wanted = request(1, true);
  wanted.rows[0].logprobs = true;
  wanted.rows[0].top_logprobs = 3;
  of.handle(std::move(wanted), steady_time{});
  const auto rows = plan(of);
  BOOST_REQUIRE_EQUAL(rows.size(), 1u);
  engine::tick_result done;
  auto& row = done.rows.emplace_back();
  row.slot = rows[0].slot, row.sampled = true, row.token = 5, row.logprobs.logprob = -1, row.logprobs.count = 2;
  row.forced = {8, 9};
  row.stopped = engine::stop_cause::stop_id;
  of.absorb(done, steady_time{} + 1s);
  std::vector<token_id> tokens;
  std::vector<std::uint32_t> indices;
  std::vector<float> logprobs;
  std::optional<finish_cause> end;
  of.take_events([&](std::uint32_t, events&& batch) {
    for (const auto& e : batch.items) {
      if (const auto* finished = std::get_if<row_finished>(&e)) end = finished->cause;
      const auto* one = std::get_if<token>(&e);
      if (!one) continue;
      BOOST_TEST(!end.has_value());
      tokens.push_back(one->id_of_token);
      indices.push_back(one->index);
      logprobs.push_back(one->logprobs->logprob);
      BOOST_TEST(one->logprobs->count == (tokens.size() == 1 ? 2u : 1u));
      if (tokens.size() > 1) BOOST_TEST(one->logprobs->top[0].token == one->id_of_token);
    }
  });
  BOOST_TEST(tokens == (std::vector<token_id>{5, 8, 9}), boost::test_tools::per_element());
  BOOST_TEST(indices == (std::vector<std::uint32_t>{0, 1, 2}), boost::test_tools::per_element());
  BOOST_TEST(logprobs == (std::vector<float>{-1, 0, 0}), boost::test_tools::per_element());
  BOOST_TEST((end == finish_cause::stop_id));
  BOOST_TEST(of.counts().generated_tokens == 3u);
}

BOOST_AUTO_TEST_CASE(a_mixture_with_a_rule_is_refused) {
  scheduler of(options(true));
  submit mixed = request(1, true);
  mixed.mixture = {{{state_of(1), {}}, 1.0f}, {{state_of(2), {}}, 1.0f}};
  of.handle(std::move(mixed), steady_time{});
  std::vector<std::string> refused;
  of.take_events([&](std::uint32_t, events&& batch) {
    for (const auto& e : batch.items)
      if (const auto* no = std::get_if<rejected>(&e)) refused.push_back(no->why.field);
  });
  BOOST_TEST(refused == std::vector<std::string>{"regex"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
