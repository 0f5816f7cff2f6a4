#pragma once
#include <functional>

namespace skein::test {

/// Runs `body` once for each Highway target that was built and that this machine has; a failure names the target.
void for_every_target(const std::function<void()>& body);

}  // namespace skein::test
