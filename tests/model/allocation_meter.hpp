#pragma once
#include <cstddef>

namespace skein::test {

/// Measures the most memory that was taken with `new` at one time while the object lives, beyond what was held when it
/// was made, by whichever thread. One at a time. The program that links it counts all its `new` and `delete`.
class allocation_meter {
 public:
  allocation_meter();
  [[nodiscard]] std::size_t peak_bytes() const;

 private:
  std::size_t held_before_;
};

}  // namespace skein::test
