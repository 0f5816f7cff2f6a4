#include "kernels/gpu/tick/tick_upload.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "kernels/gpu/ops/small_copy.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr std::size_t aligned(std::size_t bytes) { return small_copy_bytes(bytes); }
constexpr std::uint32_t pieces(std::uint32_t count, std::uint32_t each) { return (count + each - 1) / each; }

bool samples_alone(const tick_row& r) { return r.sample && !r.sync && r.group == 0; }
std::uint32_t tokens_of(const tick_row& r) { return std::max(r.tokens, 1u); }

}  // namespace

block_layout::block_layout(const tick_room& room)
    : pieces_max(std::max(pieces(room.tokens, room.logit_rows), 1u)),
      scores_count(2),
      mixture_counts(scores_count + pieces_max),
      batches(mixture_counts + pieces(room.rows, room.mixtures_at_once)),
      tokens(aligned((batches + 3 * pieces_max) * sizeof(std::uint32_t))),
      mixtures(aligned(tokens + room.tokens * sizeof(token_id))),
      members(aligned(mixtures + room.rows * sizeof(mixture))),
      score_rows(aligned(members + room.rows * sizeof(mixture_member))),
      rows(aligned(score_rows + room.tokens * sizeof(score_row))),
      bytes(aligned(rows + room.rows * sizeof(planned_row))) {}

tick_upload::tick_upload(const tick_room& room, stream_handle in)
    : room_(room),
      layout_(room),
      pinned_(blocks * layout_.bytes, "plans of ticks"),
      device_(layout_.device_bytes(), "plans of ticks") {
  static_assert(sizeof(batch_counts) == 3 * sizeof(std::uint32_t));
  check(room.logit_rows >= room.rows);
  groups_.reserve(room.rows);
  row_of_sample_.reserve(room.rows);
  scores_of_piece_.reserve(layout_.pieces_max);
  runs_.reserve(room.rows);
  copies_.reserve(room.rows);
  // Launches before the first tick must find no rows.
  require(fill_with_zeros(device_.data(), device_.bytes(), in));
  require(wait_for(in));  // if a later constructor fails, this memory is freed before the stream
}

tick_shape tick_upload::write(const tick& plan, std::size_t block, std::vector<row_place>& places) {
  check(plan.rows.size() <= room_.rows);
  block_ = pinned_.data() + block * layout_.bytes;
  used_ = layout_.tokens;
  shape_ = {};
  shape_.rows = static_cast<std::uint32_t>(plan.rows.size());
  shape_.only_decodes = true;
  sampled_rows_ = score_total_ = 0;
  runs_.clear();
  copies_.clear();
  scores_of_piece_.assign(layout_.pieces_max, 0);
  places.assign(plan.rows.size(), {});
  find_groups(plan.rows);
  place_samples(plan, places);
  shape_.wanted = sampled_rows_;
  for (std::uint32_t d = 0; d < sampled_rows_; ++d) {  // scores are in the order of the wanted rows: these first
    const tick_row& r = plan.rows[row_of_sample_[d]];
    if (!r.score || r.score_next == no_token) continue;
    places[row_of_sample_[d]].last_score = score_total_;
    add_score(d, r.score_next, r.score_top);
  }
  for (std::uint32_t i = 0; i < shape_.rows; ++i) place_row(plan, i, places[i]);
  check(shape_.tokens <= room_.tokens);
  std::ranges::sort(copies_, {}, &logits_copy::wanted);

  const auto count = reinterpret_cast<std::uint32_t*>(block_);
  count[0] = shape_.rows;
  count[1] = shape_.samples_alone;
  std::ranges::copy(scores_of_piece_, count + layout_.scores_count);
  for (std::uint32_t g = 0; g * room_.mixtures_at_once < shape_.mixtures; ++g)
    count[layout_.mixture_counts + g] = std::min(room_.mixtures_at_once, shape_.mixtures - g * room_.mixtures_at_once);
  const auto batches = reinterpret_cast<batch_counts*>(count + layout_.batches);
  for (std::uint32_t p = 0; p < layout_.pieces_max; ++p) {
    const std::uint32_t begin = std::min(p * room_.logit_rows, shape_.wanted);
    batches[p] = {shape_.tokens, shape_.rows, std::min(room_.logit_rows, shape_.wanted - begin)};
  }
  shape_.runs = runs_;
  shape_.copies = copies_;
  shape_.scores = scores_of_piece_;
  return shape_;
}

result<void> tick_upload::send(std::size_t block, stream_handle in) {
  const std::byte* const from = pinned_.data() + block * layout_.bytes;
  return queue_small_copy(in, device_.data() + layout_.tokens, from + layout_.tokens, aligned(used_ - layout_.tokens));
}

void tick_upload::find_groups(std::span<const tick_row> rows) {
  groups_.clear();
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (rows[i].group == 0) continue;
    auto known = std::ranges::find(groups_, rows[i].group, &group::id);
    if (known == groups_.end()) known = groups_.insert(known, {rows[i].group, i, 0, 0});
    known->members += 1;
    known->weights += rows[i].weight;
  }
}

