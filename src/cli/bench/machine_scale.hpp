#pragma once
#include <memory>
#include <string>

#include "app/device_choice.hpp"
#include "kernels/cpu/machine_limits.hpp"

namespace skein::cli {

/// The limits of a device. 0: unknown.
struct device_limits {
  double read_bytes_per_s = 0;
  double flop_per_s = 0;  ///< of the operations that GEMMs use
};

/// The limits that benchmark results are compared with. A CPU's limits are measured at each call, because those of a
/// shared machine change from second to second; a GPU's are measured once.
class machine_scale {
 public:
  /// A GPU is measured here and should be idle. Errors: unavailable (device, memory). Limits that cannot be measured
  /// stay unknown.
  [[nodiscard]] static result<machine_scale> of(const device_choice& device, std::uint32_t threads);

  [[nodiscard]] device_limits now();
  /// Whether the device is a GPU: its ticks are short, so a sample should have many of them.
  [[nodiscard]] bool is_gpu() const { return !cpu_; }
  [[nodiscard]] std::uint32_t threads() const { return cpu_ ? cpu_->threads() : 0; }
  /// How the operations were measured, or why they were not.
  [[nodiscard]] const std::string& flop_source() const { return flop_source_; }

 private:
  std::unique_ptr<kernels::cpu::machine_probe> cpu_;  ///< null: a GPU
  device_limits gpu_;
  std::string flop_source_;
};

}  // namespace skein::cli
