// Every stop string has its own Knuth-Morris-Pratt automaton. Its `matched` is the length of the longest prefix of the
// stop string that the stream ends with, so the largest `matched` is the number of bytes that could still become part
// of a stop string: these are held back, all earlier ones are released. One automaton over all strings (Aho-Corasick)
// would save steps, but with at most a few stop strings and a model that generates some hundred bytes a second the
// steps are free, while its tables would have to be built for every request.
#include "tokenizer/stop_matcher.hpp"

#include <algorithm>
#include <utility>

namespace skein::tokenizer {
namespace {

/// Length of the longest prefix of `stop` that the text ends with after `byte`; `matched` is the length before it.
std::uint32_t extend(std::string_view stop, const std::vector<std::uint32_t>& border, std::uint32_t matched,
                     char byte) {
  while (matched > 0 && stop[matched] != byte) matched = border[matched - 1];
  return stop[matched] == byte ? matched + 1 : 0;
}

}  // namespace

stop_matcher::stop_matcher(std::vector<std::string> stops) : stops_(std::move(stops)), progress_(stops_.size()) {
  for (std::size_t s = 0; s < stops_.size(); ++s) {
    auto& border = progress_[s].border;
    border.reserve(stops_[s].size());
    for (std::size_t i = 0; i < stops_[s].size(); ++i)
      border.push_back(i == 0 ? 0 : extend(stops_[s], border, border[i - 1], stops_[s][i]));
  }
}

bool stop_matcher::advance(std::uint32_t stop, char byte) {
  if (stops_[stop].empty()) return false;
  progress& p = progress_[stop];
  p.matched = extend(stops_[stop], p.border, p.matched, byte);
  return p.matched == stops_[stop].size();
}

std::optional<std::uint32_t> stop_matcher::step(char byte) {
  std::optional<std::uint32_t> longest;
  for (std::uint32_t s = 0; s < stops_.size(); ++s)
    if (advance(s, byte) && (!longest || stops_[s].size() > stops_[*longest].size())) longest = s;
  return longest;
}

void stop_matcher::follow(std::string_view text) {
  for (std::uint32_t s = 0; s < stops_.size(); ++s) {
    if (stops_[s].empty()) continue;
    const std::size_t enough = std::min(text.size(), stops_[s].size() - 1);  // too short to complete it
    for (const char byte : text.substr(text.size() - enough)) (void)advance(s, byte);
  }
}

stop_matcher::outcome stop_matcher::push(std::string_view bytes, std::string& out) {
  for (std::size_t i = 0; i < bytes.size() && !found_.stop; ++i) {
    found_.stop = step(bytes[i]);
    if (!found_.stop) continue;
    held_.append(bytes.substr(0, i + 1));
    found_.dropped = std::min(held_.size(), stops_[*found_.stop].size());
    out.append(held_, 0, held_.size() - found_.dropped);
    held_.clear();
  }
  if (found_.stop) return found_;

  held_.append(bytes);
  std::size_t keep = 0;
  for (const progress& p : progress_) keep = std::max<std::size_t>(keep, p.matched);
  keep = std::min(keep, held_.size());
  out.append(held_, 0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return {};
}

void stop_matcher::finish(std::string& out) {
  out.append(held_);
  held_.clear();
  for (progress& p : progress_) p.matched = 0;
}

}  // namespace skein::tokenizer
