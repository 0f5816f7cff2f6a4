#include "grammar/thought_limit.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace skein::grammar {
namespace {

constexpr std::string_view end_tag = "</think>";
constexpr std::uint32_t lead_tokens_max = 8;  // as many as usage leaves out

/// The tag's tokens if its first bytes are written already, by their number.
using tag_endings = std::array<std::vector<token_id>, end_tag.size()>;

/// One row of a request.
class thought_counter final : public sampling::token_rule {
 public:
  thought_counter(std::shared_ptr<const tokenizer::vocabulary> words, std::shared_ptr<const tag_endings> endings,
                  std::uint32_t tokens_max, std::unique_ptr<token_rule> then)
      : words_(std::move(words)), endings_(std::move(endings)), then_(std::move(then)), left_(tokens_max) {}
  thought_counter(const thought_counter& other)
      : token_rule(other),
        words_(other.words_),
        endings_(other.endings_),
        then_(other.then_ ? other.then_->fork() : nullptr),
        left_(other.left_),
        lead_tokens_(other.lead_tokens_),
        matched_(other.matched_),
        tag_begun_(other.tag_begun_),
        in_lead_(other.in_lead_),
        over_(other.over_) {}
  thought_counter& operator=(const thought_counter&) = delete;  // rules are forked

  [[nodiscard]] std::unique_ptr<token_rule> fork() const override { return std::make_unique<thought_counter>(*this); }

  [[nodiscard]] token_id forced() override {
    if (!over_ && left_ == 0) return (*endings_)[matched_].front();
    return then_ ? then_->forced() : no_token;
  }

  [[nodiscard]] bool allow(std::span<std::uint32_t> allowed) override {
    if (!over_ && left_ == 0) {
      const auto next = static_cast<std::size_t>(forced());
      std::ranges::fill(allowed, 0u);
      if (next / 32 < allowed.size()) allowed[next / 32] = 1u << (next % 32);
      return next / 32 < allowed.size();
    }
    if (then_) return then_->allow(allowed);
    std::ranges::fill(allowed, ~0u);
    return true;
  }

  void record(token_id token) override {
    if (then_) then_->record(token);
    if (!over_) count(words_->text(token));
  }

  /// For tokens that `then` knows.
  void count(std::string_view text) {
    if (over_ || text.empty()) return;
    const bool counts = !is_lead(text);
    match(text);
    if (counts && left_ > 0) --left_;
  }

  [[nodiscard]] bool complete() const override { return then_ && then_->complete(); }

 private:
  /// Whether a token only ends the opening tag.
  bool is_lead(std::string_view text) {
    if (!in_lead_) return false;
    if (!tag_begun_ && text.front() == '>') text.remove_prefix(1);
    tag_begun_ = true;
    in_lead_ = text.find_first_not_of('\n') == std::string_view::npos && lead_tokens_++ < lead_tokens_max;
    return in_lead_;
  }

  /// Looks for the tag. '<' occurs in it only at its start, so after a failed match a new one begins at this byte.
  void match(std::string_view text) {
    for (const char c : text) {
      if (c != end_tag[matched_]) matched_ = 0;
      if (c != end_tag[matched_]) continue;
      if (++matched_ < end_tag.size()) continue;
      over_ = true;
      return;
    }
  }

  std::shared_ptr<const tokenizer::vocabulary> words_;
  std::shared_ptr<const tag_endings> endings_;
  std::unique_ptr<token_rule> then_;
  std::uint32_t left_;  // tokens that may still be thoughts
  std::uint32_t lead_tokens_ = 0;
  std::size_t matched_ = 0;  // bytes of the tag at the end of the thoughts so far
  bool tag_begun_ = false;   // the first byte of the answer is known
  bool in_lead_ = true;      // no thought has begun
  bool over_ = false;        // the tag was written
};

class thought_limit final : public sampling::constraint {
 public:
  thought_limit(std::string field, std::unique_ptr<const thought_counter> begin)
      : field_(std::move(field)), begin_(std::move(begin)) {}
  [[nodiscard]] std::unique_ptr<sampling::token_rule> begin() const override { return begin_->fork(); }
  [[nodiscard]] const std::string& field() const override { return field_; }

 private:
  std::string field_;
  std::unique_ptr<const thought_counter> begin_;
};

}  // namespace

result<std::shared_ptr<const sampling::constraint>> limit_thoughts(std::shared_ptr<const tokenizer::vocabulary> words,
                                                                   std::uint32_t tokens_max, std::string field,
                                                                   std::shared_ptr<const sampling::constraint> then,
                                                                   const std::vector<token_id>& after) {
  auto endings = std::make_shared<tag_endings>();
  for (std::size_t written = 0; written < end_tag.size(); ++written) {
    auto& tokens = (*endings)[written];
    if (const auto read = words->encode(end_tag.substr(written), tokens); !read || tokens.empty())
      return error{error_kind::unsupported, field + " is not supported by the vocabulary of this model", field};
  }
  auto begin = std::make_unique<thought_counter>(words, std::move(endings), tokens_max, then ? then->begin() : nullptr);
  for (const token_id token : after) begin->count(words->text(token));
  return std::shared_ptr<const sampling::constraint>(
      std::make_shared<thought_limit>(std::move(field), std::move(begin)));
}

}  // namespace skein::grammar
