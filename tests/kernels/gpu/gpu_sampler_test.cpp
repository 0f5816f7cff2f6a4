// What surrounds a draw on the device: stop ids and budgets, positions that are saved, restored and copied, batches,
// recorded graphs, scores, mixtures of states; each against the host's sampler or against the same draw alone.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/kernels/gpu/check_scores.hpp"
#include "tests/kernels/gpu/device_samplers.hpp"
#include "tests/sampling/random_cases.hpp"

using namespace skein;
using namespace skein::test;
using sampling::sampling_params;

namespace {

constexpr std::uint32_t vocab = 5001;
constexpr gpu::sampler_limits limits{.vocab = vocab, .slots = 8, .rows_max = 8, .bias_max = 8, .stop_ids_max = 3};

std::vector<float> normal_logits(std::uint32_t seed, float deviation = 2) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> logits(vocab);
  for (float& x : logits) x = normal(random);
  return logits;
}

// Few tokens are likely, so that they are drawn again and again.
std::vector<float> peaked_logits(std::uint32_t seed) {
  std::vector<float> logits = normal_logits(seed, 0.5f);
  for (std::uint32_t i = 0; i < 12; ++i) logits[i * 401] += 12;
  return logits;
}

sampling_params lively(std::uint32_t seed) {
  sampling_params p;
  p.temperature = 1.2f;
  p.top_p = 0.9f;
  p.first_penalty = 0.7f;
  p.repeat_penalty = 0.3f;
  p.penalty_decay = 0.97f;
  p.logit_bias = {{7, 1.5f}, {401, -2.0f}, {7, 0.25f, 1, 4}, {33, 3.0f, 2, 0}, {vocab, 100.0f}, {-1, 100.0f}};
  p.seed = seed;
  p.logprobs = true;
  p.top_logprobs = 5;
  return p;
}

