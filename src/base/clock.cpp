#include "base/clock.hpp"

namespace skein {
namespace {

class system_clock final : public clock {
 public:
  [[nodiscard]] steady_time now() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace

const clock& real_clock() {
  static const system_clock instance;
  return instance;
}

}  // namespace skein
