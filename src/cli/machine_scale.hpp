#pragma once
#include <memory>
#include <string>

#include "cli/device_choice.hpp"
#include "kernels/cpu/machine_limits.hpp"

namespace skein::cli {

/// What a device can do at most. 0: not known.
struct device_limits {
  double read_bytes_per_s = 0;
  double flop_per_s = 0;  ///< of the operations that matrix products are made of
};

/// The scale for the figures of a benchmark: a CPU's limits are measured whenever they are asked for, since a shared
/// machine's move from second to second; a GPU's once.
class machine_scale {
 public:
  /// Measures a GPU here; it should be idle. Errors: unavailable (device, memory). A runtime whose limits cannot be
  /// measured leaves them unknown.
  [[nodiscard]] static result<machine_scale> of(const device_choice& device, std::uint32_t threads);

  [[nodiscard]] device_limits now();
  /// Whether now() takes so long that a measurement should hold many ticks for each call.
  [[nodiscard]] bool is_gpu() const { return !cpu_; }
  [[nodiscard]] std::uint32_t threads() const { return cpu_ ? cpu_->threads() : 0; }
  /// What the operations were measured with, or why they were not.
  [[nodiscard]] const std::string& flop_source() const { return flop_source_; }

 private:
  std::unique_ptr<kernels::cpu::machine_probe> cpu_;  ///< none: a GPU
  device_limits gpu_;
  std::string flop_source_;
};

}  // namespace skein::cli
