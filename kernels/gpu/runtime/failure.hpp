#pragma once
#include <stdexcept>

#include "base/result.hpp"

namespace skein::kernels::gpu {

/// Thrown by constructors of resource owners: only at start, and caught where a back end is made.
class device_failure : public std::runtime_error {
 public:
  explicit device_failure(error why) : std::runtime_error(why.message), why_(std::move(why)) {}
  [[nodiscard]] const error& why() const { return why_; }

 private:
  error why_;
};

inline void require(const result<void>& done) {
  if (!done) throw device_failure(done.error());
}

}  // namespace skein::kernels::gpu
