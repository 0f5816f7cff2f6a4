#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sampling/constraint.hpp"
#include "tokenizer/vocabulary.hpp"

namespace skein::grammar {

/// The constraint of answers that begin within thoughts, after "<think": these end after `tokens_max` tokens. If the
/// model has not written "</think>" by then, the tokens of it, or of the rest of it, are the only ones allowed. The `>`
/// and the newlines of the opening tag do not count. Then any text follows.
///   `then`: a constraint of the same answer, from its first token on; null: none.
///   `field`: of the request.
///   `after`: tokens of the same answer that an earlier run sampled; `then` already knows them.
/// Errors: unsupported if the vocabulary cannot write the tag.
[[nodiscard]] result<std::shared_ptr<const sampling::constraint>> limit_thoughts(
    std::shared_ptr<const tokenizer::vocabulary> words, std::uint32_t tokens_max, std::string field,
    std::shared_ptr<const sampling::constraint> then = nullptr, const std::vector<token_id>& after = {});

}  // namespace skein::grammar
