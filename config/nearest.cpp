#include "config/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace skein::config {
namespace {

// Levenshtein distance, row by row.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row_before(b.size() + 1);
  std::iota(row_before.begin(), row_before.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::vector<std::size_t> row_now{i + 1};
    for (std::size_t j = 0; j < b.size(); ++j)
      row_now.push_back(std::min({row_before[j] + (a[i] != b[j]), row_before[j + 1] + 1, row_now[j] + 1}));
    row_before = std::move(row_now);
  }
  return row_before.back();
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t best_edits = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const auto candidate : known) {
    const std::size_t n = edits(word, candidate);
    if (n < best_edits) best_edits = n, best = candidate;
  }
  return best;
}

}  // namespace skein::config
