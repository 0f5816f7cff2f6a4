#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/grammar.hpp"
#include "grammar/machine/machine.hpp"
#include "grammar/mask_builder.hpp"
#include "grammar/vocabulary_index.hpp"

namespace skein::grammar {

/// Follows one text through a grammar. Copying one forks it. Not thread safe; matchers of one grammar are independent.
///   matcher m(grammar, index);
///   m.fill_mask(allowed);            // before sampling a token
///   m.accept(vocabulary.text(id));   // after it
/// Reuses its memory: only masks that the grammar keeps for later, and deep stacks, allocate.
class matcher {
 public:
  matcher(std::shared_ptr<const grammar> of, std::shared_ptr<const vocabulary_index> with);
  matcher(const matcher& other);
  matcher& operator=(const matcher&) = delete;  // the machine refers to its grammar

  /// Reads bytes. False, and the matcher stays as it was, if no text of the grammar continues so, or if there are too
  /// many parallel stacks (`overflowed`). Masks do not count stacks: they may allow a token that is refused for this.
  [[nodiscard]] bool accept(std::string_view bytes);
  /// True if the last call of `accept` or `would_accept` needed too many parallel stacks.
  [[nodiscard]] bool overflowed() const { return overflowed_; }
  /// True if the text so far is complete: the end of text may follow.
  [[nodiscard]] bool is_complete() const;
  /// True if nothing but the end of text may follow.
  [[nodiscard]] bool is_finished();
  /// True if the bytes could be accepted; the matcher stays as it was.
  [[nodiscard]] bool would_accept(std::string_view bytes);

  /// Sets the bit i%32 of word i/32 of each token that may come next, among them the end of text of the vocabulary, and
  /// clears all others. `allowed` must have a bit for each token of the vocabulary.
  void fill_mask(std::span<std::uint32_t> allowed);

 private:
  /// Steps over bytes into now_. False if no text continues so.
  [[nodiscard]] bool advance(std::string_view bytes);

  std::shared_ptr<const grammar> grammar_;
  std::shared_ptr<const vocabulary_index> vocabulary_;
  machine machine_;
  mask_builder masks_;
  std::vector<thread> threads_;
  std::vector<thread> now_, next_;  // of the current call
  bool overflowed_ = false;
  std::size_t frames_max_;  // with more of them, those that are not needed are removed
};

}  // namespace skein::grammar
