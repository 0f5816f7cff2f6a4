#include "app/device_choice.hpp"

#include <charconv>
#include <optional>
#include <string_view>

#include "engine/gpu/gpu_library.hpp"

namespace skein::cli {
namespace {

using engine::gpu_kind;

constexpr const char* name_of(gpu_kind kind) { return kind == gpu_kind::cuda ? "cuda" : "hip"; }

struct named_gpu {
  gpu_kind kind;
  int index;
};

/// The GPU that "cuda" (0), "hip:N" and the like name; nullopt for other texts.
std::optional<named_gpu> read_gpu(std::string_view wish) {
  for (const gpu_kind kind : {gpu_kind::cuda, gpu_kind::hip}) {
    const std::string_view name = name_of(kind);
    if (!wish.starts_with(name)) continue;
    std::string_view number = wish.substr(name.size());
    if (number.empty()) return named_gpu{kind, 0};
    if (number.front() != ':') return {};
    number.remove_prefix(1);
    int index = 0;
    const auto [end, trouble] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (trouble != std::errc() || end != number.data() + number.size() || index < 0) return {};
    return named_gpu{kind, index};
  }
  return {};
}

/// "cuda:0+1": several GPUs for one copy of a model.
bool is_group(std::string_view wish) {
  const std::size_t plus = wish.find('+');
  if (plus == wish.npos || !read_gpu(wish.substr(0, plus))) return false;
  const std::string_view others = wish.substr(plus + 1);
  return !others.empty() && others.find_first_not_of("0123456789+") == others.npos;
}

}  // namespace

std::vector<std::string> split_devices(const std::string& list) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at != std::string::npos;) {
    const std::size_t comma = list.find(',', at);
    all.push_back(list.substr(at, comma == std::string::npos ? comma : comma - at));
    at = comma == std::string::npos ? comma : comma + 1;
  }
  return all;
}

result<device_choice> choose_device(const std::string& wish) {
  if (wish == "cpu") return device_choice{};
  const auto named = read_gpu(wish);
  if (!named && wish != "auto")
    return error{is_group(wish) ? error_kind::unavailable : error_kind::invalid_argument,
                 "device: " + (wish.empty() ? "an empty text" : wish) +
                     " is not supported; accepted: auto, cpu, cuda, cuda:N, hip, hip:N",
                 "device"};
  const auto refuse = [&](const std::string& why) {
    return error{error_kind::unavailable, "device: " + wish + " is not available: " + why, "device"};
  };
  const auto library = named ? engine::open_gpu_library(named->kind) : engine::open_any_gpu_library();
  if (!library && !named) return device_choice{.remark = library.error().message};
  if (!library) return refuse(library.error().message);
  const int index = named ? named->index : 0;
  if (index >= library->devices) {
    const std::string kind = name_of(library->kind);
    return refuse("this machine has only " + kind + ":0" +
                  (library->devices > 1 ? " to " + kind + ':' + std::to_string(library->devices - 1) : ""));
  }
  const auto described = library->plugin->describe_device(index);
  if (!described) return refuse(described.error().message);
  return device_choice{library->plugin, index, described->free_bytes, {}};
}

}  // namespace skein::cli
