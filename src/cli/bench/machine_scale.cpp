#include "cli/bench/machine_scale.hpp"

namespace skein::cli {
namespace {

constexpr std::size_t probe_bytes = std::size_t{512} << 20;  // a CPU reads this in about the time of a decode tick

}  // namespace

result<machine_scale> machine_scale::of(const device_choice& device, std::uint32_t threads) {
  machine_scale scale;
  if (!device.gpu) {
    scale.cpu_ = std::make_unique<kernels::cpu::machine_probe>(threads);
    scale.flop_source_ = "fp32 fused multiply-adds";
    return scale;
  }
  const auto limits = device.gpu->measure_limits(device.index);
  if (!limits && limits.error().kind != error_kind::unsupported) return limits.error();
  scale.flop_source_ = limits ? limits->matrix_by : limits.error().message;
  if (limits) scale.gpu_ = {limits->read_bytes_per_s, limits->matrix_flop_per_s};
  return scale;
}

device_limits machine_scale::now() {
  if (!cpu_) return gpu_;
  return {cpu_->read_bytes_per_s(probe_bytes), cpu_->fma_flop_per_s()};
}

}  // namespace skein::cli
