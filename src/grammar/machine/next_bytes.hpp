#pragma once
#include "grammar/automata/byte_set.hpp"
#include "grammar/machine/string_machine.hpp"

namespace skein::grammar {

/// Which bytes a thread can read, without reading them.
class next_bytes {
 public:
  next_bytes(const program& of, const frame_store& frames, const string_machine& strings)
      : program_(of), frames_(frames), strings_(strings) {}

  /// Adds the bytes that a thread can read, and perhaps some more.
  void add(const thread& t, byte_set& to) const;

 private:
  void add_value(std::uint32_t node, byte_set& to) const;
  void add_text(std::uint32_t state, byte_set& to) const;

  const program& program_;
  const frame_store& frames_;
  const string_machine& strings_;
};

}  // namespace skein::grammar
