#include "grammar/machine/stacks.hpp"

namespace skein::grammar {

std::uint32_t frame_store::add(frame made, std::size_t words) {
  made.seen = static_cast<std::uint32_t>(bits_.size());
  bits_.resize(bits_.size() + words, 0);
  return push(made, words);
}

std::uint32_t frame_store::add_seen(frame made, std::size_t words, std::uint32_t bit) {
  if (bit != program::none) {
    const std::size_t from = made.seen;
    made.seen = static_cast<std::uint32_t>(bits_.size());
    bits_.resize(bits_.size() + words);
    for (std::size_t i = 0; i < words; ++i) bits_[made.seen + i] = bits_[from + i];
    bits_[made.seen + bit / 64] |= std::uint64_t{1} << (bit % 64);
  }
  return push(made, words);
}

std::uint32_t frame_store::push(frame made, std::size_t words) {
  std::uint64_t h = mixed(hash(made.parent), static_cast<std::uint64_t>(made.what) << 40 | made.spec);
  h = mixed(h, made.count);
  h = mixed(h, static_cast<std::uint64_t>(made.beyond) << 32 | made.contained);
  for (std::size_t i = 0; i < words; ++i) h = mixed(h, bits_[made.seen + i]);
  if (made.names != 0) h = mixed(h, made.names);
  if (made.digested) h = mixed(mixed(h, made.content), made.item);
  made.hash = h;
  frames_.push_back(made);
  return static_cast<std::uint32_t>(frames_.size() - 1);
}

}  // namespace skein::grammar
