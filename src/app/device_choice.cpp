#include "app/device_choice.hpp"

#include <charconv>
#include <optional>
#include <string_view>

#include "engine/gpu/gpu_library.hpp"

namespace skein::cli {
namespace {

/// The index in "cuda" (0) or "cuda:N"; nullopt for other texts.
std::optional<int> cuda_index(std::string_view wish) {
  if (wish == "cuda") return 0;
  if (!wish.starts_with("cuda:")) return {};
  int index = 0;
  const char* const end = wish.data() + wish.size();
  const auto [stopped, trouble] = std::from_chars(wish.data() + 5, end, index);
  if (trouble != std::errc() || stopped != end || index < 0) return {};
  return index;
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
  const auto index = wish == "auto" ? 0 : cuda_index(wish);
  if (!index)
    return error{error_kind::unavailable, "device: " + wish + " is not supported; accepted: auto, cpu, cuda, cuda:N",
                 "device"};
  const auto library = engine::open_gpu_library();
  const auto refuse = [&](const std::string& why) {
    return error{error_kind::unavailable, "device: " + wish + " is not available: " + why, "device"};
  };
  if (!library && wish == "auto") return device_choice{.remark = library.error().message};
  if (!library) return refuse(library.error().message);
  if (*index >= library->devices)
    return refuse("this machine has only cuda:0" +
                  (library->devices > 1 ? " to " + std::to_string(library->devices - 1) : ""));
  const auto described = library->plugin->describe_device(*index);
  if (!described) return refuse(described.error().message);
  return device_choice{library->plugin, *index, described->free_bytes, {}};
}

}  // namespace skein::cli
