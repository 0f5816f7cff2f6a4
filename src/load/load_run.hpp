#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "load/load_plan.hpp"
#include "load/load_report.hpp"
#include "load/load_target.hpp"

namespace skein::load {

struct run_options {
  std::uint32_t concurrency = 0;               ///< maximum number of concurrent requests; 0: no limit
  std::chrono::milliseconds timeout{600'000};  ///< per request
};

/// Sends each request when it is due, or later when fewer than `concurrency` are running, and waits for all answers.
/// Each request has its own connection; all run on this thread. Failures of single requests are outcomes. Errors:
/// unavailable if the host has no address.
[[nodiscard]] result<load_figures> run_load(const load_target& target, const std::vector<planned_request>& plan,
                                            const run_options& options);

}  // namespace skein::load
