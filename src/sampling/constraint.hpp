#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/ids.hpp"

namespace skein::sampling {

/// Follows the tokens of one row and says which may come next. One thread at a time uses it.
class token_rule {
 public:
  virtual ~token_rule() = default;

  /// An independent copy at the same position.
  [[nodiscard]] virtual std::unique_ptr<token_rule> fork() const = 0;
  /// Sets the bits of the tokens that may come next (bit i%32 of word i/32) and clears all others. `allowed` has a bit
  /// for each token of the model. False: no token continues the text, so the row must end; the bit of the end of text
  /// is then set, if there is one.
  [[nodiscard]] virtual bool allow(std::span<std::uint32_t> allowed) = 0;
  /// The token that must come next, which allow() then allows alone; no_token: there may be several. A token may be
  /// forced outside of the model's vocabulary: then it cannot come.
  [[nodiscard]] virtual token_id forced() { return no_token; }
  /// Takes the next token of the row.
  virtual void record(token_id token) = 0;
  /// True if the text is complete and nothing can follow it: the row ends without another token.
  [[nodiscard]] virtual bool complete() const = 0;
};

/// Which texts a row may generate. Immutable; shared by rows and threads.
class constraint {
 public:
  virtual ~constraint() = default;
  /// A rule at the beginning of the row's text.
  [[nodiscard]] virtual std::unique_ptr<token_rule> begin() const = 0;
  /// The request field that gave it, for errors.
  [[nodiscard]] virtual const std::string& field() const = 0;
};

}  // namespace skein::sampling
