#include "grammar/mask_builder.hpp"

#include <algorithm>
#include <bit>

namespace skein::grammar {
namespace {

constexpr std::size_t steps_worth_caching = 256;
constexpr std::uint32_t few_children = 4;          // of a node; the bytes that may follow are not worth looking up
constexpr std::uint32_t few_tokens = 8;            // below a node; likewise whether all of them are allowed
constexpr std::uint32_t worth_a_search = 64;       // tokens below a node; see safe_texts
constexpr std::uint32_t searches_max = 4;          // for one mask
constexpr std::size_t tokens_worth_trying = 2048;  // one by one; more of them are tried along the trie
constexpr std::size_t first_batch = 4, batch_growth = 4;  // of threads, see walk
constexpr std::size_t batched_tokens_max = 16'384;

void add_mask(std::span<const std::uint32_t> mask, std::span<std::uint32_t> into) {
  for (std::size_t i = 0; i < mask.size(); ++i) into[i] |= mask[i];
}

void allow(token_id token, std::span<std::uint32_t> into) {
  into[static_cast<std::size_t>(token) / 32] |= 1u << (token % 32);
}

bool has(token_id token, std::span<const std::uint32_t> mask) {
  return (mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0;
}

}  // namespace

std::uint64_t mask_builder::key_of(const std::vector<thread>& threads) const {
  // The order of the threads does not matter.
  std::uint64_t sum = 0, product = 1;
  for (const auto& t : threads) {
    const auto h = t.hash(machine_.frames());
    sum += h;
    product *= h | 1;
  }
  return mixed(mixed(mixed(threads.size(), sum), product), reinterpret_cast<std::uintptr_t>(&vocabulary_));
}

bool mask_builder::is_digested(const thread& t) const {
  return t.top != program::none && (machine_.frames()[t.top].digested || t.value != 0);
}

void mask_builder::build(const std::vector<thread>& threads, std::span<std::uint32_t> allowed) {
  std::ranges::fill(allowed, 0);
  in_name_.clear();
  in_pattern_.clear();
  between_.clear();
  numbers_.clear();
  others_.clear();
  free_.clear();
  text_added_ = 0;
  const auto before = machine_.frames().now();
  for (const auto& t : threads) sort(t, allowed);
  add_closing(allowed);
  add_numbers(allowed);
  add_starts(allowed);
  machine_.frames().release(before);
  run(vocabulary_.closing_trie(), in_name_, allowed);
  run(vocabulary_.special(), in_pattern_, allowed);
  run(vocabulary_.all(), others_, allowed);
}

/// Adds the tokens of a thread that need no step of the machine, and puts it where the others are found.
void mask_builder::sort(const thread& t, std::span<std::uint32_t> allowed) {
  using freedom = string_machine::freedom;
  const bool is_string = t.where == thread::at::string, is_name = t.where == thread::at::name;
  switch (t.where) {
    case thread::at::text: return add_whole_text(t, allowed);
    case thread::at::number: numbers_.push_back(t); return machine_.end_number(t, between_);
    case thread::at::value:
    case thread::at::object_open:
    case thread::at::next_name:
    case thread::at::colon:
    case thread::at::after_member:
    case thread::at::array_open:
    case thread::at::after_item:
    case thread::at::end: return between_.push_back(t);
    default: break;
  }
  std::uint64_t characters = 0;
  const auto free =
      (is_string || is_name) && t.escape == 0 ? machine_.strings().freedom_of(t, characters) : freedom::listed;
  if (free == freedom::listed) {
    others_.push_back(t);
    return;
  }
  if (free == freedom::any || free == freedom::limited) add_text(characters, allowed);
  if (is_name) {
    if (free == freedom::automaton) {
      add_automaton(*machine_.of().objects[t.spec].other_names, t.d, characters, allowed);
      if (t.a < t.b) {  // some tokens continue only a listed name
        others_.push_back(t);
        others_.back().d = 0;
      }
    }
    (free == freedom::any ? in_name_ : in_pattern_).push_back(t);
    return;
  }
  const auto& spec = machine_.of().strings[t.spec];
  if (!spec.automaton && t.value == 0) {
    free_.push_back({t, spec.least - std::min(spec.least, t.c), characters});
    return;
  }
  if (free == freedom::automaton) add_automaton(*spec.automaton, t.a, characters, allowed);
  if (free == freedom::counted) add_counted(t, allowed);
  auto& list = free == freedom::any || free == freedom::limited ? in_name_ : in_pattern_;
  list.push_back(t);
  // With room for any token, the exact length makes no difference.
  if (free != freedom::counted && characters > vocabulary_.characters_max()) list.back().c = std::min(t.c, spec.least);
}

void mask_builder::add_text(std::uint64_t characters, std::span<std::uint32_t> allowed) {
  if (characters <= text_added_) return;
  text_added_ = characters;
  if (characters >= vocabulary_.characters_max()) return add_mask(vocabulary_.text_mask(), allowed);
  add_mask(vocabulary_.plain_mask(characters), allowed);
  for (const auto& each : vocabulary_.inner())
    if (each.characters <= characters) allow(each.token, allowed);
}

/// Closes the strings of any text and tries the tails of tokens after that.
void mask_builder::add_closing(std::span<std::uint32_t> allowed) {
  const auto before = machine_.frames().now();
  closed_.clear();
  for (auto& one : free_) {
    one.least = std::min<std::uint64_t>(one.least, vocabulary_.characters_max() + 1);
    one.most = std::min<std::uint64_t>(one.most, vocabulary_.characters_max());
  }
  while (!free_.empty()) {
    // Together with all others that need and may have as many characters.
    const auto least = free_.back().least, most = free_.back().most;
    some_.clear();
    std::erase_if(free_, [&](const free_string& one) {
      if (one.least != least || one.most != most) return false;
      thread closed = one.at;
      closed.c = machine_.of().strings[closed.spec].least;
      pool_.assign(1, closed);
      (void)machine_.step(pool_, 0, 1, '"', some_);
      return true;
    });
    if (some_.empty()) continue;
    const auto key = key_of(some_);
    auto known = std::ranges::find(closed_, key, &closed_strings::key);
    if (known == closed_.end()) {
      walk(vocabulary_.tails(), some_);
      known =
          closed_.insert(closed_.end(), {key, std::vector<std::uint32_t>((vocabulary_.closing().size() + 31) / 32)});
      for (const auto tail : found_) allow(tail, known->tails);
    }
    for (const auto& each : vocabulary_.closing())
      if (each.characters >= least && each.characters <= most && has(static_cast<token_id>(each.tail), known->tails))
        allow(each.token, allowed);
    machine_.frames().release(before);
  }
}

/// Tokens that begin between two tokens of JSON.
void mask_builder::add_starts(std::span<std::uint32_t> allowed) {
  const auto blanks_max = machine_.of().bounds.whitespace_max;
  while (!between_.empty()) {
    // Together with all others that may have as many blanks.
    const auto blanks_read = between_.back().a;
    some_.clear();
    std::erase_if(between_, [&](const thread& t) {
      if (t.a != blanks_read) return false;
      some_.push_back(t);
      return true;
    });
    walk(vocabulary_.starts(), some_);
    for (const auto start : found_)
      for (const auto& each : vocabulary_.with_start(start))
        if (each.blanks + std::uint64_t{blanks_read} <= blanks_max) allow(each.token, allowed);
  }
}

/// Tokens that continue a number. What ends it is tried in add_starts.
void mask_builder::add_numbers(std::span<std::uint32_t> allowed) {
  if (numbers_.empty()) return;
  walk(vocabulary_.all(), numbers_, "0123456789-+.eE");
  for (const auto token : found_) allow(token, allowed);
}

grammar::mask mask_builder::mask_of(const dfa& of, std::uint32_t state) {
  const auto key =
      mixed(mixed(reinterpret_cast<std::uintptr_t>(&of), state), reinterpret_cast<std::uintptr_t>(&vocabulary_));
  if (auto known = grammar_.cached(key)) return known;
  auto made = std::make_shared<std::vector<std::uint32_t>>(vocabulary_.words());
  add_raw_tokens_of(safe_.of(of), state, vocabulary_, *made);
  grammar_.cache(key, made);
  return made;
}

void mask_builder::add_automaton(const dfa& of, std::uint32_t state, std::uint64_t characters,
                                 std::span<std::uint32_t> allowed) {
  const auto known = mask_of(of, state);
  if (characters >= vocabulary_.characters_max()) return add_mask(*known, allowed);
  const auto short_enough = vocabulary_.plain_mask(characters);
  for (std::size_t i = 0; i < known->size(); ++i) allowed[i] |= (*known)[i] & short_enough[i];
  for (const auto& each : vocabulary_.inner())
    if (each.characters <= characters && has(each.token, *known)) allow(each.token, allowed);
}

void mask_builder::add_counted(const thread& t, std::span<std::uint32_t> allowed) {
  const auto& spec = machine_.of().strings[t.spec];
  // The table of lengths repeats itself from `last` on. As long as at least that number of characters is left, it
  // allows every state.
  const std::uint64_t left = spec.most == program::none ? ~std::uint64_t{0} : spec.most - t.c;
  const std::uint64_t roomy = left - std::min<std::uint64_t>(left, spec.lengths->last);
  if (t.c + 1 >= spec.least && roomy > 0) {
    const auto known = mask_of(*spec.automaton, t.a);
    const auto within = vocabulary_.plain_mask(roomy), within_most = vocabulary_.plain_mask(left);
    std::size_t longer = 0;
    for (std::size_t i = 0; i < known->size(); ++i)
      longer += static_cast<std::size_t>(std::popcount((*known)[i] & within_most[i] & ~within[i]));
    if (longer <= tokens_worth_trying) {
      add_automaton(*spec.automaton, t.a, roomy, allowed);
      if (roomy >= vocabulary_.characters_max()) return;
      const auto try_one = [&](token_id token) {
        if (may_continue(spec, t.a, t.c, vocabulary_.vocabulary().text(token))) allow(token, allowed);
      };
      for (std::size_t i = 0; i < known->size(); ++i)
        for (auto some = (*known)[i] & within_most[i] & ~within[i]; some != 0; some &= some - 1)
          try_one(static_cast<token_id>(i * 32 + static_cast<std::size_t>(std::countr_zero(some))));
      for (const auto& each : vocabulary_.inner())
        if (each.raw && each.characters > roomy && each.characters <= left && has(each.token, *known))
          try_one(each.token);
      return;
    }
  }
  const auto key = mixed(mixed(mixed(reinterpret_cast<std::uintptr_t>(&spec), t.a), t.c),
                         reinterpret_cast<std::uintptr_t>(&vocabulary_));
  auto known = grammar_.cached(key);
  if (!known) {
    auto made = std::make_shared<std::vector<std::uint32_t>>(vocabulary_.words());
    add_counted_tokens_of(spec, t.a, t.c, vocabulary_, *made);
    known = std::move(made);
    grammar_.cache(key, known);
  }
  add_mask(*known, allowed);
}

/// Of a grammar that is one automaton.
void mask_builder::add_whole_text(const thread& t, std::span<std::uint32_t> allowed) {
  const auto key = mixed(mixed(0x7e47, t.a), reinterpret_cast<std::uintptr_t>(&vocabulary_));
  auto known = grammar_.cached(key);
  if (!known) {
    auto made = std::make_shared<std::vector<std::uint32_t>>(vocabulary_.words());
    add_tokens_of(*machine_.of().text, t.a, vocabulary_.all(), *made);
    known = std::move(made);
    grammar_.cache(key, known);
  }
  add_mask(*known, allowed);
}

void mask_builder::run(const token_trie& trie, const std::vector<thread>& some, std::span<std::uint32_t> allowed) {
  if (some.empty()) return;
  // What depends on the items of an array so far does not come again.
  const bool recurs = std::ranges::none_of(some, [this](const thread& t) { return is_digested(t); });
  const auto key = mixed(key_of(some), reinterpret_cast<std::uintptr_t>(&trie));
  if (const auto known = recurs ? grammar_.cached(key) : nullptr) return add_mask(*known, allowed);
  const auto steps = walk(trie, some);
  if (!recurs || steps < steps_worth_caching) {
    for (const auto token : found_) allow(token, allowed);
    return;
  }
  auto made = std::make_shared<std::vector<std::uint32_t>>(vocabulary_.words());
  for (const auto token : found_) allow(token, *made);
  add_mask(*made, allowed);
  grammar_.cache(key, std::move(made));
}

/// True if a thread reads all texts below a node, which it has reached. False if that is not certain.
bool mask_builder::reads_all_below(const thread& t, const token_trie::node& node) {
  using freedom = string_machine::freedom;
  const bool is_string = t.where == thread::at::string;
  if ((!is_string && t.where != thread::at::name) || t.escape != 0) return false;
  std::uint64_t characters = 0;
  switch (machine_.strings().freedom_of(t, characters)) {
    case freedom::any: return true;
    case freedom::limited: return characters >= node.height;
    case freedom::automaton: {
      if (characters < node.height) return false;
      const auto& of =
          is_string ? *machine_.of().strings[t.spec].automaton : *machine_.of().objects[t.spec].other_names;
      const auto state = is_string ? t.a : t.d;
      const auto safe =
          node.end - node.from >= worth_a_search ? safe_.of(of).from_if_cheap(state) : safe_.of(of).if_known(state);
      return (node.below & ~safe.groups) == 0 && node.height <= safe.characters;
    }
    default: return false;
  }
}

std::size_t mask_builder::walk(const token_trie& trie, const std::vector<thread>& threads, std::string_view first) {
  safe_.allow_searches(searches_max);
  found_.clear();
  missing_.clear();
  is_found_.clear();
  if (threads.size() <= first_batch || trie.tokens().size() > batched_tokens_max)
    return walk_batch(trie, threads, first);
  // Parallel stacks allow nearly the same tokens. So those of the first few threads are found, and the others try what
  // is missing.
  std::size_t steps = 0;
  const std::span all(threads);
  is_found_.assign(trie.tokens().size(), false);
  for (std::size_t from = 0, count = first_batch; from < all.size(); from += count, count *= batch_growth) {
    if (from > 0) count_missing(trie);
    count = std::min(count, all.size() - from);
    steps += walk_batch(trie, all.subspan(from, count), first);
  }
  return steps;
}

/// Prepares the test whether tokens below a node are missing.
void mask_builder::count_missing(const token_trie& trie) {
  missing_.assign(1, 0);
  for (std::size_t i = 0; i < trie.tokens().size(); ++i) missing_.push_back(missing_.back() + (is_found_[i] ? 0 : 1));
}

std::size_t mask_builder::walk_batch(const token_trie& trie, std::span<const thread> threads, std::string_view first) {
  const auto& tokens = trie.tokens();
  const auto add = [&](std::uint32_t from, std::uint32_t end) {
    found_.insert(found_.end(), tokens.begin() + from, tokens.begin() + end);
    if (!is_found_.empty()) std::fill(is_found_.begin() + from, is_found_.begin() + end, true);
  };
  pool_.assign(threads.begin(), threads.end());
  begin_.assign({0, threads.size()});
  marks_.assign({machine_.frames().now()});
  levels_.clear();
  const auto open = [&](const token_trie::node& node, std::size_t from) {
    auto& level = levels_.emplace_back(node.first, node.first + node.children, node.children > few_children);
    for (std::size_t i = from; level.pruned && i < pool_.size(); ++i) bytes_.add(pool_[i], level.bytes);
  };
  if (trie.root().token != no_token) add(0, 1);
  open(trie.root(), 0);
  if (!first.empty()) {
    levels_.front() = {trie.root().first, trie.root().first + trie.root().children, true, {}};
    for (const char byte : first) levels_.front().bytes.add(static_cast<unsigned char>(byte));
  }
  std::size_t steps = 0;
  while (!levels_.empty()) {
    auto& level = levels_.back();
    if (level.next == level.end) {
      levels_.pop_back();
      continue;
    }
    const auto& node = trie[level.next++];
    if (level.pruned && !level.bytes.has(node.byte)) continue;
    if (!missing_.empty() && missing_[node.from] == missing_[node.end]) continue;
    // The threads of this level are begin_[depth] .. begin_[depth + 1]; those of deeper ones are over.
    const std::size_t depth = levels_.size() - 1;
    begin_.resize(depth + 2);
    marks_.resize(depth + 1);
    pool_.resize(begin_.back());
    machine_.frames().release(marks_.back());
    ++steps;
    if (!machine_.step(pool_, begin_[depth], begin_[depth + 1] - begin_[depth], node.byte, pool_)) continue;
    if (pool_.size() == begin_[depth + 1]) continue;
    if (node.token != no_token) add(node.from, node.from + 1);
    if (node.children == 0) continue;
    if (node.plain_below && node.end - node.from >= few_tokens &&
        std::any_of(pool_.begin() + static_cast<std::ptrdiff_t>(begin_[depth + 1]), pool_.end(),
                    [&](const thread& t) { return reads_all_below(t, node); })) {
      add(node.from + (node.token != no_token ? 1 : 0), node.end);
      continue;
    }
    begin_.push_back(pool_.size());
    marks_.push_back(machine_.frames().now());
    open(node, begin_[depth + 1]);
  }
  machine_.frames().release(marks_.front());
  return steps;
}

}  // namespace skein::grammar
