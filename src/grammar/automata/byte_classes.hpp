#pragma once
#include <bitset>

#include "grammar/automata/dfa.hpp"

namespace skein::grammar {

/// Marks the boundaries of byte ranges; bytes between two boundaries form a class.
class byte_classes {
 public:
  void add(unsigned low, unsigned high) {
    cut_.set(low);
    cut_.set(high + 1);
  }
  void write(dfa& into) const {
    std::uint8_t at = 0;
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (byte > 0 && cut_.test(byte)) ++at;
      into.class_of[byte] = at;
    }
    into.classes = at + 1u;
  }

 private:
  std::bitset<257> cut_;
};

}  // namespace skein::grammar
