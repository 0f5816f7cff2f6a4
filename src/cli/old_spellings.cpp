#include "cli/old_spellings.hpp"

#include <algorithm>

namespace skein::cli {
namespace {

error wrong(const std::string& flag, const std::string& message) {
  return {error_kind::invalid_argument, flag + ' ' + message, flag};
}

// "[0,1]" or "0,1" to "cuda:0+1"
result<std::string> pipeline_device(std::string list) {
  std::erase_if(list, [](char c) { return c == '[' || c == ']' || c == ' '; });
  const bool numbers = !list.empty() && list.find_first_not_of("0123456789,") == std::string::npos;
  if (!numbers) return wrong("--pp-devices", "needs a list of device numbers such as [0,1]");
  std::replace(list.begin(), list.end(), ',', '+');
  return "cuda:" + list;
}

bool is_truth(const std::string& text) { return text == "True" || text == "true" || text == "1"; }
bool is_falsehood(const std::string& text) { return text == "False" || text == "false" || text == "0"; }

}  // namespace

result<std::vector<std::string>> modern_arguments(std::vector<std::string> arguments) {
  std::vector<std::string> modern;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& flag = arguments[i];
    const bool has_next = i + 1 < arguments.size();
    if (flag == "--pp-devices") {
      if (!has_next) return wrong(flag, "needs a list of device numbers");
      const auto device = pipeline_device(arguments[++i]);
      if (!device) return device.error();
      modern.insert(modern.end(), {"--device", *device});
    } else if (flag == "--debug") {
      const bool off = has_next && is_falsehood(arguments[i + 1]);
      if (off || (has_next && is_truth(arguments[i + 1]))) ++i;
      if (!off) modern.insert(modern.end(), {"--log-level", "debug"});
    } else if (flag == "--wkv32") {
      modern.insert(modern.end(), {"--state-dtype", "fp32"});
    } else if (flag != "--chunk-load" && flag != "--enable-dynamic-loading") {
      modern.push_back(flag);
    }
  }
  return modern;
}

}  // namespace skein::cli
