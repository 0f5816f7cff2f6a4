#include "grammar/matcher.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace skein::grammar {
namespace {

constexpr std::size_t frames_before_compaction = 1u << 14;
// Whether a byte is the only one is found out by trying a few, with a few parallel stacks.
constexpr int tried_bytes_max = 4, listed_bytes_max = 8;
constexpr std::size_t tried_threads_max = 64;

}  // namespace

matcher::matcher(std::shared_ptr<const grammar> of, std::shared_ptr<const vocabulary_index> with)
    : grammar_(std::move(of)),
      vocabulary_(std::move(with)),
      machine_(grammar_->compiled()),
      bytes_(machine_.of(), machine_.frames(), machine_.strings()),
      masks_(machine_, *grammar_, *vocabulary_),
      threads_(machine_.begin()),
      frames_max_(frames_before_compaction) {}

matcher::matcher(const matcher& other)
    : grammar_(other.grammar_),
      vocabulary_(other.vocabulary_),
      machine_(grammar_->compiled()),
      bytes_(machine_.of(), machine_.frames(), machine_.strings()),
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

byte_set matcher::next_of_now() const {
  byte_set bytes;
  for (const auto& t : now_) {
    bytes_.add(t, bytes);
    if (bytes.count() > listed_bytes_max) break;
  }
  return bytes;
}

int matcher::step_over_only(const byte_set& possible) {
  if (possible.count() > tried_bytes_max || now_.size() > tried_threads_max) return -1;
  if (std::ranges::any_of(now_, [this](const thread& t) { return machine_.may_end(t); })) return -1;
  int only = -1;
  bool several = false;
  possible.for_each([&](unsigned char byte) {
    if (several) return;
    next_.clear();
    const bool few = machine_.step(now_, 0, now_.size(), byte, next_);
    if (few && next_.empty()) return;
    several = !few || only >= 0;
    only = byte;
    kept_.swap(next_);
  });
  if (several || only < 0) return -1;
  now_.swap(kept_);
  return only;
}

token_id matcher::forced() {
  const auto before = machine_.frames().now();
  const auto& trie = vocabulary_->all();
  token_id longest = no_token;
  now_ = threads_;
  for (const auto* node = &trie.root(); node->children > 0;) {
    const auto possible = next_of_now();
    const int byte = step_over_only(possible);
    const auto children = trie.children(*node);
    if (byte < 0) {
      const auto may_follow = [&](const token_trie::node& child) { return possible.has(child.byte); };
      const bool unknown = possible.count() > listed_bytes_max;
      if (unknown || std::ranges::any_of(children, may_follow)) longest = no_token;
      break;
    }
    const auto child = std::ranges::lower_bound(children, byte, {}, &token_trie::node::byte);
    if (child == children.end() || child->byte != byte) break;
    node = &*child;
    if (node->token != no_token) longest = node->token;
  }
  machine_.frames().release(before);
  return longest;
}

}  // namespace skein::grammar
