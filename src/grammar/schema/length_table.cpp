#include "grammar/schema/length_table.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace skein::grammar {
namespace {

constexpr std::uint32_t table_lengths_max = 4'096;
constexpr std::uint32_t unlimited = program::none;
constexpr std::size_t spans_max = 16;  // of one state

using span = program::length_table::span;

/// A state within a code point: how many of its bytes follow, and the range of the next one.
struct within {
  std::uint32_t state;
  unsigned more, low, high;
  bool operator==(const within&) const = default;
};

/// States between code points that can be reached from the start, numbered in the order in which they are found, and
/// where one code point leads from each of them.
struct code_point_graph {
  std::vector<std::uint32_t> states;
  std::vector<std::uint32_t> begin;  ///< [states + 1] in `next`
  std::vector<std::uint32_t> next;   ///< numbers of states, each once for a state
  std::vector<within> inner;         ///< states within code points, each once
  [[nodiscard]] std::size_t size() const { return states.size(); }
  [[nodiscard]] std::span<const std::uint32_t> after(std::size_t i) const {
    return std::span(next).subspan(begin[i], begin[i + 1] - begin[i]);
  }
};

/// Steps from state to state by whole code points, by way of the bytes of UTF-8.
class code_point_steps {
 public:
  explicit code_point_steps(const dfa& of) : of_(of) {
    for (unsigned byte = 0; byte < 0x80; ++byte) add(ascii_, byte);
    for (unsigned byte = 0xc2; byte <= 0xf4; ++byte) {
      const unsigned low = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
      const unsigned high = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
      const lead made{of.class_of[byte], static_cast<std::uint8_t>(byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3), low, high};
      if (std::ranges::find(leads_, made) == leads_.end()) leads_.push_back(made);
    }
  }

  /// Appends the states after one code point, each once.
  void follow(std::uint32_t from, std::vector<std::uint32_t>& to) {
    const auto before = static_cast<std::ptrdiff_t>(to.size());
    const auto reach = [&](std::uint32_t state) {
      if (state != dfa::dead && std::find(to.begin() + before, to.end(), state) == to.end()) to.push_back(state);
    };
    for (const auto kind : ascii_) reach(step(from, kind));
    seen_.clear();
    for (const auto& each : leads_) enter(step(from, each.kind), each.more, each.low, each.high);
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      const auto here = seen_[i];
      std::array<std::uint8_t, 64> kinds{};
      std::size_t count = 0;
      for (unsigned byte = here.low; byte <= here.high; ++byte)
        if (count == 0 || kinds[count - 1] != of_.class_of[byte]) kinds[count++] = of_.class_of[byte];
      for (std::size_t k = 0; k < count; ++k) {
        const auto state = step(here.state, kinds[k]);
        if (here.more == 1)
          reach(state);
        else
          enter(state, here.more - 1u, 0x80, 0xbf);
      }
    }
  }

  /// The states within those code points.
  [[nodiscard]] const std::vector<within>& inner() const { return seen_; }

 private:
  struct lead {
    std::uint8_t kind;  ///< class of the first byte
    std::uint8_t more;  ///< bytes after it, the first of which is low .. high
    unsigned low, high;
    bool operator==(const lead&) const = default;
  };
  void add(std::vector<std::uint8_t>& to, unsigned byte) const {
    if (std::ranges::find(to, of_.class_of[byte]) == to.end()) to.push_back(of_.class_of[byte]);
  }
  [[nodiscard]] std::uint32_t step(std::uint32_t state, std::uint8_t kind) const {
    return of_.next[std::size_t{state} * of_.classes + kind];
  }
  void enter(std::uint32_t state, unsigned more, unsigned low, unsigned high) {
    const within made{state, more, low, high};
    if (state != dfa::dead && std::ranges::find(seen_, made) == seen_.end()) seen_.push_back(made);
  }

  const dfa& of_;
  std::vector<std::uint8_t> ascii_;  // classes of bytes that are characters
  std::vector<lead> leads_;
  std::vector<within> seen_;
};

