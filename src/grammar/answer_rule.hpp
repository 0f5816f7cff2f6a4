#pragma once
#include <memory>
#include <string>
#include <vector>

#include "grammar/answer_lead.hpp"
#include "grammar/matcher.hpp"
#include "sampling/constraint.hpp"

namespace skein::grammar {

/// A grammar for the tokens of an answer, after its lead. Immutable; compile it once for all requests that have it.
class answer_rule {
 public:
  /// Computes the masks of the lead: some milliseconds. Errors: invalid_argument if no token of the vocabulary begins a
  /// text.
  [[nodiscard]] static result<std::shared_ptr<const answer_rule>> make(std::shared_ptr<const grammar> of,
                                                                       std::shared_ptr<const vocabulary_index> with,
                                                                       answer_lead lead);

  [[nodiscard]] const std::shared_ptr<const grammar>& of() const { return grammar_; }
  [[nodiscard]] const std::shared_ptr<const vocabulary_index>& index() const { return index_; }
  [[nodiscard]] const answer_lead& lead() const { return lead_; }
  /// Whether newlines before the text are no part of it.
  [[nodiscard]] bool skips_newlines() const { return lead_.skips_newlines(); }
  /// The tokens that may follow in a state of the lead.
  [[nodiscard]] const std::vector<std::uint32_t>& mask(answer_lead::state at) const {
    return masks_[static_cast<std::size_t>(at)];
  }

 private:
  answer_rule(std::shared_ptr<const grammar> of, std::shared_ptr<const vocabulary_index> with, answer_lead lead)
      : grammar_(std::move(of)), index_(std::move(with)), lead_(std::move(lead)) {}
  void add_mask(answer_lead::state at, matcher& begin);

  std::shared_ptr<const grammar> grammar_;
  std::shared_ptr<const vocabulary_index> index_;
  answer_lead lead_;
  std::vector<std::vector<std::uint32_t>> masks_;  // by state of the lead
};

/// The constraint of one request. `field`: of the request. `after`: tokens of the same answer that an earlier run
/// sampled. Errors: invalid_argument if these do not fit.
[[nodiscard]] result<std::shared_ptr<const sampling::constraint>> constrain(std::shared_ptr<const answer_rule> rule,
                                                                            std::string field,
                                                                            std::vector<token_id> after = {});

}  // namespace skein::grammar