void tick_upload::place_samples(const tick& plan, std::vector<row_place>& places) {
  row_of_sample_.clear();
  const auto place = [&](std::uint32_t row) {
    places[row].sample = sampled_rows_++;
    row_of_sample_.push_back(row);
  };
  for (std::uint32_t i = 0; i < plan.rows.size(); ++i)
    if (samples_alone(plan.rows[i])) place(i);
  shape_.samples_alone = sampled_rows_;
  shape_.mixtures = static_cast<std::uint32_t>(groups_.size());
  if (groups_.empty()) return;

  const auto mixtures = reinterpret_cast<mixture*>(block_ + layout_.mixtures);
  const auto members = reinterpret_cast<mixture_member*>(block_ + layout_.members);
  std::uint32_t member = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    mixtures[g] = {member, groups_[g].members};
    for (std::uint32_t i = groups_[g].first_row; i < plan.rows.size(); ++i) {
      if (plan.rows[i].group != groups_[g].id) continue;
      place(i);
      members[member++] = {places[i].sample, plan.rows[i].slot, plan.rows[i].weight / groups_[g].weights,
                           places[i].sample};
    }
  }
  used_ = layout_.members + member * sizeof(mixture_member);
}

// Places the positions whose logits are wanted besides the sampled one, as stage_backend::want_logits.
void tick_upload::place_row(const tick& plan, std::uint32_t index, row_place& place) {
  const tick_row& r = plan.rows[index];
  const std::uint32_t tokens = tokens_of(r), last = tokens - 1;
  const bool every_position = r.copied == tick_row::copies::all;
  const bool scores_last = r.score && r.score_next != no_token;
  const bool last_position = place.sample == no_place && (r.copied != tick_row::copies::none || scores_last);
  const std::uint32_t begin = every_position || r.score ? 0 : last, end = last_position ? tokens : last;

  planned_row planned{};
  planned.slot = planned.deciding = r.slot;
  planned.first_row = shape_.tokens, planned.rows = tokens, planned.chunked = r.chunked;
  planned.sample = place.sample, planned.member = planned.mixture = no_place;
  planned.wanted = shape_.wanted, planned.position = begin, planned.positions = end > begin ? end - begin : 0;
  planned.decodes = r.tokens == 0, planned.samples = r.sample, planned.samples_alone = samples_alone(r);
  if (r.group != 0) {
    const auto of = std::ranges::find(groups_, r.group, &group::id);
    planned.deciding = plan.rows[of->first_row].slot;
    planned.member = place.sample - shape_.samples_alone;
    if (of->first_row == index) planned.mixture = static_cast<std::uint32_t>(of - groups_.begin());
  }
  reinterpret_cast<planned_row*>(block_ + layout_.rows)[index] = planned;

  if (!planned.decodes) {
    const auto to = reinterpret_cast<token_id*>(block_ + layout_.tokens) + planned.first_row;
    std::ranges::copy(plan.tokens.subspan(r.first_token, r.tokens), to);
    used_ = std::max(used_, layout_.tokens + (planned.first_row + r.tokens) * sizeof(token_id));
  }
  if (r.copied != tick_row::copies::none) {
    const std::uint32_t first = every_position ? 0 : last;
    for (std::uint32_t p = first; p < tokens; ++p)
      copies_.push_back({p == last && place.sample != no_place ? place.sample : planned.wanted + p - begin,
                         r.logits + std::size_t{p - first} * room_.vocab});
  }
  add_scores(r, plan, place, planned);
  runs_.push_back({r.slot, shape_.tokens, tokens, r.chunked});
  shape_.tokens += tokens;
  shape_.wanted += planned.positions;
  shape_.only_decodes &= planned.decodes && planned.samples_alone && r.copied == tick_row::copies::none && !r.score;
}

void tick_upload::add_scores(const tick_row& row, const tick& plan, row_place& place, const planned_row& planned) {
  if (!row.score) return;
  place.first_score = score_total_;
  for (std::uint32_t p = 0; p + 1 < row.tokens; ++p)
    add_score(planned.wanted + p, plan.tokens[row.first_token + p + 1], row.score_top);
  if (row.score_next != no_token && place.sample == no_place)
    add_score(planned.wanted + row.tokens - 1, row.score_next, row.score_top);
  place.scores = score_total_ - place.first_score;
}

void tick_upload::add_score(std::uint32_t wanted, token_id token, std::uint32_t top) {
  const auto scores = reinterpret_cast<score_row*>(block_ + layout_.score_rows);
  scores[score_total_++] = {wanted % room_.logit_rows, token, std::min(top, top_logprobs_most)};
  ++scores_of_piece_[wanted / room_.logit_rows];
  used_ = layout_.score_rows + score_total_ * sizeof(score_row);
}

}  // namespace skein::kernels::gpu