result<code_point_graph> graph_of(const dfa& of, budget& work) {
  code_point_graph made;
  if (!work.spend(of.states())) return too_much_work(work);
  std::vector<std::uint32_t> number(of.states(), program::none);
  const auto number_of = [&](std::uint32_t state) {
    if (number[state] == program::none) {
      number[state] = static_cast<std::uint32_t>(made.states.size());
      made.states.push_back(state);
    }
    return number[state];
  };
  code_point_steps steps(of);
  std::vector<bool> is_known(of.states());
  made.begin.push_back(0);
  if (!of.is_empty()) number_of(of.start);
  for (std::size_t i = 0; i < made.states.size(); ++i) {
    const auto first = made.next.size();
    steps.follow(made.states[i], made.next);
    if (!work.spend(50 + 2 * (made.next.size() - first))) return too_much_work(work);
    for (const auto& each : steps.inner()) {
      if (is_known[each.state]) continue;
      is_known[each.state] = true;
      made.inner.push_back(each);
    }
    for (auto k = first; k < made.next.size(); ++k) made.next[k] = number_of(made.next[k]);
    made.begin.push_back(static_cast<std::uint32_t>(made.next.size()));
  }
  return made;
}

/// Where the code points may end that are begun in the states within them: sets of numbers of states. States with the
/// same set share it.
struct inner_ends {
  std::vector<std::vector<std::uint32_t>> sets;
  std::vector<std::uint32_t> set_of;  ///< [graph.inner] none: no code point ends
};

result<inner_ends> ends_of(const dfa& of, const code_point_graph& graph, const std::vector<std::uint32_t>& number,
                           budget& work) {
  inner_ends made;
  made.set_of.assign(graph.inner.size(), program::none);
  std::vector<std::uint32_t> place(of.states(), program::none), order;
  for (std::uint32_t i = 0; i < graph.inner.size(); ++i) {
    place[graph.inner[i].state] = i;
    order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return graph.inner[i].more; });
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  for (const auto i : order) {
    const auto& [state, more, low, high] = graph.inner[i];
    std::vector<std::uint32_t> ends;
    std::uint32_t before = dfa::dead;
    for (unsigned byte = low; byte <= high; ++byte) {
      const auto next = of.step(state, static_cast<unsigned char>(byte));
      if (next == dfa::dead || next == before) continue;
      before = next;
      if (number[next] != program::none)
        ends.push_back(number[next]);
      else if (place[next] != program::none && made.set_of[place[next]] != program::none)
        ends.insert(ends.end(), made.sets[made.set_of[place[next]]].begin(), made.sets[made.set_of[place[next]]].end());
    }
    if (!work.spend(100 + 5 * ends.size())) return too_much_work(work);
    std::ranges::sort(ends);
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    if (ends.empty()) continue;
    const auto [found, is_new] = known.try_emplace(ends, static_cast<std::uint32_t>(made.sets.size()));
    if (is_new) made.sets.push_back(std::move(ends));
    made.set_of[i] = found->second;
  }
  return made;
}

/// The same with all steps in reverse.
code_point_graph reversed(const code_point_graph& of) {
  code_point_graph made;
  made.states = of.states;
  made.begin.assign(of.size() + 1, 0);
  for (const auto to : of.next) ++made.begin[to + 1];
  for (std::size_t i = 0; i < of.size(); ++i) made.begin[i + 1] += made.begin[i];
  made.next.resize(of.next.size());
  auto fill = made.begin;
  for (std::uint32_t i = 0; i < of.size(); ++i)
    for (const auto to : of.after(i)) made.next[fill[to]++] = i;
  return made;
}

/// Sorts spans and unites those that meet.
void join(std::vector<span>& all) {
  std::ranges::sort(all, {}, &span::least);
  std::size_t kept = 0;
  for (const auto& each : all) {
    if (kept > 0 && (all[kept - 1].most == unlimited || each.least <= all[kept - 1].most + 1))
      all[kept - 1].most = std::max(all[kept - 1].most, each.most);
    else
      all[kept++] = each;
  }
  all.resize(kept);
}

/// The numbers of code points from each state to an accepting one, as spans.
class span_finder {
 public:
  span_finder(const dfa& of, const code_point_graph& graph, std::uint32_t most)
      : of_(of), graph_(graph), most_(most), spans_(graph.size()) {}

