#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/device/device_mailbox.hpp"
#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "actors/request/answer/prepare.hpp"

namespace skein::request {

/// How one prompt uses the states of known prefixes, and which states it leaves for later requests. A plain class.
class prefix_use {
 public:
  /// Whether the call may use the prefix cache: it has one prompt, needs no scores of its tokens, and did not opt out.
  [[nodiscard]] static bool may(const prepared_call& call);

  /// `tokens` is all that the sequence will be fed.
  prefix_use(std::vector<token_id> tokens, bool may_keep)
      : tokens_(std::make_shared<const std::vector<token_id>>(std::move(tokens))), may_keep_(may_keep) {}

  /// `offset`: the number of tokens before the call's own.
  /// `first_part`: the number of leading tokens that the device may take in chunks of `chunk_tokens`.
  [[nodiscard]] persistence::find_prefix question(persistence::return_address reply, std::string initial_state,
                                                  const prepared_call& call, std::size_t offset,
                                                  std::uint32_t chunk_tokens, std::uint32_t first_part) const;
  void found(persistence::prefix_found found);
  /// Tokens that need not be fed.
  [[nodiscard]] std::uint32_t position() const { return found_.position; }

  [[nodiscard]] std::size_t tokens() const { return tokens_->size(); }

  /// Puts the initial state, the remaining tokens and the wanted copies into the message, whose parts must cover all
  /// tokens. Call it once.
  void apply(device::submit& message);
  /// Wanted keys for which no device will deliver a state, since the prompt was not submitted or may not be kept.
  [[nodiscard]] std::vector<persistence::state_key> unanswered();

 private:
  std::shared_ptr<const std::vector<token_id>> tokens_;
  bool may_keep_;
  persistence::prefix_found found_;
};

}  // namespace skein::request
