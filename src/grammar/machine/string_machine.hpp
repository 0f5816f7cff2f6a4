#pragma once
#include <cstdint>

#include "grammar/automata/byte_set.hpp"
#include "grammar/machine/program.hpp"
#include "grammar/machine/stacks.hpp"
#include "grammar/machine/unique_items.hpp"

namespace skein::grammar {

/// Reads the inside of JSON strings for threads in a string or a name: decodes escapes, checks UTF-8, and matches the
/// decoded text. A thread survives a byte only if some string follows.
class string_machine {
 public:
  string_machine(const program& of, const frame_store& frames) : program_(of), frames_(frames), unique_(of, frames) {}

  /// The thread at the first character. False if no string is possible.
  [[nodiscard]] bool begin_string(thread& t, std::uint32_t spec) const;
  [[nodiscard]] bool begin_name(thread& t) const;
  /// Reads a byte other than the closing quotation mark.
  [[nodiscard]] bool read(thread& t, unsigned char byte) const;
  /// Adds the bytes that `read` may accept, the closing quotation mark, and perhaps some more.
  void add_bytes(const thread& t, byte_set& to) const;
  /// True if the string may end here.
  [[nodiscard]] bool may_end(const thread& t) const;
  /// The bit (none for a name that is not listed) and what follows a name that ends here; false if it may not.
  struct ended_name {
    std::uint32_t bit = program::none;
    program::label label;
  };
  [[nodiscard]] bool end_name(const thread& t, ended_name& out) const;

  /// True if an object may have another name, or one of the listed names first .. last - 1.
  [[nodiscard]] bool has_name(const frame& object, std::uint32_t first, std::uint32_t last) const;
  [[nodiscard]] bool has_other_name(const frame& object) const;

  /// How far any plain text may continue a thread that is between characters; see mask_builder.
  ///   any        by any text
  ///   limited    by any text of at most `characters` characters
  ///   automaton  by those of at most `characters` characters that its automaton allows
  ///   counted    by those that its automaton and its table of lengths allow
  ///   listed     by a few texts
  enum class freedom : std::uint8_t { any, limited, automaton, counted, listed };
  [[nodiscard]] freedom freedom_of(const thread& t, std::uint64_t& characters) const;

 private:
  [[nodiscard]] bool read_escape(thread& t, unsigned char byte) const;
  [[nodiscard]] bool read_digit(thread& t, unsigned char byte) const;
  [[nodiscard]] bool feed(thread& t, unsigned char byte) const;
  [[nodiscard]] bool has_length(const thread& t) const;
  [[nodiscard]] bool ended_character(const thread& t) const;
  [[nodiscard]] bool feed_code(thread& t, char32_t code) const;
  [[nodiscard]] bool is_listed(const thread& t) const;
  [[nodiscard]] const std::vector<std::string>& listed(const thread& t) const;
  [[nodiscard]] bool may_escape(const thread& t) const;
  [[nodiscard]] bool any_listed(const thread& t, char32_t first, char32_t last) const;
  [[nodiscard]] bool any_code(const thread& t, char32_t first, char32_t last) const;

  [[nodiscard]] bool is_item(const thread& t) const;

  const program& program_;
  const frame_store& frames_;
  unique_items unique_;
};

}  // namespace skein::grammar