std::vector<float> side_by_side(std::initializer_list<std::vector<float>> rows) {
  std::vector<float> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

bool equal(const gpu::sampled_token& a, const gpu::sampled_token& b) {
  if (a.token != b.token || a.sampled != b.sampled || a.stopped != b.stopped) return false;
  if (a.scores.logprob != b.scores.logprob || a.scores.top_count != b.scores.top_count) return false;
  return std::memcmp(a.scores.top, b.scores.top, a.scores.top_count * sizeof a.scores.top[0]) == 0;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gpu_sampler)

BOOST_AUTO_TEST_CASE(a_long_run_decays_and_repeats_its_penalties_as_on_the_host) {
  device_samplers device(limits);
  sampling_params p = lively(3);
  p.max_tokens = 1000;
  device.start(5, p);
  sampling::sampler host(vocab);
  host.start(p);
  for (std::uint32_t n = 0; n < 200; ++n) {
    const auto logits = peaked_logits(n % 7);
    const auto sampled = device.sample(std::vector<slot_id>{5}, logits).front();
    const auto expected = host.sample(logits);
    BOOST_REQUIRE_EQUAL(sampled.token, expected.token);
    check_scores(sampled.scores, expected.logprobs);
  }
  pinned_position position(vocab);
  gpu::require(device.samplers.save(device.in, 5, position.view()));
  gpu::require(device.in.synchronize());
  const auto ours = position.saved(), theirs = host.save();
  BOOST_CHECK_EQUAL(ours.generated, 200u);
  BOOST_REQUIRE_EQUAL(ours.penalties.size(), theirs.penalties.size());
  BOOST_CHECK(ours.penalties.size() > 3);
  BOOST_CHECK(ours.penalties.size() < 150);
  for (std::size_t i = 0; i < ours.penalties.size(); ++i) {
    BOOST_CHECK_EQUAL(ours.penalties[i].token, theirs.penalties[i].token);
    BOOST_CHECK_EQUAL(ours.penalties[i].penalty, theirs.penalties[i].penalty);
  }
}

// More than threads hold in registers.
BOOST_AUTO_TEST_CASE(thousands_of_penalties_count_as_a_few_do) {
  device_samplers device(limits);
  const sampling_params p = lively(4);
  sampling::sampler::saved before;
  for (token_id t = 4500; t-- > 0;) before.penalties.push_back({t, static_cast<float>(t % 7) / 2});
  pinned_position position(vocab);
  position.fill(before);
  gpu::require(device.samplers.restore(device.in, 1, settings_of(p), bias_of(p), p.stop_ids, position.view()));
  sampling::sampler host(vocab);
  host.start(p);
  host.restore(before);
  for (std::uint32_t n = 0; n < 10; ++n) {
    const auto logits = normal_logits(n, 4);
    const auto sampled = device.sample(std::vector<slot_id>{1}, logits).front();
    const auto expected = host.sample(logits);
    BOOST_REQUIRE_EQUAL(sampled.token, expected.token);
    check_scores(sampled.scores, expected.logprobs);
  }
}

BOOST_AUTO_TEST_CASE(penalties_beyond_their_room_are_left_out) {
  gpu::sampler_limits little = limits;
  little.penalties_max = 4;
  device_samplers device(little);
  sampling_params p;
  p.temperature = 0;
  p.first_penalty = 2;
  p.max_tokens = 100;
  device.start(0, p);
  std::vector<float> logits(vocab, 0.0f);
  for (std::uint32_t i = 0; i < 6; ++i) logits[i] = 5.5f - static_cast<float>(i) / 4;
  const token_id expected[] = {0, 1, 2, 3, 4, 4, 4};  // four are listed, the fifth has found no room
  for (const token_id token : expected)
    BOOST_CHECK_EQUAL(device.sample(std::vector<slot_id>{0}, logits)[0].token, token);
  BOOST_CHECK_EQUAL(device.record(0).penalty_count, 4u);
  BOOST_CHECK_EQUAL(device.record(0).generated, 7u);
}

BOOST_AUTO_TEST_CASE(stop_ids_and_budgets_freeze_their_slot) {
  device_samplers device(limits);
  sampling_params p;
  p.temperature = 0;
  p.stop_ids = {40, 41, 42};
  p.max_tokens = 2;
  device.start(1, p);
  device.start(2, p);
  std::vector<float> goes_on(vocab, 0.0f), stops(vocab, 0.0f);
  goes_on[9] = 1;
  stops[42] = 1;
  const auto first = device.sample(std::vector<slot_id>{1, 2}, side_by_side({goes_on, stops}));
  BOOST_CHECK_EQUAL(first[0].token, 9);
  BOOST_CHECK(first[0].stopped == gpu::sample_stop::none);
  BOOST_CHECK_EQUAL(first[1].token, 42);
  BOOST_CHECK(first[1].stopped == gpu::sample_stop::stop_id);
  BOOST_CHECK_EQUAL(device.record(1).frozen, 0u);
  BOOST_CHECK_EQUAL(device.record(1).last_token, 9);
  BOOST_CHECK_EQUAL(device.record(2).frozen, 1u);
  BOOST_CHECK_EQUAL(device.record(2).last_token, 42);

  const auto second = device.sample(std::vector<slot_id>{1}, goes_on);
  BOOST_CHECK(second[0].stopped == gpu::sample_stop::budget);
  BOOST_CHECK_EQUAL(device.record(1).frozen, 1u);
  BOOST_CHECK_EQUAL(device.record(1).generated, 2u);

  gpu::require(device.samplers.restart(device.in, 1, settings_of(p), {}, {}));
  BOOST_CHECK_EQUAL(device.record(1).frozen, 0u);
  BOOST_CHECK_EQUAL(device.record(1).generated, 0u);
  BOOST_CHECK_EQUAL(device.record(1).penalty_count, 0u);
  BOOST_CHECK_EQUAL(device.record(1).last_token, 9);
  device.start(1, p);
  BOOST_CHECK_EQUAL(device.record(1).last_token, no_token);
}

BOOST_AUTO_TEST_CASE(a_saved_or_copied_position_continues_as_the_first) {
  device_samplers device(limits);
  device.start(0, lively(11));
  sampling_params other = lively(11);
  other.row = 1;
  device.start(1, other);
  sampling::sampler host(vocab);
  host.start(lively(11));
  for (std::uint32_t n = 0; n < 5; ++n) {
    static_cast<void>(device.sample(std::vector<slot_id>{0}, peaked_logits(n)));
    static_cast<void>(host.sample(peaked_logits(n)));
  }
  const token_id last = device.record(0).last_token;

  pinned_position position(vocab);
  gpu::require(device.samplers.save(device.in, 0, position.view()));
  gpu::require(device.in.synchronize());
  const sampling_params p = lively(11);
  gpu::require(device.samplers.restore(device.in, 2, settings_of(p), bias_of(p), p.stop_ids, position.view()));
  gpu::require(device.samplers.copy_position(device.in, 0, 1));
  BOOST_CHECK_EQUAL(device.record(2).last_token, last);
  BOOST_CHECK_EQUAL(device.record(1).last_token, last);
  BOOST_CHECK_EQUAL(device.record(1).settings.row, 1u);
  BOOST_CHECK_EQUAL(device.record(1).generated, 5u);

  sampling::sampler second_row(vocab);
  second_row.start(other);
  second_row.restore(host.save());
  for (std::uint32_t n = 5; n < 15; ++n) {
    const auto logits = peaked_logits(n);
    const auto sampled = device.sample(std::vector<slot_id>{0, 1, 2}, side_by_side({logits, logits, logits}));
    const token_id expected = host.sample(logits).token;
    BOOST_CHECK_EQUAL(sampled[0].token, expected);
    BOOST_CHECK_EQUAL(sampled[1].token, second_row.sample(logits).token);
    BOOST_CHECK(equal(sampled[0], sampled[2]));
  }
}

BOOST_AUTO_TEST_CASE(forced_tokens_count_as_sampled_ones) {
  device_samplers device(limits);
  const sampling_params p = lively(31);
  sampling::sampler host(vocab);
  host.start(p);
  device.start(2, p);
  device.start(5, p);
  const auto sample_both = [&](std::uint32_t n) {
    const auto logits = peaked_logits(n);
    const auto sampled = device.sample(std::vector<slot_id>{2}, logits).front();
    const auto expected = host.sample(logits);
    BOOST_REQUIRE_EQUAL(sampled.token, expected.token);
    check_scores(sampled.scores, expected.logprobs);
  };
  for (std::uint32_t n = 0; n < 5; ++n) sample_both(n);
  gpu::forced_run run{.slot = 2, .count = 4, .tokens = {401, 4999, 401, 0}}, ends = run;
  ends.slot = 5, ends.count = 1, ends.stopped = gpu::sample_stop::stop_id;
  gpu::require(device.samplers.force(device.in, std::vector{run, ends}));
  for (std::uint32_t i = 0; i < run.count; ++i) host.record(run.tokens[i]);
  BOOST_CHECK_EQUAL(device.record(2).generated, 9u);
  BOOST_CHECK_EQUAL(device.record(2).last_token, 0);
  BOOST_CHECK_EQUAL(device.record(2).frozen, 0u);
  BOOST_CHECK_EQUAL(device.record(5).last_token, 401);
  BOOST_CHECK_EQUAL(device.record(5).frozen, 1u);
  for (std::uint32_t n = 5; n < 20; ++n) sample_both(n);
}

BOOST_AUTO_TEST_CASE(penalties_that_are_given_count_as_those_of_a_prior) {
  device_samplers device(limits);
  sampling_params p = lively(21);
  device.start(0, p);
  static_cast<void>(device.sample(std::vector<slot_id>{0}, peaked_logits(0)));
  const token_id last = device.record(0).last_token;
  const auto prior = sampling::penalties_of(std::vector<token_id>{401, 7, 401, 0, 4999}, p);
  p.prior = std::make_shared<const std::vector<sampling::token_penalty>>(prior);
  pinned_position position(vocab);
  position.fill({0, prior, nullptr});
  gpu::require(device.samplers.restart(device.in, 0, settings_of(p), bias_of(p), p.stop_ids));
  gpu::require(device.samplers.give_penalties(device.in, 0, position.view()));
  BOOST_CHECK_EQUAL(device.record(0).last_token, last);
  BOOST_CHECK_EQUAL(device.record(0).penalty_count, 4u);
  sampling::sampler host(vocab);
  host.start(p);
  for (std::uint32_t n = 0; n < 20; ++n) {
    const auto logits = peaked_logits(n);
    const auto sampled = device.sample(std::vector<slot_id>{0}, logits).front();
    const auto expected = host.sample(logits);
    BOOST_REQUIRE_EQUAL(sampled.token, expected.token);
    check_scores(sampled.scores, expected.logprobs);
  }
}

BOOST_AUTO_TEST_CASE(a_row_samples_the_same_alone_and_in_a_batch) {
  device_samplers device(limits);
  const auto own = normal_logits(1);
  for (std::uint32_t n = 0; n < 10; ++n) {
    device.start(3, lively(n));
    const auto alone = device.sample(std::vector<slot_id>{3}, own).front();
    device.start(3, lively(n));
    device.start(0, lively(100 + n));
    device.start(7, {});
    const std::vector<float> flat(vocab, 1.0f);
    const auto mates = device.sample(std::vector<slot_id>{0, 7, 3}, side_by_side({normal_logits(n), flat, own}));
    BOOST_CHECK(equal(alone, mates[2]));
  }
}

BOOST_AUTO_TEST_CASE(sampling_is_captured_in_a_graph_with_room_for_more_rows) {
  device_samplers device(limits);
  constexpr std::uint32_t room = 6;
  gpu::sampled_token untouched;
  untouched.token = 123;
  const std::vector<gpu::sampled_token> before(limits.rows_max, untouched);
  const auto recorded = gpu::graph::record(device.in, [&] {
    return device.samplers.queue_samples(device.in, {device.count.data(), device.rows.data(), room},
                                         {device.logits.data(), nullptr, nullptr}, device.out.data());
  });
  BOOST_REQUIRE(recorded);
  sampling::sampler host(vocab);
  for (const std::uint32_t count : {3u, 0u, 6u}) {
    for (slot_id s = 0; s < 8; ++s) device.start(s, lively(s));
    std::vector<gpu::sample_row> rows;
    std::vector<float> logits;
    for (std::uint32_t i = 0; i < room; ++i) {
      rows.push_back({room - 1 - i, i == 1 ? gpu::no_slot : i});
      const auto row = normal_logits(10 * count + room - 1 - i);
      logits.insert(logits.begin(), row.begin(), row.end());
    }
    device.rows.write(rows, device.in);
    device.logits.write(logits, device.in);
    device.count.write(std::span(&count, 1), device.in);
    device.out.write(before, device.in);
    gpu::require(recorded->launch(device.in));
    const auto out = device.out.read(device.in);
    for (std::uint32_t i = 0; i < limits.rows_max; ++i) {
      if (i >= count || i == 1) {
        BOOST_CHECK(equal(out[i], untouched));
        continue;
      }
      host.start(lively(i));
      BOOST_CHECK_EQUAL(out[i].token, host.sample(normal_logits(10 * count + room - 1 - i)).token);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_mask_without_tokens_samples_none) {
  device_samplers device(limits);
  device.start(0, lively(1));
  const std::vector<std::uint32_t> nothing((vocab + 31) / 32, 0);
  const auto sampled = device.sample(std::vector<slot_id>{0}, normal_logits(1), nothing).front();
  BOOST_CHECK_EQUAL(sampled.sampled, 0u);
  BOOST_CHECK_EQUAL(sampled.token, no_token);
  BOOST_CHECK_EQUAL(device.record(0).generated, 0u);
}

BOOST_AUTO_TEST_CASE(scores_are_those_of_the_host) {
  constexpr std::uint32_t rows = 8;
  std::mt19937 random(5);
  for (const std::uint32_t size : {1u, 5u, 64u, 4097u, 9000u}) {
    device_samplers device({.vocab = size, .slots = 1, .rows_max = rows});
    device_array<gpu::score_row> wanted(rows);
    device_array<gpu::token_scores> out(rows);
    for (std::uint32_t batch = 0; batch < 6; ++batch) {
      std::vector<gpu::score_row> scores;
      std::vector<float> logits;
      for (std::uint32_t i = 0; i < rows; ++i) {
        const auto row = sampling::random_case(static_cast<std::uint32_t>(random() % 100000), size)
                             .logits;  // flat and tied ones too
        logits.insert(logits.end(), row.begin(), row.end());
        scores.push_back({i, static_cast<token_id>(random() % size), static_cast<std::uint32_t>(random() % 21)});
      }
      const std::uint32_t count = rows - batch % 2;
      device.count.write(std::span(&count, 1), device.in);
      device.logits.write(logits, device.in);
      wanted.write(scores, device.in);
      gpu::require(device.samplers.queue_scores(device.in, {device.count.data(), wanted.data(), rows},
                                                device.logits.data(), out.data()));
      const auto got = out.read(device.in);
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto row = std::span(logits).subspan(std::size_t{i} * size, size);
        check_scores(got[i], sampling::log_probabilities(row, scores[i].token, scores[i].top));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_mixture_samples_one_token_for_all_its_rows) {
  device_samplers device(limits);
  device_array<gpu::mixture> groups(2);
  device_array<gpu::mixture_member> members(4);
  gpu::device_buffer<float> penalised(2 * vocab), raw(2 * vocab);
  gpu::device_buffer<gpu::sampled_token> sampled(2);

  // Slots 2, 0 and 4 are one group; slot 6 is another of its own.
  const slot_id slots[] = {2, 0, 4, 6};
  const float shares[] = {0.5f / 1.75f, 0.25f / 1.75f, 1.0f / 1.75f, 1.0f};
  std::vector<sampling::sampler> hosts;
  for (const slot_id s : slots) {
    sampling_params p = lively(s);
    p.max_tokens = s == 2 ? 6 : 3;  // that of the first row decides
    device.start(s, p);
    hosts.emplace_back(vocab).start(p);
  }
  groups.write(std::vector<gpu::mixture>{{0, 3}, {3, 1}}, device.in);
  device.rows.write(std::vector<gpu::sample_row>{{0, 2}, {1, 6}}, device.in);
  std::vector<gpu::mixture_member> of_groups;
  for (std::uint32_t i = 0; i < 4; ++i) of_groups.push_back({i, slots[i], shares[i], 7 - i});
  members.write(of_groups, device.in);
  const std::uint32_t count = 2;
  device.count.write(std::span(&count, 1), device.in);

  for (std::uint32_t n = 0; n < 6; ++n) {
    std::vector<float> logits;
    std::vector<float> mean(vocab, 0.0f), raw_mean(vocab, 0.0f);
    for (std::uint32_t i = 0; i < 4; ++i) {
      auto row = peaked_logits(10 * n + i);
      row[100 * i] = std::numeric_limits<float>::quiet_NaN();
      logits.insert(logits.end(), row.begin(), row.end());
      if (i == 3) continue;
      for (std::uint32_t t = 0; t < vocab; ++t) raw_mean[t] += shares[i] * row[t];
      hosts[i].penalise(row);
      for (std::uint32_t t = 0; t < vocab; ++t) mean[t] += shares[i] * row[t];
    }
    device.logits.write(logits, device.in);
    const gpu::device_mixtures mixtures{device.count.data(), groups.data(), members.data(), 2};
    gpu::require(
        device.samplers.queue_mixtures(device.in, mixtures, device.logits.data(), penalised.data(), raw.data()));
    gpu::require(device.samplers.queue_samples(device.in, {device.count.data(), device.rows.data(), 2},
                                               {penalised.data(), raw.data(), nullptr}, sampled.data()));
    gpu::require(device.samplers.spread_samples(device.in, mixtures, sampled.data(), device.out.data()));
    const auto out = device.out.read(device.in);

    const auto expected = hosts[0].sample_penalised(mean, raw_mean);
    for (std::uint32_t i = 1; i < 3; ++i) hosts[i].record(expected.token);
    for (std::uint32_t i = 0; i < 3; ++i) {
      BOOST_CHECK_EQUAL(out[7 - i].token, expected.token);
      BOOST_CHECK(out[7 - i].stopped == (n == 5 ? gpu::sample_stop::budget : gpu::sample_stop::none));
      check_scores(out[7 - i].scores, expected.logprobs);
      const auto record = device.record(slots[i]);
      BOOST_CHECK_EQUAL(record.last_token, expected.token);
      BOOST_CHECK_EQUAL(record.generated, n + 1);
      BOOST_CHECK_EQUAL(record.frozen, n == 5 ? 1u : 0u);
      BOOST_CHECK_EQUAL(record.penalty_count, hosts[i].save().penalties.size());
    }
    if (n < 3) BOOST_CHECK_EQUAL(out[4].token, hosts[3].sample(std::span(logits).subspan(3 * vocab)).token);
  }
}

BOOST_AUTO_TEST_SUITE_END()
