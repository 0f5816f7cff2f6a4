#include "grammar/schema/length_table.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>
#include <vector>

namespace skein::grammar {
namespace {

constexpr std::uint32_t table_lengths_max = 4'096;

/// The states that one code point leads to from a state, by way of the bytes of UTF-8.
std::vector<std::uint32_t> one_code_point(const dfa& of, std::uint32_t from) {
  struct step {
    std::uint32_t state;
    unsigned char low, high;  ///< of the next byte
    unsigned char more;       ///< bytes after it
  };
  std::vector<step> pending{{from, 0x00, 0x7f, 0}, {from, 0xc2, 0xdf, 1}, {from, 0xe0, 0xef, 2}, {from, 0xf0, 0xf4, 3}};
  std::vector<std::uint32_t> reached;
  std::vector<std::uint64_t> seen;
  while (!pending.empty()) {
    const auto here = pending.back();
    pending.pop_back();
    std::array<bool, 256> tried{};
    for (unsigned byte = here.low; byte <= here.high; ++byte) {
      const bool special = byte == 0xe0 || byte == 0xed || byte == 0xf0 || byte == 0xf4;
      if (!special && std::exchange(tried[of.class_of[byte]], true)) continue;
      const auto to = of.step(here.state, static_cast<unsigned char>(byte));
      if (to == dfa::dead) continue;
      if (here.more == 0) {
        reached.push_back(to);
        continue;
      }
      const unsigned char low = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
      const unsigned char high = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
      const std::uint64_t key =
          std::uint64_t{to} << 24 | std::uint64_t{low} << 16 | std::uint64_t{high} << 8 | here.more;
      if (std::ranges::find(seen, key) != seen.end()) continue;
      seen.push_back(key);
      pending.push_back({to, low, high, static_cast<unsigned char>(here.more - 1)});
    }
  }
  std::ranges::sort(reached);
  reached.erase(std::unique(reached.begin(), reached.end()), reached.end());
  return reached;
}

/// Whether an accepting state can be reached from a state.
std::vector<bool> live_states(const dfa& of, const std::vector<std::vector<std::uint32_t>>& next) {
  std::vector<std::vector<std::uint32_t>> before(of.states());
  std::vector<std::uint32_t> pending;
  std::vector<bool> live(of.states());
  for (std::uint32_t s = 1; s < of.states(); ++s) {
    for (const auto to : next[s]) before[to].push_back(s);
    if (of.accepting[s] != 0) live[s] = true, pending.push_back(s);
  }
  while (!pending.empty()) {
    const auto s = pending.back();
    pending.pop_back();
    for (const auto from : before[s])
      if (!live[from]) live[from] = true, pending.push_back(from);
  }
  return live;
}

/// Whether all states that can be reached from the start have a bit.
bool all_reached(const dfa& of, const std::vector<std::vector<std::uint32_t>>& next, const std::vector<bool>& bits) {
  std::vector<bool> seen(of.states());
  std::vector<std::uint32_t> pending{of.start};
  while (!pending.empty()) {
    const auto s = pending.back();
    pending.pop_back();
    if (seen[s]) continue;
    if (!bits[s]) return false;
    seen[s] = true;
    pending.insert(pending.end(), next[s].begin(), next[s].end());
  }
  return true;
}

}  // namespace

result<std::shared_ptr<const program::length_table>> lengths_of(const dfa& of, std::uint32_t least, std::uint32_t most,
                                                                budget& work) {
  const bool limited = most != program::none;
  const std::uint64_t needed = limited ? most : least;
  std::vector<std::vector<std::uint32_t>> next(of.states());
  for (std::uint32_t s = 1; s < of.states(); ++s) {
    if (!work.spend(200)) return too_much_work(work);
    next[s] = one_code_point(of, s);
  }
  std::vector<std::vector<bool>> possible;
  if (limited) {
    possible.emplace_back(of.states());
    for (std::uint32_t s = 1; s < of.states(); ++s) possible[0][s] = of.accepting[s] != 0;
  } else {
    possible.push_back(live_states(of, next));
  }
  const auto last_needed = std::min<std::uint64_t>(needed, table_lengths_max);
  // Each answer follows from the one before, so they repeat from the first that is equal to an earlier one.
  std::unordered_map<std::vector<bool>, std::size_t> known{{possible.front(), 0}};
  std::size_t period = 0;
  while (possible.size() <= last_needed) {
    if (!work.spend(of.states() * 4)) return too_much_work(work);
    std::vector<bool> now(of.states());
    for (std::uint32_t s = 1; s < of.states(); ++s)
      now[s] = std::ranges::any_of(next[s], [&](auto to) { return possible.back()[to]; });
    const auto [place, is_new] = known.try_emplace(now, possible.size());
    if (!is_new) {
      period = possible.size() - place->second;
      break;
    }
    possible.push_back(std::move(now));
  }
  // The numbers settled at once.
  if (possible.size() == 1 && all_reached(of, next, possible[0])) return std::shared_ptr<const program::length_table>();
  if (period == 0 && needed > table_lengths_max)
    return error{error_kind::unsupported, "a pattern with a limit of length above 4096 is not supported",
                 limited ? "maxLength" : "minLength"};
  auto made = std::make_shared<program::length_table>();
  made->last = static_cast<std::uint32_t>(possible.size() - 1);
  made->limited = limited;
  if (period > 0) made->period = static_cast<std::uint32_t>(period);
  made->sums.resize(of.states() * (possible.size() + 1));
  for (std::uint32_t s = 0; s < of.states(); ++s)
    for (std::size_t k = 0; k < possible.size(); ++k)
      made->sums[s * (possible.size() + 1) + k + 1] = made->sums[s * (possible.size() + 1) + k] + possible[k][s];
  return std::shared_ptr<const program::length_table>(std::move(made));
}

bool program::length_table::possible(std::uint32_t state, std::uint64_t least, std::uint64_t most) const {
  const auto row = std::size_t{state} * (last + 2);
  if (!limited) {
    const auto at = std::min<std::uint64_t>(least, last);
    return sums[row + at + 1] != sums[row + at];
  }
  const auto end = std::min<std::uint64_t>(most, last);
  if (least <= end && sums[row + end + 1] != sums[row + least]) return true;
  if (most <= last) return false;
  const std::uint64_t from = std::max<std::uint64_t>(least, last + 1), begin = last + 1 - period;
  const auto count = std::min<std::uint64_t>(most - from + 1, period);
  for (std::uint64_t k = from; k < from + count; ++k) {
    const auto at = begin + (k - begin) % period;
    if (sums[row + at + 1] != sums[row + at]) return true;
  }
  return false;
}

}  // namespace skein::grammar
