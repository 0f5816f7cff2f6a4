#include "grammar/matcher.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace skein::grammar {
namespace {

constexpr std::size_t frames_before_compaction = 1u << 14;

}  // namespace

matcher::matcher(std::shared_ptr<const grammar> of, std::shared_ptr<const vocabulary_index> with)
    : grammar_(std::move(of)),
      vocabulary_(std::move(with)),
      machine_(grammar_->compiled()),
      masks_(machine_, *grammar_, *vocabulary_),
      threads_(machine_.begin()),
      frames_max_(frames_before_compaction) {}

matcher::matcher(const matcher& other)
    : grammar_(other.grammar_),
      vocabulary_(other.vocabulary_),
      machine_(grammar_->compiled()),
      masks_(machine_, *grammar_, *vocabulary_),
      threads_(other.threads_),
      frames_max_(other.frames_max_) {
  machine_.frames() = other.machine_.frames();
}

bool matcher::advance(std::string_view bytes) {
  now_ = threads_;
  overflowed_ = false;
  for (const char byte : bytes) {
    next_.clear();
    overflowed_ = !machine_.step(now_, 0, now_.size(), static_cast<unsigned char>(byte), next_);
    if (overflowed_ || next_.empty()) return false;
    now_.swap(next_);
  }
  return true;
}

bool matcher::would_accept(std::string_view bytes) {
  const auto before = machine_.frames().now();
  const bool accepted = advance(bytes);
  machine_.frames().release(before);
  return accepted;
}

bool matcher::accept(std::string_view bytes) {
  const auto before = machine_.frames().now();
  if (!advance(bytes)) {
    machine_.frames().release(before);
    return false;
  }
  threads_.swap(now_);
  if (machine_.frames().size() > frames_max_) {
    machine_.compact(threads_);
    frames_max_ = std::max(frames_before_compaction, 2 * machine_.frames().size());
  }
  return true;
}

bool matcher::is_complete() const {
  return std::ranges::any_of(threads_, [this](const thread& t) { return machine_.may_end(t); });
}

bool matcher::is_finished() {
  if (!is_complete()) return false;
  if (grammar_->compiled().ends_at_once) return true;
  const auto before = machine_.frames().now();
  bool more = false;
  for (unsigned byte = 0; byte < 256 && !more; ++byte) {
    const bool blank = byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
    if (blank && grammar_->compiled().what == program::kind::json) continue;
    next_.clear();
    more = !machine_.step(threads_, 0, threads_.size(), static_cast<unsigned char>(byte), next_) || !next_.empty();
  }
  machine_.frames().release(before);
  return !more;
}

void matcher::fill_mask(std::span<std::uint32_t> allowed) {
  check(allowed.size() >= vocabulary_->words());
  masks_.build(threads_, allowed);
  const token_id end = vocabulary_->vocabulary().end();
  if (end != no_token && is_complete()) allowed[static_cast<std::size_t>(end) / 32] |= 1u << (end % 32);
}

}  // namespace skein::grammar
