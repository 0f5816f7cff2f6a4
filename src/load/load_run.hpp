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
  std::uint32_t concurrency = 0;               ///< requests at once at most; 0: as many as are due
  std::chrono::milliseconds timeout{600'000};  ///< of one request
};

/// Sends each request when it is due, or as soon as fewer than `concurrency` run, each on a connection of its own and
/// all from this thread, and waits for all answers. What goes wrong with one request is its outcome; errors:
/// unavailable for a host that has no address.
[[nodiscard]] result<load_figures> run_load(const load_target& target, const std::vector<planned_request>& plan,
                                            const run_options& options);

}  // namespace skein::load
