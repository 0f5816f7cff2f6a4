#include "engine/gpu/slot_rules.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.hpp"

namespace skein::engine {

/// A rule that knows whether a token of it is still on the device.
class slot_rules::tracked final : public sampling::token_rule {
 public:
  explicit tracked(std::unique_ptr<sampling::token_rule> rule) : rule_(std::move(rule)) {}
  tracked(const tracked& other) : token_rule(other), rule_(other.rule_->fork()), stuck(other.stuck) {}
  tracked& operator=(const tracked&) = delete;  // rules are forked

  [[nodiscard]] std::unique_ptr<token_rule> fork() const override { return std::make_unique<tracked>(*this); }
  [[nodiscard]] bool allow(std::span<std::uint32_t> allowed) override { return rule_->allow(allowed); }
  void record(token_id token) override { rule_->record(token); }
  [[nodiscard]] bool complete() const override { return rule_->complete(); }

 private:
  std::unique_ptr<sampling::token_rule> rule_;

 public:
  bool waits = false;  ///< its next token is on the device
  bool stuck = false;  ///< that token was not allowed
};

void slot_rules::start(slot_id slot, const sampling::sampling_params& params) {
  rules_[slot] = params.rule ? std::make_shared<tracked>(params.rule->begin()) : nullptr;
  if (params.rule) masks_.resize(words_ * rows_max_);
}

void slot_rules::copy(slot_id from, slot_id to) {
  if (rules_[from] && rules_[to]) rules_[to] = std::make_shared<tracked>(*rules_[from]);
}

/// A rule whose token is on the device is given away: it learns the token in its new place.
std::shared_ptr<const sampling::token_rule> slot_rules::park(slot_id slot) {
  if (!rules_[slot]) return nullptr;
  if (rules_[slot]->waits) return std::exchange(rules_[slot], nullptr);
  return std::make_shared<tracked>(*rules_[slot]);
}

void slot_rules::unpark(slot_id slot, const sampling::sampling_params& params,
                        const std::shared_ptr<const sampling::token_rule>& parked) {
  start(slot, params);
  if (!params.rule || !parked) return;
  // All rules that leave park() are of this class, unless the sequence was parked by another engine.
  const auto own = std::dynamic_pointer_cast<const tracked>(parked);
  if (own && own->waits)
    rules_[slot] = std::const_pointer_cast<tracked>(own);
  else if (own)
    rules_[slot] = std::make_shared<tracked>(*own);
  else
    rules_[slot] = std::make_shared<tracked>(parked->fork());
}

void slot_rules::begin_tick(std::uint64_t tick) {
  tick_ = tick;
  in_flight_[tick % in_flight_.size()].clear();
}

const std::uint32_t* slot_rules::mask(const row& r) {
  const auto& rule = rules_[r.slot];
  if (!rule) return nullptr;
  check(!rule->waits, "a row with a rule before its last token is known");
  check(r.group == 0, "a row with a rule in a group");
  auto& rows = in_flight_[tick_ % in_flight_.size()];
  const auto to = std::span(masks_).subspan(rows.size() * words_, words_);
  rule->stuck = !rule->allow(to);
  if (std::ranges::all_of(to, [](std::uint32_t word) { return word == 0; })) std::ranges::fill(to, ~0u);
  rule->waits = true;
  rows.push_back({r.slot, rule});
  return to.data();
}

void slot_rules::end_tick(tick_result& done) {
  for (auto& [slot, rule] : in_flight_[done.tick % in_flight_.size()]) {
    rule->waits = false;
    const auto row = std::ranges::find(done.rows, slot, &row_result::slot);
    if (row == done.rows.end() || !row->sampled) continue;
    rule->record(row->token);
    if (rule->stuck)
      row->stopped = stop_cause::budget;
    else if (rule->complete())
      row->stopped = stop_cause::stop_id;
  }
  in_flight_[done.tick % in_flight_.size()].clear();
}

}  // namespace skein::engine
