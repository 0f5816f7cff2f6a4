#include <cstdlib>
#include <map>
#include <mutex>

#include "kernels/gpu/runtime/runtime.hpp"

namespace skein::kernels::gpu {

namespace {

struct wanted_profile {
  std::optional<device_profile> profile;
  std::string unknown;  ///< a name that is none
};

wanted_profile wanted_by_environment() {
  const char* const name = std::getenv("SKEIN_DEVICE_PROFILE");
  if (!name || *name == 0) return {};
  const auto found = find_profile(name);
  return found ? wanted_profile{found, ""} : wanted_profile{{}, name};
}

const wanted_profile& of_process() {
  static const wanted_profile wanted = wanted_by_environment();
  return wanted;
}
thread_local std::optional<device_profile> of_thread;
std::mutex of_measured_times;
std::map<int, tile_times> measured_times;
tile_times measured_times_of(int device) {
  const std::scoped_lock lock(of_measured_times);
  const auto found = measured_times.find(device);
  return found == measured_times.end() ? tile_times{} : found->second;
}

result<std::uint32_t> attribute(SKEIN_GPU(DeviceAttr) what, int device) {
  int value = 0;
  if (const auto r = outcome(SKEIN_GPU(DeviceGetAttribute)(&value, what, device), "querying an attribute"); !r)
    return r.error();
  return static_cast<std::uint32_t>(value);
}

/// Of other GPUs 0: their numbers mean something else.
result<std::uint32_t> compute_capability([[maybe_unused]] int device) {
#if defined(__HIP_PLATFORM_AMD__)
  return 0u;
#else
  const auto major = attribute(SKEIN_GPU(DevAttrComputeCapabilityMajor), device);
  if (!major) return major;
  const auto minor = attribute(SKEIN_GPU(DevAttrComputeCapabilityMinor), device);
  if (!minor) return minor;
  return 10 * *major + *minor;
#endif
}

/// Of CUDA devices; from 8.0 on, others have 0.
result<std::uint32_t> streamed_bytes_max([[maybe_unused]] int device) {
#if defined(CUDART_VERSION)
  return attribute(cudaDevAttrMaxAccessPolicyWindowSize, device);
#else
  return 0u;
#endif
}

}  // namespace

result<device_profile> profile_of(int device) {
  if (!of_process().unknown.empty())
    return error{
        error_kind::bad_config,
        "SKEIN_DEVICE_PROFILE: no profile has the name '" + of_process().unknown + "'; there are " + profile_names(),
        ""};
  const auto capability = compute_capability(device);
  if (!capability) return capability.error();
  const auto sm_count = attribute(SKEIN_GPU(DevAttrMultiProcessorCount), device);
  if (!sm_count) return sm_count.error();
  const auto shared = attribute(SKEIN_GPU(DevAttrMaxSharedMemoryPerBlockOptin), device);
  if (!shared) return shared.error();
  device_profile profile = make_profile(*capability, *sm_count, *shared);
  const auto streamed = streamed_bytes_max(device);
  if (!streamed) return streamed.error();
  profile.streamed_bytes_max = *streamed;
  profile.tile_us = measured_times_of(device);
  for (const auto& imposed : {of_process().profile, of_thread})
    if (imposed) profile = limit_profile(profile, *imposed);
  return profile;
}

result<device_profile> current_profile() {
  int device = 0;
  if (const auto r = outcome(SKEIN_GPU(GetDevice)(&device), "querying the current device"); !r) return r.error();
  return profile_of(device);
}

void set_tile_times(int device, const tile_times& times) {
  const std::scoped_lock lock(of_measured_times);
  measured_times[device] = times;
}

void impose_profile(const std::optional<device_profile>& profile) { of_thread = profile; }

}  // namespace skein::kernels::gpu
