#include "model/adapters/adapter_choice.hpp"

#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

namespace skein::model {

result<adapter_choice> parse_adapter(std::string_view text) {
  constexpr double scale_max = 10'000;
  const std::size_t colon = text.rfind(':');
  adapter_choice choice{std::filesystem::path(text), {}};
  if (colon != text.npos) {
    const std::string_view number = text.substr(colon + 1);
    double scale = 0;
    const auto [end, trouble] = std::from_chars(number.data(), number.data() + number.size(), scale);
    const bool is_number = !number.empty() && trouble == std::errc() && end == number.data() + number.size();
    if (is_number && !(std::abs(scale) <= scale_max))
      return error{error_kind::invalid_argument,
                   "adapter: the scale " + std::string(number) + " is out of range (-10000 to 10000)", "adapter"};
    const std::filesystem::path file(text.substr(0, colon));
    std::error_code none;
    if (!is_number && !std::filesystem::exists(choice.path, none) && std::filesystem::is_regular_file(file, none))
      return error{error_kind::invalid_argument,
                   "adapter: the scale '" + std::string(number) + "' of " + file.string() + " is not a number",
                   "adapter"};
    if (is_number) choice = {file, scale};
  }
  if (choice.path.empty())
    return error{error_kind::invalid_argument, "adapter: '" + std::string(text) + "' is not FILE or FILE:SCALE",
                 "adapter"};
  return choice;
}

}  // namespace skein::model
