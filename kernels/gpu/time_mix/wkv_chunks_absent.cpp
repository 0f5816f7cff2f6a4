// For targets without the tensor cores of NVIDIA GPUs: AMD. Every row goes token after token.
#include "base/check.hpp"
#include "kernels/gpu/time_mix/wkv_chunks.hpp"

namespace skein::kernels::gpu {

namespace {

[[noreturn]] void never_called() { check_failed("chunks on a device that has none", std::source_location::current()); }

}  // namespace

bool chunked_time_mix::available() { return false; }

std::size_t chunked_time_mix::planned_bytes(std::uint32_t, std::uint32_t, std::uint32_t) { return 0; }

chunked_time_mix::chunked_time_mix(std::uint32_t, element type, std::uint32_t, std::uint32_t)
    : heads_(0), type_(type), chunks_max_(0) {
  never_called();
}

result<void> chunked_time_mix::plan(stream_handle, const device_batch&, std::span<const sequence_run>) {
  never_called();
}

result<void> chunked_time_mix::run(stream_handle, element, const time_mix_parameters&) const { never_called(); }

}  // namespace skein::kernels::gpu
