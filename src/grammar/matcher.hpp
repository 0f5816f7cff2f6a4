#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/automata/byte_set.hpp"
#include "grammar/grammar.hpp"
#include "grammar/machine/machine.hpp"
#include "grammar/machine/next_bytes.hpp"
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

  /// The token that must come next, as the vocabulary would encode the text: each next byte is the only one that is
  /// possible, and this is the longest token of these bytes. no_token: the text may end here, several bytes may follow,
  /// or a longer token may continue past the bytes that are certain. A position in free text takes some nanoseconds.
  [[nodiscard]] token_id forced();

 private:
  /// The bytes that may follow now_, and perhaps some more; of many, only some.
  [[nodiscard]] byte_set next_of_now() const;
  /// Steps now_ over the only byte of `possible` that it reads. -1: there are several or none, or it is not worth
  /// finding out; now_ stays as it is.
  [[nodiscard]] int step_over_only(const byte_set& possible);
  /// Steps over bytes into now_. False if no text continues so.
  [[nodiscard]] bool advance(std::string_view bytes);

  std::shared_ptr<const grammar> grammar_;
  std::shared_ptr<const vocabulary_index> vocabulary_;
  machine machine_;
  next_bytes bytes_;
  mask_builder masks_;
  std::vector<thread> threads_;
  std::vector<thread> now_, next_, kept_;  // of the current call
  bool overflowed_ = false;
  std::size_t frames_max_;  // with more of them, those that are not needed are removed
};

}  // namespace skein::grammar
