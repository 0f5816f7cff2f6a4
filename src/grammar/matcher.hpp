#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/grammar.hpp"
#include "grammar/machine/machine.hpp"
#include "grammar/vocabulary_index.hpp"

namespace skein::grammar {

/// Follows one text through a grammar. Copying one forks it. Not thread safe; matchers of one grammar are independent.
///   matcher m(grammar, index);
///   m.fill_mask(allowed);            // before sampling a token
///   m.accept(vocabulary.text(id));   // after it
class matcher {
 public:
  matcher(std::shared_ptr<const grammar> of, std::shared_ptr<const vocabulary_index> with);
  matcher(const matcher& other);
  matcher& operator=(const matcher&) = delete;  // the machine refers to its grammar

  /// Reads bytes. False, and the matcher stays as it was, if no text of the grammar continues so, or if there are too
  /// many parallel stacks.
  [[nodiscard]] bool accept(std::string_view bytes);
  /// True if the text so far is complete: the end of text may follow.
  [[nodiscard]] bool is_complete() const;
  /// True if nothing but the end of text may follow.
  [[nodiscard]] bool is_finished();

  /// Sets the bit i%32 of word i/32 of each token that may come next, among them the end of text of the vocabulary, and
  /// clears all others. `allowed` must have a bit for each token of the vocabulary.
  void fill_mask(std::span<std::uint32_t> allowed);

 private:
  std::shared_ptr<const grammar> grammar_;
  std::shared_ptr<const vocabulary_index> vocabulary_;
  machine machine_;
  std::vector<thread> threads_;
};

}  // namespace skein::grammar
