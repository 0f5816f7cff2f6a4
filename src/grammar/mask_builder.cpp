#include "grammar/mask_builder.hpp"

#include <algorithm>

namespace skein::grammar {
namespace {

constexpr std::size_t visits_worth_caching = 256, longest_token = 256;

void add_mask(std::span<const std::uint32_t> mask, std::span<std::uint32_t> into) {
  for (std::size_t i = 0; i < mask.size(); ++i) into[i] |= mask[i];
}

void allow(token_id token, std::span<std::uint32_t> into) {
  into[static_cast<std::size_t>(token) / 32] |= 1u << (token % 32);
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
  return t.top != program::none && machine_.frames()[t.top].digested;
}

void mask_builder::build(const std::vector<thread>& threads, std::span<std::uint32_t> allowed) {
  std::ranges::fill(allowed, 0);
  in_text_.clear();
  others_.clear();
  for (const auto& t : threads) {
    const bool between = (t.where == thread::at::string || t.where == thread::at::name) && t.escape == 0;
    std::uint64_t characters = 0;
    const auto free = between ? machine_.strings().freedom_of(t, characters) : string_machine::freedom::listed;
    if (free == string_machine::freedom::listed) {
      others_.push_back(t);
      continue;
    }
    in_text_.push_back(t);
    // With room for any token, the exact length makes no difference.
    if (t.where == thread::at::string && characters > longest_token)
      in_text_.back().c = std::min(t.c, machine_.of().strings[t.spec].least);
    if (free != string_machine::freedom::automaton) {
      add_mask(vocabulary_.plain_mask(characters), allowed);
    } else if (t.where == thread::at::string) {
      add_automaton(*machine_.of().strings[t.spec].automaton, t.a, characters, allowed);
    } else {
      add_automaton(*machine_.of().objects[t.spec].other_names, t.d, characters, allowed);
    }
  }
  const auto run = [&](std::span<const trie_node> trie, const std::vector<thread>& some) {
    if (some.empty()) return;
    // What depends on the items of an array so far does not come again.
    const bool recurs = std::ranges::none_of(some, [this](const thread& t) { return is_digested(t); });
    const auto key = mixed(key_of(some), reinterpret_cast<std::uintptr_t>(trie.data()));
    if (const auto known = recurs ? grammar_.cached(key) : nullptr) return add_mask(*known, allowed);
    made_.assign(vocabulary_.words(), 0);
    const auto visits = walk(trie, some, made_);
    add_mask(made_, allowed);
    if (recurs && visits >= visits_worth_caching)
      grammar_.cache(key, std::make_shared<const std::vector<std::uint32_t>>(made_));
  };
  run(vocabulary_.special(), in_text_);
  run(vocabulary_.all(), others_);
}

void mask_builder::add_automaton(const dfa& of, std::uint32_t state, std::uint64_t characters,
                                 std::span<std::uint32_t> allowed) {
  const auto key =
      mixed(mixed(reinterpret_cast<std::uintptr_t>(&of), state), reinterpret_cast<std::uintptr_t>(&vocabulary_));
  auto known = grammar_.cached(key);
  if (!known) {
    auto made = std::make_shared<std::vector<std::uint32_t>>(vocabulary_.words());
    const auto trie = vocabulary_.plain();
    std::vector<std::uint32_t> states(257, state);
    for (std::size_t i = 0; i < trie.size();) {
      const auto next = of.step(states[trie[i].depth], trie[i].byte);
      if (next == dfa::dead) {
        i += trie[i].below + 1;
        continue;
      }
      states[trie[i].depth + 1u] = next;
      if (trie[i].token != no_token) allow(trie[i].token, *made);
      ++i;
    }
    known = std::move(made);
    grammar_.cache(key, known);
  }
  const auto short_enough = vocabulary_.plain_mask(characters);
  for (std::size_t i = 0; i < known->size(); ++i) allowed[i] |= (*known)[i] & short_enough[i];
}

std::size_t mask_builder::walk(std::span<const trie_node> trie, const std::vector<thread>& threads,
                               std::span<std::uint32_t> allowed) {
  pool_ = threads;
  begin_.assign({0, threads.size()});
  marks_.assign({machine_.frames().now()});
  std::size_t visits = 0;
  for (std::size_t i = 0; i < trie.size();) {
    const auto& node = trie[i];
    const std::size_t depth = node.depth;
    if (begin_.size() > depth + 2) {
      begin_.resize(depth + 2);
      marks_.resize(depth + 1);
      pool_.resize(begin_.back());
    }
    machine_.frames().release(marks_[depth]);
    ++visits;
    const bool fits = machine_.step(pool_, begin_[depth], begin_[depth + 1] - begin_[depth], node.byte, pool_);
    if (!fits || pool_.size() == begin_[depth + 1]) {
      pool_.resize(begin_[depth + 1]);
      i += node.below + 1;
      continue;
    }
    begin_.push_back(pool_.size());
    marks_.push_back(machine_.frames().now());
    if (node.token != no_token) allow(node.token, allowed);
    ++i;
  }
  machine_.frames().release(marks_.front());
  return visits;
}

}  // namespace skein::grammar
