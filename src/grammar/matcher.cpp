#include "grammar/matcher.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "grammar/mask_builder.hpp"

namespace skein::grammar {
namespace {

constexpr std::size_t frames_before_compaction = 1u << 14;

}  // namespace

matcher::matcher(std::shared_ptr<const grammar> of, std::shared_ptr<const vocabulary_index> with)
    : grammar_(std::move(of)),
      vocabulary_(std::move(with)),
      machine_(grammar_->compiled()),
      threads_(machine_.begin()) {}

matcher::matcher(const matcher& other)
    : grammar_(other.grammar_),
      vocabulary_(other.vocabulary_),
      machine_(grammar_->compiled()),
      threads_(other.threads_) {
  machine_.frames() = other.machine_.frames();
}

bool matcher::accept(std::string_view bytes) {
  const auto before = machine_.frames().now();
  std::vector<thread> now = threads_, next;
  for (const char byte : bytes) {
    next.clear();
    if (!machine_.step(now, 0, now.size(), static_cast<unsigned char>(byte), next) || next.empty()) {
      machine_.frames().release(before);
      return false;
    }
    now.swap(next);
  }
  threads_ = std::move(now);
  if (machine_.frames().size() > frames_before_compaction) machine_.compact(threads_);
  return true;
}

bool matcher::is_complete() const {
  return std::ranges::any_of(threads_, [this](const thread& t) { return machine_.may_end(t); });
}

bool matcher::is_finished() {
  if (!is_complete()) return false;
  const auto before = machine_.frames().now();
  bool more = false;
  std::vector<thread> next;
  for (unsigned byte = 0; byte < 256 && !more; ++byte) {
    const bool blank = byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
    if (blank && grammar_->compiled().what == program::kind::json) continue;
    next.clear();
    more = !machine_.step(threads_, 0, threads_.size(), static_cast<unsigned char>(byte), next) || !next.empty();
  }
  machine_.frames().release(before);
  return !more;
}

void matcher::fill_mask(std::span<std::uint32_t> allowed) {
  check(allowed.size() >= vocabulary_->words());
  mask_builder(machine_, *grammar_, *vocabulary_).build(threads_, allowed);
  const token_id end = vocabulary_->vocabulary().end();
  if (end != no_token && is_complete()) allowed[static_cast<std::size_t>(end) / 32] |= 1u << (end % 32);
}

}  // namespace skein::grammar
