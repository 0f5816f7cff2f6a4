#pragma once
#include <cstdint>
#include <string_view>

#include "grammar/machine/program.hpp"
#include "grammar/machine/stacks.hpp"

/// Arrays whose items must differ (uniqueItems). Values within such an array have a digest of 64 bits that is the same
/// for all JSON texts of a value: of its decoded text for a string, of its significant digits and exponent for a
/// number, of its members in any order for an object. A frame of the array links the digests of the items before.
namespace skein::grammar {

/// The digests of values. They are never 0.
namespace digest {

inline constexpr std::uint64_t text = 0x243f6a8885a308d3, number = 0x13198a2e03707344, object = 0xa4093822299f31d0,
                               array = 0x082efa98ec4e6c89;

[[nodiscard]] inline std::uint64_t add_byte(std::uint64_t of, unsigned char byte) { return mixed(of, byte + 1u); }
[[nodiscard]] std::uint64_t of_text(std::string_view text);
/// Of null, true and false.
[[nodiscard]] inline std::uint64_t of_word(std::uint32_t which) { return mixed(0x452821e638d01377, which + 1u); }

/// Of a number, whose thread reads it. thread::value has the digits without zeros at the ends, c the zeros after them,
/// d the digits after the point, escape the rest.
void begin_number(thread& t);
void add_number_byte(thread& t, unsigned char byte);
[[nodiscard]] std::uint64_t of_number(const thread& t);

}  // namespace digest

class unique_items {
 public:
  unique_items(const program& of, const frame_store& frames) : program_(of), frames_(frames) {}

  /// The frame is an array whose items must differ.
  [[nodiscard]] bool is_unique(const frame& of) const {
    return of.what == frame::kind::array && program_.arrays[of.spec].unique;
  }
  /// An item of the array, or one of the names that an object counts, has this digest.
  [[nodiscard]] bool is_used(const frame& array, std::uint64_t value) const;
  /// The string that the thread is in may end with one of its literals that no item has. True for other strings.
  [[nodiscard]] bool has_literal(const thread& t) const;
  /// The number that the thread is in may end as one that no item has. True if that takes too long to find out.
  [[nodiscard]] bool has_number(const thread& t) const;
  /// Some value of the node may be no item yet.
  [[nodiscard]] bool has_value(const frame& array, std::uint32_t node) const;

 private:
  [[nodiscard]] bool has_literal(const frame& array, const program::string_spec& of, std::uint32_t first,
                                 std::uint32_t last) const;
  [[nodiscard]] bool has_number(const frame& array, const program::node& node, const thread& t) const;

  const program& program_;
  const frame_store& frames_;
};

}  // namespace skein::grammar
