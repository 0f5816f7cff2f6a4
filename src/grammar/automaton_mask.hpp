#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/automata/dfa.hpp"
#include "grammar/machine/program.hpp"
#include "grammar/vocabulary_index.hpp"

/// Masks of single automata: tokens whose bytes an automaton reads from a state without dying.
namespace skein::grammar {

/// Which texts an automaton is sure to read, from each of its states: all texts over some groups of characters, up to
/// a length. A pattern like `[a-z0-9]*` reads thousands of tokens for one reason.
class safe_texts {
 public:
  explicit safe_texts(const dfa& of);

  struct found {
    std::uint8_t groups = 0;       ///< of token_trie; of plain characters
    std::uint32_t characters = 0;  ///< any number of them if it is characters_max
    bool ends = false;             ///< longer texts over these groups are not read
  };
  static constexpr std::uint32_t characters_max = 255;
  [[nodiscard]] found from(std::uint32_t state);
  /// The same, as far as it was found out before, or by the searches that `allow_searches` permitted.
  [[nodiscard]] found if_known(std::uint32_t state) const {
    const auto& place = known_[state % known_.size()];
    return place.state == state ? place.what : found{};
  }
  [[nodiscard]] found from_if_cheap(std::uint32_t state);
  void allow_searches(std::uint32_t count) { searches_ = count; }

  [[nodiscard]] const dfa& of() const { return of_; }

 private:
  /// Bytes of a class that begin characters of one group with as many bytes.
  struct beginning {
    std::uint8_t kind;  ///< class
    std::uint8_t group;
    std::uint8_t more;  ///< bytes after it; the first of them is low .. high
    std::uint8_t low, high;
    bool operator==(const beginning&) const = default;
  };
  [[nodiscard]] found search(std::uint32_t state);
  [[nodiscard]] bool reads_any(std::uint32_t state, unsigned groups) const;
  /// Appends the states after all characters that begin so. False if one of them is dead.
  [[nodiscard]] bool follow(std::uint32_t state, const beginning& by, std::vector<std::uint32_t>& to);

  struct within_character {
    std::uint32_t state;
    std::uint8_t more, low, high;
    bool operator==(const within_character&) const = default;
  };

  const dfa& of_;
  std::vector<beginning> beginnings_;
  struct entry {
    std::uint32_t state = dfa::dead;
    found what;
  };
  std::array<entry, 16> known_;
  std::uint32_t searches_ = 0;
  // Of the current search: states, and those within characters that were followed to all their ends.
  std::vector<std::uint32_t> now_, next_, seen_;
  std::vector<within_character> followed_;
};

/// The safe texts of the automata that were asked for lately.
class safe_text_cache {
 public:
  [[nodiscard]] safe_texts& of(const dfa& automaton);
  void allow_searches(std::uint32_t count) {
    for (auto& each : known_) each.allow_searches(count);
  }

 private:
  std::deque<safe_texts> known_;
};

/// Adds the tokens of a trie.
void add_tokens_of(const dfa& of, std::uint32_t state, const token_trie& trie, std::span<std::uint32_t> allowed);

/// Adds those of vocabulary_index::raw(); takes blocks of them where the automaton is sure to read all of these.
void add_raw_tokens_of(safe_texts& of, std::uint32_t state, const vocabulary_index& vocabulary,
                       std::span<std::uint32_t> allowed);

/// Adds those of vocabulary_index::raw() after which a string of the specification is still possible. `read`:
/// characters so far.
void add_counted_tokens_of(const program::string_spec& of, std::uint32_t state, std::uint32_t read,
                           const vocabulary_index& vocabulary, std::span<std::uint32_t> allowed);

/// True if a string of the specification is still possible after a text; a character at its end may be incomplete.
[[nodiscard]] bool may_continue(const program::string_spec& of, std::uint32_t state, std::uint32_t read,
                                std::string_view text);

}  // namespace skein::grammar
