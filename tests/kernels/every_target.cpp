#include "tests/kernels/every_target.hpp"

#include <boost/test/unit_test.hpp>

#include "hwy/highway.h"

namespace skein::test {

void for_every_target(const std::function<void()>& body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    BOOST_TEST_CONTEXT("Highway target " << hwy::TargetName(target)) { body(); }
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace skein::test
