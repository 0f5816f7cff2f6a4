#include "engine/stages/group_mixer.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace skein::engine {
namespace {

void add_scaled(std::span<float> sum, float share, std::span<const float> values) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += share * values[i];
}

}  // namespace

void group_mixer::begin(std::span<const row> rows) {
  count_ = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].group == 0) continue;
    group* g = find(rows[i].group);
    if (!g) {
      if (count_ == groups_.size()) groups_.emplace_back();
      g = &groups_[count_++];
      g->id = rows[i].group;
      g->first_row = static_cast<std::uint32_t>(i);
      g->weights = 0;
      g->penalised.assign(vocab_, 0.0f);
      g->raw.assign(vocab_, 0.0f);
    }
    g->weights += rows[i].weight;
  }
}

const group_mixer::group& group_mixer::of(const row& r) const {
  const auto known = std::span(groups_).first(count_);
  const auto found = std::ranges::find(known, r.group, &group::id);
  check(found != known.end(), "a group unknown to begin()");
  return *found;
}

void group_mixer::add(const row& r, const sampling::sampler& sampler, std::span<float> logits) {
  group& g = *find(r.group);
  const float share = r.weight / g.weights;
  add_scaled(g.raw, share, logits);
  sampler.penalise(logits);
  add_scaled(g.penalised, share, logits);
}

group_mixer::group* group_mixer::find(std::uint32_t id) {
  const auto found = std::ranges::find(groups(), id, &group::id);
  return found == groups().end() ? nullptr : &*found;
}

}  // namespace skein::engine
