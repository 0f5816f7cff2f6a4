#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "grammar/grammar.hpp"
#include "grammar/machine/machine.hpp"
#include "grammar/vocabulary_index.hpp"

namespace skein::grammar {

/// Computes which tokens may come next. A thread inside of a string without restrictions takes all plain tokens from a
/// mask that is the same for every grammar, and a thread that follows an automaton takes them from a mask that the
/// grammar keeps for the automaton's state; only the few other tokens are tried one by one. All other threads try the
/// tokens along the trie. Masks that took long are kept by the grammar under a hash of the threads and their stacks.
class mask_builder {
 public:
  mask_builder(machine& with, const grammar& of, const vocabulary_index& vocabulary)
      : machine_(with), grammar_(of), vocabulary_(vocabulary) {}

  void build(const std::vector<thread>& threads, std::span<std::uint32_t> allowed);

 private:
  using trie_node = vocabulary_index::trie_node;

  /// Tries the tokens of a trie. Returns the number of nodes that it visited.
  std::size_t walk(std::span<const trie_node> trie, const std::vector<thread>& threads,
                   std::span<std::uint32_t> allowed);
  void add_automaton(const dfa& of, std::uint32_t state, std::uint64_t characters, std::span<std::uint32_t> allowed);
  [[nodiscard]] bool is_digested(const thread& t) const;
  [[nodiscard]] std::uint64_t key_of(const std::vector<thread>& threads) const;

  machine& machine_;
  const grammar& grammar_;
  const vocabulary_index& vocabulary_;

  // Of the current call; members, so that the next one does not allocate.
  std::vector<thread> in_text_, others_, pool_;
  std::vector<std::size_t> begin_;  // of each depth in the pool; the last is the end
  std::vector<frame_store::mark> marks_;
  std::vector<std::uint32_t> made_;
};

}  // namespace skein::grammar
