#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace skein::grammar {

/// What a model writes before the text of a grammar: the rest of a tag that the prompt began, thoughts, or free text up
/// to a mark. An automaton over bytes; without states the grammar begins at once.
class answer_lead {
 public:
  using state = std::int16_t;
  static constexpr state dead = -1;
  static constexpr state begins = -2;          ///< the grammar begins after this byte
  static constexpr state begins_with_it = -3;  ///< with this byte

  /// How a text ends that has not reached the grammar.
  enum class ending : std::uint8_t { none, as_grammar, free };

  /// Newlines at the end of a lead, which clients do not see: up to four, or none, because they are the grammar's.
  enum class newlines : std::uint8_t { some, none };

  answer_lead() = default;
  /// Skips `first`, if it is the first byte, and newlines after it. `needed`: the first byte must be it.
  [[nodiscard]] static answer_lead after_tag(char first, bool needed, newlines after_it = newlines::some);
  /// Skips `first`, if it is the first byte, then any text up to and with "</think>", then newlines.
  [[nodiscard]] static answer_lead after_thoughts(char first, newlines after = newlines::some);
  /// Then any text up to and with one of the marks, which have no common prefixes; the text may end before.
  void allow_text_before(const std::vector<std::string_view>& marks);

  [[nodiscard]] bool empty() const { return states_.empty(); }
  [[nodiscard]] bool skips_newlines() const { return skips_newlines_; }
  [[nodiscard]] std::size_t size() const { return states_.size(); }
  [[nodiscard]] state step(state from, unsigned char byte) const {
    return states_[static_cast<std::size_t>(from)].next[byte];
  }
  [[nodiscard]] ending may_end(state at) const { return states_[static_cast<std::size_t>(at)].may_end; }

 private:
  struct row {
    std::array<state, 256> next;
    ending may_end = ending::none;
  };
  state add(state everywhere, ending may_end = ending::none);
  void add_newlines(state first);
  [[nodiscard]] row& at(state one) { return states_[static_cast<std::size_t>(one)]; }

  std::vector<row> states_;
  bool skips_newlines_ = true;
};

}  // namespace skein::grammar
