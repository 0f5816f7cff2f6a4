#include "grammar/answer_rule.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.hpp"

namespace skein::grammar {
namespace {

void allow_token(token_id token, std::span<std::uint32_t> in) {
  in[static_cast<std::size_t>(token) / 32] |= 1u << (token % 32);
}

/// One row of a request.
class follower final : public sampling::token_rule {
 public:
  explicit follower(std::shared_ptr<const answer_rule> rule)
      : rule_(std::move(rule)), matcher_(rule_->of(), rule_->index()), leads_(!rule_->lead().empty()) {
    words_.resize(rule_->index()->words());
  }

  [[nodiscard]] std::unique_ptr<token_rule> fork() const override { return std::make_unique<follower>(*this); }

  [[nodiscard]] token_id forced() override {
    if (!sought_) forced_ = leads_ || stuck_ || complete_ ? no_token : matcher_.forced();
    sought_ = true;
    return forced_;
  }

  [[nodiscard]] bool allow(std::span<std::uint32_t> allowed) override {
    if (const token_id only = forced(); only != no_token && static_cast<std::size_t>(only) / 32 < allowed.size()) {
      std::ranges::fill(allowed, 0u);
      allow_token(only, allowed);
      return true;
    }
    if (stuck_)
      std::ranges::fill(words_, 0);
    else if (leads_)
      words_ = rule_->mask(state_);
    else
      matcher_.fill_mask(words_);
    const bool any = std::ranges::any_of(words_, [](std::uint32_t word) { return word != 0; });
    const token_id end = rule_->index()->vocabulary().end();
    if (!any && end != no_token) allow_token(end, words_);
    const std::size_t common = std::min(words_.size(), allowed.size());
    std::ranges::fill(std::ranges::copy(std::span(words_).first(common), allowed.begin()).out, allowed.end(), 0u);
    return any;
  }

  void record(token_id token) override {
    const auto& vocabulary = rule_->index()->vocabulary();
    if (token == vocabulary.end()) complete_ = true;
    std::string_view text = vocabulary.text(token);
    sought_ = false;
    if (text.empty() || stuck_) return;
    while (leads_ && !text.empty()) {
      const auto next = rule_->lead().step(state_, static_cast<unsigned char>(text.front()));
      leads_ = next >= 0 || next == answer_lead::dead;
      stuck_ = next == answer_lead::dead;
      if (stuck_) return;
      if (next != answer_lead::begins_with_it) text.remove_prefix(1);
      if (leads_) state_ = next;
    }
    if (leads_) return;
    stuck_ = !matcher_.accept(text);
    complete_ = !stuck_ && matcher_.is_finished();
  }

  [[nodiscard]] bool complete() const override { return complete_; }
  [[nodiscard]] bool stuck() const { return stuck_; }

 private:
  std::shared_ptr<const answer_rule> rule_;
  matcher matcher_;
  answer_lead::state state_ = 0;
  bool leads_;  // the grammar has not begun
  bool complete_ = false, stuck_ = false;
  bool sought_ = false;  // forced_ is known
  token_id forced_ = no_token;
  std::vector<std::uint32_t> words_;
};

class request_constraint final : public sampling::constraint {
 public:
  request_constraint(std::string field, std::unique_ptr<const follower> begin)
      : field_(std::move(field)), begin_(std::move(begin)) {}
  [[nodiscard]] std::unique_ptr<sampling::token_rule> begin() const override { return begin_->fork(); }
  [[nodiscard]] const std::string& field() const override { return field_; }

 private:
  std::string field_;
  std::unique_ptr<const follower> begin_;
};

}  // namespace

result<std::shared_ptr<const answer_rule>> answer_rule::make(std::shared_ptr<const grammar> of,
                                                             std::shared_ptr<const vocabulary_index> with,
                                                             answer_lead lead) {
  std::shared_ptr<answer_rule> made(new answer_rule(std::move(of), std::move(with), std::move(lead)));
  matcher begin(made->grammar_, made->index_);
  std::vector<std::uint32_t> first(made->index_->words());
  begin.fill_mask(first);
  if (std::ranges::all_of(first, [](std::uint32_t word) { return word == 0; }))
    return error{error_kind::invalid_argument,
                 "no token in the model's vocabulary can start a text that the grammar accepts",
                 {}};
  for (std::size_t i = 0; i < made->lead_.size(); ++i) made->add_mask(static_cast<answer_lead::state>(i), begin);
  return std::shared_ptr<const answer_rule>(std::move(made));
}

/// Walks the trie with the lead; where the grammar begins, the rest of each token must continue it.
void answer_rule::add_mask(answer_lead::state at, matcher& begin) {
  auto& mask = masks_.emplace_back(index_->words());
  const auto& trie = index_->all();
  struct level {
    std::span<const token_trie::node> left;
    answer_lead::state state;
    std::size_t lead_bytes;  // of the tokens below, before the grammar begins
    bool begun;
  };
  std::vector<level> open{{trie.children(trie.root()), at, 0, false}};
  while (!open.empty()) {
    auto& here = open.back();
    if (here.left.empty()) {
      open.pop_back();
      continue;
    }
    const auto& node = here.left.front();
    here.left = here.left.subspan(1);
    level below{trie.children(node), here.state, here.lead_bytes, here.begun};
    if (!below.begun) {
      below.state = lead_.step(here.state, node.byte);
      if (below.state == answer_lead::dead) continue;
      below.begun = below.state < 0;
      below.lead_bytes = below.state == answer_lead::begins ? open.size() : open.size() - 1;
    }
    const auto text = [&] { return index_->vocabulary().text(node.token).substr(below.lead_bytes); };
    if (node.token != no_token && (!below.begun || begin.would_accept(text()))) allow_token(node.token, mask);
    open.push_back(below);
  }
  const token_id end = index_->vocabulary().end();
  const auto ending = lead_.may_end(at);
  const bool ends =
      ending == answer_lead::ending::free || (ending == answer_lead::ending::as_grammar && begin.is_complete());
  if (ends && end != no_token) allow_token(end, mask);
}

result<std::shared_ptr<const sampling::constraint>> constrain(std::shared_ptr<const answer_rule> rule,
                                                              std::string field, std::vector<token_id> after) {
  auto begin = std::make_unique<follower>(std::move(rule));
  for (const token_id token : after) begin->record(token);
  if (begin->stuck()) return error{error_kind::invalid_argument, field + " does not fit the answer so far", field};
  return std::shared_ptr<const sampling::constraint>(
      std::make_shared<request_constraint>(std::move(field), std::move(begin)));
}

}  // namespace skein::grammar
