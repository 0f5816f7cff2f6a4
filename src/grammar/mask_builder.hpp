#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/automaton_mask.hpp"
#include "grammar/grammar.hpp"
#include "grammar/machine/machine.hpp"
#include "grammar/machine/next_bytes.hpp"
#include "grammar/vocabulary_index.hpp"

namespace skein::grammar {

/// Computes which tokens may come next. A token is allowed if some thread can read it, so the mask is the union of what
/// each thread allows, and each kind of thread takes the shortest way to it:
///
/// - In a string or name that any text may continue, all tokens that stay within it are taken from a mask that is the
///   same for every grammar. Of the tokens that close a string, only their tails are tried after the quotation mark,
///   about a hundred for the World vocabulary, whatever comes before it.
/// - In a string of a pattern, such tokens are taken from a mask that the grammar keeps for the state of its automaton.
///   It is made by a walk of the automaton alone. Where the automaton reads every text over some groups of characters,
///   as in `[a-z0-9]*`, all tokens of these groups are taken as a block.
/// - Between two tokens of JSON, blanks that a token begins with are skipped, since one run of blanks is like another.
///   What follows them is tried once, not after each of the hundreds of such runs.
/// - All other threads try the tokens along the trie. Children with a byte that no thread reads are skipped without a
///   step of the machine, and a subtree is taken as a whole where it continues an open string.
///
/// Masks that took long are kept by the grammar, under a hash of the threads and their stacks.
class mask_builder {
 public:
  mask_builder(machine& with, const grammar& of, const vocabulary_index& vocabulary)
      : machine_(with), bytes_(with.of(), with.frames(), with.strings()), grammar_(of), vocabulary_(vocabulary) {}

  void build(const std::vector<thread>& threads, std::span<std::uint32_t> allowed);

 private:
  /// A string of any text that is open: how many more characters it needs and may have.
  struct free_string {
    thread at;
    std::uint64_t least, most;
  };

  void sort(const thread& t, std::span<std::uint32_t> allowed);
  void run(const token_trie& trie, const std::vector<thread>& some, std::span<std::uint32_t> allowed);
  /// Finds the tokens of a trie that the threads can read: `found_`. Returns the number of steps. `first`: only tokens
  /// that begin with one of these bytes; empty: all.
  std::size_t walk(const token_trie& trie, const std::vector<thread>& threads, std::string_view first = {});
  std::size_t walk_batch(const token_trie& trie, std::span<const thread> threads, std::string_view first);
  void count_missing(const token_trie& trie);
  [[nodiscard]] bool reads_all_below(const thread& t, const token_trie::node& node);
  void add_closing(std::span<std::uint32_t> allowed);
  void add_starts(std::span<std::uint32_t> allowed);
  void add_numbers(std::span<std::uint32_t> allowed);
  void add_text(std::uint64_t characters, std::span<std::uint32_t> allowed);
  void add_automaton(const dfa& of, std::uint32_t state, std::uint64_t characters, std::span<std::uint32_t> allowed);
  [[nodiscard]] grammar::mask mask_of(const dfa& of, std::uint32_t state);
  void add_counted(const thread& t, std::span<std::uint32_t> allowed);
  void add_whole_text(const thread& t, std::span<std::uint32_t> allowed);
  [[nodiscard]] bool is_digested(const thread& t) const;
  [[nodiscard]] std::uint64_t key_of(const std::vector<thread>& threads) const;

  machine& machine_;
  next_bytes bytes_;
  const grammar& grammar_;
  const vocabulary_index& vocabulary_;

  // Of the current call; members, so that the next one does not allocate.
  std::vector<thread> in_name_, in_pattern_, between_, numbers_, others_, some_, pool_;
  std::vector<free_string> free_;
  std::uint64_t text_added_ = 0;  ///< characters of the texts that are allowed already
  struct level {
    std::uint32_t next, end;  // nodes whose turn has not come
    bool pruned;              // those without a byte in `bytes` are skipped
    byte_set bytes;
  };
  std::vector<level> levels_;
  std::vector<std::size_t> begin_;  // of each depth in the pool; the last is the end
  std::vector<frame_store::mark> marks_;
  struct closed_strings {
    std::uint64_t key;                 ///< of the threads after the quotation mark
    std::vector<std::uint32_t> tails;  ///< bits: those that they can read
  };
  std::vector<closed_strings> closed_;
  std::vector<token_id> found_;
  // Of a walk in batches: which tokens were found, in the order of the trie, and how many of those before were not.
  std::vector<bool> is_found_;
  std::vector<std::uint32_t> missing_;
  safe_text_cache safe_;
};

}  // namespace skein::grammar