  /// False if some state needs too many spans.
  bool run() {
    const auto back = reversed(graph_);
    // States from which all ways end, each after those that follow it.
    std::vector<std::uint32_t> left(graph_.size()), order;
    for (std::uint32_t i = 0; i < graph_.size(); ++i)
      if ((left[i] = static_cast<std::uint32_t>(graph_.after(i).size())) == 0) order.push_back(i);
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (!gather(order[k])) return false;
      spans_[order[k]] = gathered_;
      for (const auto before : back.after(order[k]))
        if (--left[before] == 0) order.push_back(before);
    }
    // From the others there are circles. They accept all lengths from the least one on, if that agrees with what
    // follows from the states after them: no two solutions of these equations differ.
    if (order.size() == graph_.size()) return true;
    const auto least = least_lengths(back);
    for (std::uint32_t i = 0; i < graph_.size(); ++i)
      if (left[i] != 0 && least[i] <= most_) spans_[i] = {{least[i], unlimited}};
    for (std::uint32_t i = 0; i < graph_.size(); ++i)
      if (left[i] != 0 && (!gather(i) || gathered_ != spans_[i])) return false;
    return true;
  }

  [[nodiscard]] const std::vector<std::vector<span>>& spans() const { return spans_; }

 private:
  /// What the states after a state say about it.
  bool gather(std::uint32_t i) {
    gathered_.clear();
    if (of_.accepting[graph_.states[i]] != 0) gathered_.push_back({0, 0});
    for (const auto to : graph_.after(i))
      for (const auto& [least, most] : spans_[to])
        if (least < most_) gathered_.push_back({least + 1, most == unlimited ? most : most + 1});
    join(gathered_);
    return gathered_.size() <= spans_max;
  }

  [[nodiscard]] std::vector<std::uint32_t> least_lengths(const code_point_graph& back) const {
    std::vector<std::uint32_t> made(graph_.size(), unlimited), pending;
    for (std::uint32_t i = 0; i < graph_.size(); ++i)
      if (of_.accepting[graph_.states[i]] != 0) made[i] = 0, pending.push_back(i);
    for (std::size_t k = 0; k < pending.size(); ++k)
      for (const auto before : back.after(pending[k]))
        if (made[before] == unlimited) made[before] = made[pending[k]] + 1, pending.push_back(before);
    return made;
  }

  const dfa& of_;
  const code_point_graph& graph_;
  std::uint32_t most_;
  std::vector<std::vector<span>> spans_;
  std::vector<span> gathered_;
};

/// States from which a text may end, or continue, after every code point: there, counting is enough.
std::vector<bool> free_states(const code_point_graph& graph, const std::vector<std::vector<span>>& spans) {
  const auto back = reversed(graph);
  std::vector<bool> made(graph.size(), true);
  std::vector<std::uint32_t> pending;
  const auto limit = [&](std::uint32_t i) {
    if (!made[i]) return;
    made[i] = false;
    pending.push_back(i);
  };
  for (std::uint32_t i = 0; i < graph.size(); ++i)
    if (spans[i].size() != 1 || spans[i].front() != span{0, unlimited}) limit(i);
  for (std::size_t k = 0; k < pending.size(); ++k)
    for (const auto before : back.after(pending[k])) limit(before);
  return made;
}

/// How many code points may follow each state: none to that number.
std::vector<std::vector<span>> greatest_lengths(const code_point_graph& graph) {
  const auto back = reversed(graph);
  std::vector<std::vector<span>> made(graph.size(), {{0, unlimited}});
  std::vector<std::uint32_t> left(graph.size()), order;
  for (std::uint32_t i = 0; i < graph.size(); ++i)
    if ((left[i] = static_cast<std::uint32_t>(graph.after(i).size())) == 0) order.push_back(i);
  for (std::size_t k = 0; k < order.size(); ++k) {
    std::uint32_t most = 0;
    for (const auto to : graph.after(order[k])) most = std::max(most, made[to].front().most + 1);
    made[order[k]].front().most = most;
    for (const auto before : back.after(order[k]))
      if (--left[before] == 0) order.push_back(before);
  }
  return made;
}

/// The answers for each number of code points, where spans are too many, as for `(abc)*`.
result<void> add_rows(const dfa& of, const code_point_graph& graph, const inner_ends& inner, std::uint32_t most,
                      budget& work, program::length_table& to) {
  std::vector<std::vector<bool>> possible{std::vector<bool>(graph.size())};
  for (std::uint32_t i = 0; i < graph.size(); ++i) possible[0][i] = of.accepting[graph.states[i]] != 0;
  // Each answer follows from the one before, so they repeat from the first that is equal to an earlier one.
  std::unordered_map<std::vector<bool>, std::size_t> known{{possible.front(), 0}};
  const auto last_needed = std::min(most, table_lengths_max);
  std::size_t period = 0;
  while (possible.size() <= last_needed) {
    if (!work.spend(graph.size() * 4)) return too_much_work(work);
    std::vector<bool> now(graph.size());
    for (std::uint32_t i = 0; i < graph.size(); ++i)
      now[i] = std::ranges::any_of(graph.after(i), [&](auto next) { return possible.back()[next]; });
    const auto [place, is_new] = known.try_emplace(now, possible.size());
    if (!is_new) {
      period = possible.size() - place->second;
      break;
    }
    possible.push_back(std::move(now));
  }
  if (period == 0 && most > table_lengths_max)
    return error{error_kind::unsupported, "a pattern with a limit of length above 4096 is not supported", "maxLength"};
  to.last = static_cast<std::uint32_t>(possible.size() - 1);
  if (period > 0) to.period = static_cast<std::uint32_t>(period);
  const auto row_size = possible.size() + 1;
  for (const auto& each : inner.sets)
    if (!work.spend(each.size() * row_size)) return too_much_work(work);
  to.sums.resize((graph.size() + inner.sets.size()) * row_size);
  const auto add_row = [&](std::size_t row, const auto& is_possible) {
    for (std::size_t k = 0; k < possible.size(); ++k)
      to.sums[row * row_size + k + 1] = to.sums[row * row_size + k] + (is_possible(possible[k]) ? 1 : 0);
  };
  for (std::size_t i = 0; i < graph.size(); ++i) add_row(i, [&](const auto& states) { return states[i]; });
  for (std::size_t i = 0; i < inner.sets.size(); ++i)
    add_row(graph.size() + i, [&](const auto& states) {
      return std::ranges::any_of(inner.sets[i], [&](std::uint32_t end) { return states[end]; });
    });
  return {};
}

}  // namespace

