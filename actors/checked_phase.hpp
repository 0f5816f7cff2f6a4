#pragma once
#include "base/check.hpp"

namespace skein {

/// Where an object is in its life: an enumeration whose value changes only as its function `may_follow(from, to)`
/// allows.
template <typename Phase>
class checked_phase {
 public:
  explicit checked_phase(Phase first) : now_(first) {}

  [[nodiscard]] bool is(Phase one) const { return now_ == one; }
  [[nodiscard]] Phase now() const { return now_; }
  void enter(Phase next) {
    check(may_follow(now_, next), "illegal transition of phases");
    now_ = next;
  }

 private:
  Phase now_;
};

}  // namespace skein
