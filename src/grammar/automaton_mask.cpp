#include "grammar/automaton_mask.hpp"

#include <algorithm>
#include <array>

namespace skein::grammar {
namespace {

using trie_node = token_trie::node;

void take(token_id token, std::span<std::uint32_t> into) {
  into[static_cast<std::size_t>(token) / 32] |= 1u << (token % 32);
}

/// The bytes of a character after its first one.
std::uint8_t bytes_after(unsigned first) { return first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3; }

/// Nodes of a trie whose turn has not come, with the state before them.
struct level {
  const trie_node* next;
  const trie_node* end;
  std::uint32_t state;
  std::uint32_t characters = 0;
  bool in_loop = false;  ///< only characters of the safe groups so far
};

class level_stack {
 public:
  level& push(const token_trie& trie, const trie_node& of, std::uint32_t state) {
    const auto nodes = trie.children(of);
    return levels_[size_++] = {nodes.data(), nodes.data() + nodes.size(), state};
  }
  /// The level of the next node; null at the end.
  level* current() {
    while (size_ > 0 && levels_[size_ - 1].next == levels_[size_ - 1].end) --size_;
    return size_ == 0 ? nullptr : &levels_[size_ - 1];
  }

 private:
  std::array<level, token_trie::bytes_max + 1> levels_;
  std::size_t size_ = 0;
};

constexpr std::size_t automata_max = 16;
constexpr std::size_t states_max = 12;           // after one number of characters
constexpr std::uint32_t characters_needed = 32;  // tokens are shorter, with very few exceptions

}  // namespace

safe_texts::safe_texts(const dfa& of) : of_(of) {
  const auto add = [&](const beginning& made) {
    if (std::ranges::find(beginnings_, made) == beginnings_.end()) beginnings_.push_back(made);
  };
  for (unsigned byte = 0x20; byte <= 0xf4; ++byte) {
    const auto group = token_trie::group_of(static_cast<unsigned char>(byte));
    if (byte == '"' || byte == '\\' || byte == 0xc0 || byte == 0xc1 || group == 0) continue;
    const std::uint8_t low = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
    const std::uint8_t high = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
    add({of.class_of[byte], group, bytes_after(byte), low, high});
  }
}

safe_texts::found safe_texts::from(std::uint32_t state) {
  auto& place = known_[state % known_.size()];
  if (place.state != state) place = {state, search(state)};
  return place.what;
}

safe_texts::found safe_texts::from_if_cheap(std::uint32_t state) {
  if (known_[state % known_.size()].state != state) {
    if (searches_ == 0) return {};
    --searches_;
  }
  return from(state);
}

bool safe_texts::follow(std::uint32_t state, const beginning& by, std::vector<std::uint32_t>& to) {
  const auto first = of_.next[std::size_t{state} * of_.classes + by.kind];
  if (first == dfa::dead) return false;
  if (by.more == 0) {
    if (std::ranges::find(to, first) == to.end()) to.push_back(first);
    return true;
  }
  // Most first bytes lead to the same few states.
  const within_character here{first, by.more, by.low, by.high};
  if (std::ranges::find(followed_, here) != followed_.end()) return true;
  std::array<std::uint32_t, 4> states{};
  std::array<unsigned, 4> bytes{}, last{};
  std::size_t more = by.more;
  states[more] = first;
  bytes[more] = by.low;
  last[more] = by.high;
  while (more <= by.more) {
    if (bytes[more] > last[more]) {
      ++more;
      continue;
    }
    const auto kind = of_.class_of[bytes[more]];
    const auto next = of_.step(states[more], static_cast<unsigned char>(bytes[more]));
    while (bytes[more] <= last[more] && of_.class_of[bytes[more]] == kind) ++bytes[more];  // they lead to the same
    if (next == dfa::dead) return false;
    if (more == 1) {
      if (std::ranges::find(to, next) == to.end()) to.push_back(next);
      continue;
    }
    --more;
    states[more] = next;
    bytes[more] = 0x80;
    last[more] = 0xbf;
  }
  followed_.push_back(here);
  return true;
}

/// True if some first byte of the groups leads on.
bool safe_texts::reads_any(std::uint32_t state, unsigned groups) const {
  return std::ranges::any_of(beginnings_, [&](const beginning& by) {
    return (groups & by.group) != 0 && of_.next[std::size_t{state} * of_.classes + by.kind] != dfa::dead;
  });
}

/// Reads one more character of the groups at a time. A group after which the automaton may die is left out, and the
/// search begins again; unless all of them die there, as at the end of `[a-z]{1,64}`.
safe_texts::found safe_texts::search(std::uint32_t state) {
  unsigned groups = 0xff;
  while (groups != 0) {
    now_.assign(1, state);
    seen_.assign(1, state);
    std::uint32_t characters = 0;
    unsigned dead = 0;
    while (characters < characters_needed) {
      next_.clear();
      followed_.clear();
      for (const auto at : now_)
        for (const auto& by : beginnings_) {
          if ((groups & ~dead & by.group) == 0) continue;
          if (!follow(at, by, next_)) dead |= by.group;
        }
      if (dead != 0) {
        if (characters > 0 && (groups & ~dead) == 0) {
          const bool ends = std::ranges::none_of(now_, [&](std::uint32_t at) { return reads_any(at, groups); });
          return {static_cast<std::uint8_t>(groups), characters, ends};
        }
        break;
      }
      if (next_.size() > states_max)
        return {characters > 0 ? static_cast<std::uint8_t>(groups) : std::uint8_t{0}, characters};
      ++characters;
      const auto before = seen_.size();
      for (const auto at : next_)
        if (std::ranges::find(seen_, at) == seen_.end()) seen_.push_back(at);
      // Without a new state, the same states come again and again.
      if (seen_.size() == before) return {static_cast<std::uint8_t>(groups), characters_max};
      now_.swap(next_);
    }
    if (dead == 0) return {static_cast<std::uint8_t>(groups), characters};
    groups &= ~dead;
  }
  return {};
}

safe_texts& safe_text_cache::of(const dfa& automaton) {
  for (auto& each : known_)
    if (&each.of() == &automaton) return each;
  if (known_.size() >= automata_max) known_.pop_front();
  return known_.emplace_back(automaton);
}

void add_tokens_of(const dfa& of, std::uint32_t state, const token_trie& trie, std::span<std::uint32_t> allowed) {
  level_stack open;
  open.push(trie, trie.root(), state);
  while (auto* const level = open.current()) {
    const auto& node = *level->next++;
    const auto next = of.step(level->state, node.byte);
    if (next == dfa::dead) continue;
    if (node.token != no_token) take(node.token, allowed);
    if (node.children > 0) open.push(trie, node, next);
  }
}

void add_raw_tokens_of(safe_texts& safe, std::uint32_t state, const vocabulary_index& vocabulary,
                       std::span<std::uint32_t> allowed) {
  // A search for safe texts takes about as long as trying this number of tokens.
  constexpr std::uint32_t worth_a_search = 64;
  const auto& of = safe.of();
  const auto& trie = vocabulary.raw();
  safe.allow_searches(8);
  const auto [groups, length, ends] = safe.from(state);
  const auto is_safe = [](std::uint8_t of_text, std::uint8_t of_safe) { return (of_text & ~of_safe) == 0; };
  if (groups != 0) {
    const auto short_enough = vocabulary.plain_mask(length);
    for (const auto& some : vocabulary.by_groups()) {
      if (!is_safe(some.groups, groups)) continue;
      for (const auto token : some.few)
        if ((short_enough[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0) take(token, allowed);
      for (std::size_t i = 0; i < some.mask.size(); ++i) allowed[i] |= some.mask[i] & short_enough[i];
    }
    for (const auto& each : vocabulary.inner())
      if (each.raw && each.characters <= length && is_safe(each.groups, groups)) take(each.token, allowed);
  }
  level_stack open;
  open.push(trie, trie.root(), state).in_loop = groups != 0;
  while (auto* const level = open.current()) {
    const auto& node = *level->next++;
    const bool begins = (node.byte & 0xc0) != 0x80;
    // Bytes stand for characters here: there are at least as many.
    const bool in_loop = level->in_loop && (!begins || (token_trie::group_of(node.byte) & groups) != 0);
    const auto bytes = level->characters + 1;
    if (in_loop && is_safe(node.below, groups) && (ends || bytes + node.height <= length)) continue;
    const auto next = of.step(level->state, node.byte);
    if (next == dfa::dead) continue;
    if (node.token != no_token) take(node.token, allowed);
    if (node.children == 0) continue;
    if (node.byte < 0x80) {
      const auto from_here = node.end - node.from >= worth_a_search ? safe.from_if_cheap(next) : safe.if_known(next);
      if (is_safe(node.below, from_here.groups) && node.height <= from_here.characters) {
        for (auto i = node.from; i < node.end; ++i) take(trie.tokens()[i], allowed);
        continue;
      }
    }
    auto& below = open.push(trie, node, next);
    below.in_loop = in_loop;
    below.characters = bytes;
  }
}

void add_counted_tokens_of(const program::string_spec& of, std::uint32_t state, std::uint32_t read,
                           const vocabulary_index& vocabulary, std::span<std::uint32_t> allowed) {
  const auto& trie = vocabulary.raw();
  const bool limited = of.most != program::none;
  level_stack open;
  open.push(trie, trie.root(), state).characters = read;
  while (auto* const level = open.current()) {
    const auto& node = *level->next++;
    const bool begins = (node.byte & 0xc0) != 0x80;
    const std::uint32_t characters = level->characters + (begins ? 1 : 0);
    if (limited && characters > of.most) continue;
    const auto next = of.automaton->step(level->state, node.byte);
    if (next == dfa::dead) continue;
    const std::uint64_t least = of.least - std::min(of.least, characters);
    const std::uint64_t most = limited ? of.most - characters : ~std::uint64_t{0};
    if (!of.lengths->possible(next, least, most)) continue;
    if (node.token != no_token) take(node.token, allowed);
    if (node.children == 0) continue;
    open.push(trie, node, next).characters = characters;
  }
}

bool may_continue(const program::string_spec& of, std::uint32_t state, std::uint32_t read, std::string_view text) {
  const auto is_possible = [&] {
    const std::uint64_t least = of.least - std::min(of.least, read);
    return of.lengths->possible(state, least, of.most == program::none ? ~std::uint64_t{0} : of.most - read);
  };
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0) != 0x80) ++read;
    if (read > of.most) return false;
    state = of.automaton->step(state, byte);
    if (state == dfa::dead || !is_possible()) return false;
  }
  return true;
}

}  // namespace skein::grammar