result<std::shared_ptr<const program::length_table>> lengths_of(const dfa& of, std::uint32_t most, budget& work) {
  using made_table = std::shared_ptr<const program::length_table>;
  const bool limited = most != program::none;
  auto graph = graph_of(of, work);
  if (!graph) return graph.error();
  if (!work.spend(20 * graph->size() + 10 * graph->next.size())) return too_much_work(work);
  auto made = std::make_shared<program::length_table>();
  made->number.assign(of.states(), program::none);
  for (std::uint32_t i = 0; i < graph->size(); ++i) made->number[graph->states[i]] = i;
  const auto inner = ends_of(of, *graph, made->number, work);
  if (!inner) return inner.error();
  for (std::size_t i = 0; i < graph->inner.size(); ++i) {
    auto& number = made->number[graph->inner[i].state];
    // A state that accepts whatever follows is both within and between code points.
    if (number != program::none || inner->set_of[i] == program::none) continue;
    const auto& ends = inner->sets[inner->set_of[i]];
    number = ends.size() == 1 ? ends.front() : static_cast<std::uint32_t>(graph->size() + inner->set_of[i]);
  }
  const auto keep = [&](const std::vector<std::vector<span>>& spans) -> made_table {
    made->free = free_states(*graph, spans);
    if (std::ranges::find(made->free, false) == made->free.end()) return nullptr;
    made->begin.push_back(0);
    for (const auto& each : spans) {
      made->spans.insert(made->spans.end(), each.begin(), each.end());
      made->begin.push_back(static_cast<std::uint32_t>(made->spans.size()));
      made->last = std::max(made->last, each.empty() ? most : each.front().least);
    }
    std::vector<span> either;
    for (const auto& ends : inner->sets) {
      either.clear();
      for (const auto end : ends) either.insert(either.end(), spans[end].begin(), spans[end].end());
      join(either);
      made->spans.insert(made->spans.end(), either.begin(), either.end());
      made->begin.push_back(static_cast<std::uint32_t>(made->spans.size()));
    }
    return std::move(made);
  };
  if (!limited) return keep(greatest_lengths(*graph));
  if (span_finder finder(of, *graph, most); finder.run()) return keep(finder.spans());
  if (const auto added = add_rows(of, *graph, *inner, most, work, *made); !added) return added.error();
  return made_table(std::move(made));
}

bool program::length_table::possible(std::uint32_t state, std::uint64_t least, std::uint64_t most) const {
  const auto of = number[state];
  if (of == none) return false;
  if (sums.empty()) {
    const auto fits = [&](const span& each) { return each.least <= most && (each.most == none || least <= each.most); };
    return std::any_of(spans.begin() + begin[of], spans.begin() + begin[of + 1], fits);
  }
  const auto row = std::size_t{of} * (last + 2);
  const auto end = std::min<std::uint64_t>(most, last);
  if (least <= end && sums[row + end + 1] != sums[row + least]) return true;
  if (most <= last) return false;
  const std::uint64_t from = std::max<std::uint64_t>(least, last + 1), begin_of_period = last + 1 - period;
  const auto count = std::min<std::uint64_t>(most - from + 1, period);
  for (std::uint64_t k = from; k < from + count; ++k) {
    const auto at = begin_of_period + (k - begin_of_period) % period;
    if (sums[row + at + 1] != sums[row + at]) return true;
  }
  return false;
}

}  // namespace skein::grammar
