#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/machine/program.hpp"

namespace skein::grammar {

/// One entry of a stack: an object or an array that is open, or a rule to return to. Immutable; stacks share entries.
struct frame {
  enum class kind : std::uint8_t { object, array, call } what = kind::object;
  std::uint8_t beyond = 0;
  bool digested = false;  ///< the values in it have digests: see unique_items
  std::uint32_t parent = program::none;
  std::uint32_t spec = 0;  ///< call: the instruction to continue at
  std::uint32_t depth = 1;
  std::uint32_t contained = 0;  ///< array: items that count for `contains`
  std::uint32_t seen = 0;       ///< object: offset of its bits
  std::uint64_t count = 0;      ///< items or members so far
  std::uint64_t hash = 0;       ///< of the contents and of all below
  std::uint64_t names = 0;      ///< object that counts names which are not listed: of these, in any order
  // digested
  std::uint64_t content = 0;              ///< of the values so far
  std::uint64_t item = 0;                 ///< object: of the name that was read; array: of the latest item, if `last`
                                          ///< is this frame
  std::uint32_t last = program::none;     ///< array of unique items: the frame with the latest item; object that counts
                                          ///< names: with the latest of them
  std::uint32_t earlier = program::none;  ///< if `last` is this frame: the frame with the item before
};

/// The frames of one matcher. They are only added; `release` takes back the latest.
class frame_store {
 public:
  [[nodiscard]] const frame& operator[](std::uint32_t at) const { return frames_[at]; }
  [[nodiscard]] std::size_t size() const { return frames_.size(); }
  /// The depth of a frame whose parent is `parent`.
  [[nodiscard]] std::uint32_t depth_on(std::uint32_t parent) const {
    return parent == program::none ? 1 : frames_[parent].depth + 1;
  }
  [[nodiscard]] std::span<const std::uint64_t> seen(const frame& of, std::size_t words) const {
    return {bits_.data() + of.seen, words};
  }
  [[nodiscard]] std::uint64_t hash(std::uint32_t at) const { return at == program::none ? 0x51 : frames_[at].hash; }

  /// Adds a frame. An object has no name yet.
  std::uint32_t add(frame made, std::size_t words);
  /// Adds a copy of an object's frame in which one more bit is set (none: no bit).
  std::uint32_t add_seen(frame made, std::size_t words, std::uint32_t bit);

  /// Adds a copy of another store's frame. Its links are those of the copies.
  std::uint32_t add_copy(frame made, std::span<const std::uint64_t> bits) {
    made.seen = static_cast<std::uint32_t>(bits_.size());
    bits_.insert(bits_.end(), bits.begin(), bits.end());
    return push(made, bits.size());
  }

  struct mark {
    std::size_t frames, bits;
  };
  [[nodiscard]] mark now() const { return {frames_.size(), bits_.size()}; }
  void release(const mark& to) {
    frames_.resize(to.frames);
    bits_.resize(to.bits);
  }

 private:
  std::uint32_t push(frame made, std::size_t words);

  std::vector<frame> frames_;
  std::vector<std::uint64_t> bits_;
};

[[nodiscard]] inline std::uint64_t mixed(std::uint64_t h, std::uint64_t x) {
  h = (h ^ x) * 0x9fb21c651e98df25u;
  return h ^ (h >> 29);
}

/// The words of JSON, by thread::spec.
inline constexpr std::array<std::string_view, 3> json_words{"null", "true", "false"};

/// What one of the parallel stacks does next: where it is in a JSON value, a text or a rule, and its top frame.
struct thread {
  enum class at : std::uint8_t {
    value,         ///< before a value of node `spec`
    string,        ///< in a string
    name,          ///< in a name of an object
    number,        ///< in a number of node `spec`; a: state, b: bytes read, if their number is limited
    word,          ///< in true, false or null; spec: which, a: bytes read
    object_open,   ///< after {
    next_name,     ///< after , in an object
    colon,         ///< after a name; spec: node of its value
    after_member,  ///< after a value in an object
    array_open,    ///< after [
    after_item,    ///< after a value in an array
    end,           ///< after the whole text
    text,          ///< a: state
    rule,          ///< a: the byte instruction
  };
  at where = at::value;
  std::uint32_t top = program::none;
  std::uint32_t spec = 0;
  /// Blanks read so far; string or name: a .. b are the literals that begin so, c the bytes of them that were read or
  /// the code points, d (string: a) the state of the automaton.
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
  std::uint32_t escape = 0;  ///< where in an escape sequence or in a character of several bytes; 0: between characters
  std::uint64_t value = 0;   ///< string, name or number in a digested frame: its digest so far; 0: it needs none

  [[nodiscard]] std::uint64_t hash(const frame_store& frames) const {
    std::uint64_t h = mixed(static_cast<std::uint64_t>(where) << 32 | spec, frames.hash(top));
    h = mixed(h, static_cast<std::uint64_t>(a) << 32 | b);
    h = mixed(h, static_cast<std::uint64_t>(c) << 32 | d);
    return value == 0 ? mixed(h, escape) : mixed(mixed(h, escape), value);
  }
};

}  // namespace skein::grammar
