#include "engine/gpu/gpu_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace skein::engine {
namespace {

constexpr const char* file_name = "libskein_cuda.so";

error not_there(std::string why) { return {error_kind::unavailable, std::move(why), "device"}; }

std::vector<std::filesystem::path> candidates() {
  if (const char* given = std::getenv("SKEIN_CUDA_LIBRARY")) return {given};
  std::error_code unknown;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path();
  return {folder / "lib" / file_name, folder.parent_path() / "lib/skein" / file_name};
}

result<const kernels::gpu::plugin*> load(const std::filesystem::path& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return not_there(std::string("the GPU library cannot be loaded: ") + dlerror());
  const auto entry = reinterpret_cast<kernels::gpu::plugin_function>(dlsym(library, kernels::gpu::plugin_symbol));
  if (!entry) return not_there(path.string() + " is not a Skein GPU library");
  const kernels::gpu::plugin* plugin = entry();
  if (plugin->abi != kernels::gpu::plugin_abi || std::string_view(plugin->build) != SKEIN_BUILD_ID)
    return not_there(path.string() + " belongs to another build of Skein");
  return plugin;
}

}  // namespace

result<gpu_library> open_gpu_library() {
  for (const auto& path : candidates()) {
    std::error_code unknown;
    if (!std::filesystem::exists(path, unknown)) continue;
    const auto plugin = load(path);
    if (!plugin) return plugin.error();
    const auto devices = (*plugin)->device_count();
    if (!devices) return not_there(devices.error().message);
    return gpu_library{*plugin, *devices, path};
  }
  return not_there(std::string(file_name) + " is not installed");
}

}  // namespace skein::engine
