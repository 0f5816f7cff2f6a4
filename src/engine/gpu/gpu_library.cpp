#include "engine/gpu/gpu_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace skein::engine {
namespace {

struct library_name {
  const char *file, *variable;
};
constexpr library_name name_of(gpu_kind kind) {
  return kind == gpu_kind::cuda ? library_name{"libskein_cuda.so", "SKEIN_CUDA_LIBRARY"}
                                : library_name{"libskein_hip.so", "SKEIN_HIP_LIBRARY"};
}

error not_there(std::string why) { return {error_kind::unavailable, std::move(why), "device"}; }

/// Its file; none: it is not installed.
std::optional<std::filesystem::path> find(const library_name& name) {
  std::vector<std::filesystem::path> candidates;
  std::error_code unknown;
  if (const char* given = std::getenv(name.variable)) {
    candidates = {given};
  } else {
    const auto folder = std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path();
    candidates = {folder / "lib" / name.file, folder.parent_path() / "lib/skein" / name.file};
  }
  for (const auto& path : candidates)
    if (std::filesystem::exists(path, unknown)) return path;
  return {};
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

result<gpu_library> open(gpu_kind kind, const std::filesystem::path& path) {
  const auto plugin = load(path);
  if (!plugin) return plugin.error();
  const auto devices = (*plugin)->device_count();
  if (!devices) return not_there(devices.error().message);
  return gpu_library{kind, *plugin, *devices, path};
}

}  // namespace

result<gpu_library> open_gpu_library(gpu_kind kind) {
  const library_name name = name_of(kind);
  const auto path = find(name);
  return path ? open(kind, *path) : not_there(std::string(name.file) + " is not installed");
}

result<gpu_library> open_any_gpu_library() {
  std::string why;
  for (const gpu_kind kind : {gpu_kind::cuda, gpu_kind::hip}) {
    const auto path = find(name_of(kind));
    if (!path) continue;
    auto library = open(kind, *path);
    if (library) return library;
    why.append(why.empty() ? "" : "; ").append(library.error().message);
  }
  return not_there(why.empty() ? "no GPU library is installed" : why);
}

}  // namespace skein::engine
