// For targets without the tensor cores of NVIDIA GPUs: AMD. Every row goes token after token.
#include "base/check.hpp"
#include "kernels/gpu/time_mix/chunks/wkv6_chunks.hpp"
#include "kernels/gpu/time_mix/chunks/wkv_chunks.hpp"

namespace skein::kernels::gpu {

namespace {

[[noreturn]] void never_called() { check_failed("chunks on a device that has none", std::source_location::current()); }

}  // namespace

bool chunked_time_mix::available() { return false; }
bool chunked_wkv6::available() { return false; }

result<void> chunked_time_mix::run(stream_handle, element, const time_mix_parameters&) const { never_called(); }
result<void> chunked_wkv6::run(stream_handle, element, const wkv6_parameters&) const { never_called(); }

}  // namespace skein::kernels::gpu
