#pragma once
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "kernels/gpu/sampling/sampling.hpp"
#include "sampling/sampler.hpp"

namespace skein::test {

/// Log-probabilities of the device are those of the host, within rounding.
inline void check_scores(const kernels::gpu::token_scores& device, const sampling::token_logprobs& host) {
  const auto close = [](float a, float b) { return std::abs(a - b) <= 1e-5f * std::max(1.0f, std::abs(b)); };
  BOOST_CHECK_MESSAGE(close(device.logprob, host.logprob), device.logprob << " != " << host.logprob);
  BOOST_CHECK_EQUAL(device.nonfinite == 0, host.finite);
  BOOST_REQUIRE_EQUAL(device.top_count, host.count);
  for (std::uint32_t i = 0; i < host.count; ++i) {
    BOOST_CHECK_EQUAL(device.top[i].token, host.top[i].token);
    BOOST_CHECK(close(device.top[i].logprob, host.top[i].logprob));
  }
}

}  // namespace skein::test
