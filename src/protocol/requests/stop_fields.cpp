#include <algorithm>
#include <limits>

#include "protocol/requests/shared_fields.hpp"

namespace skein::protocol {
namespace {

constexpr std::int64_t stop_token_max = std::numeric_limits<token_id>::max();

/// Collects stop strings and stop ids within the limits, and reports invalid ones.
class stop_collector {
 public:
  stop_collector(const request_limits& limits, first_fault& fault, generation_request& out)
      : limits_(limits), fault_(fault), out_(out) {}

  void take_text(std::string_view stop, const std::string& path) {
    if (stop.empty()) return;  // clients send "" for none
    if (stop.size() > limits_.stop_bytes_max)
      refuse(path, "must have at most " + std::to_string(limits_.stop_bytes_max) + " bytes");
    else if (named_ >= limits_.stops_max)
      refuse(path, "exceeds the limit of " + std::to_string(limits_.stops_max) + " stop strings");
    else if (++named_; std::find(out_.stop.begin(), out_.stop.end(), stop) == out_.stop.end())
      out_.stop.emplace_back(stop);
  }

  void take_id(json_value value, const std::string& path) {
    if (out_.sampling.stop_ids.size() >= limits_.stop_ids_max)
      return refuse(path, "exceeds the limit of " + std::to_string(limits_.stop_ids_max) + " stop tokens");
    if (const auto id = read_integer(value, path, 0, stop_token_max, fault_))
      out_.sampling.stop_ids.push_back(static_cast<token_id>(*id));
  }

  void refuse(const std::string& path, const std::string& complaint) {
    fault_.report(error_kind::invalid_argument, path, path + ' ' + complaint);
  }

 private:
  const request_limits& limits_;
  first_fault& fault_;
  generation_request& out_;
  std::uint32_t named_ = 0;
};

/// Calls `take(value, path)` for a single value or for each element of a list.
template <typename Take>
void for_one_or_each(json_value value, const std::string& path, const first_fault& fault, Take take) {
  if (!value.is(json_kind::array)) return take(value, path);
  std::size_t index = 0;
  for (const auto element : value.elements()) {
    if (fault.found()) return;
    take(element, element_path(path, index++));
  }
}

}  // namespace

void read_stops(const object_reader& body, const std::vector<std::string>& turn_ends, const request_limits& limits,
                generation_request& out) {
  const auto native = body.value("stop_tokens");
  out.foreign_stop_ids = out.lenient || native;
  out.ignore_eos = body.boolean("ignore_eos").value_or(false);
  out.shows_stop = body.boolean("include_stop_str_in_output").value_or(false);
  if (!native && !out.ignore_eos) out.stop.insert(out.stop.end(), turn_ends.begin(), turn_ends.end());

  stop_collector stops(limits, body.fault(), out);
  const auto take_either = [&](json_value value, const std::string& path) {
    if (const auto text = value.text()) return stops.take_text(*text, path);
    if (value.is(json_kind::number)) return stops.take_id(value, path);
    const bool alone = path == body.path_of("stop_tokens");
    stops.refuse(path, alone ? "must be a string, a token id or a list of these" : "must be a string or a token id");
  };
  const auto take_text = [&](json_value value, const std::string& path) {
    if (const auto text = value.text()) return stops.take_text(*text, path);
    stops.refuse(path, "must be a string");
  };
  const auto take_id = [&](json_value value, const std::string& path) { stops.take_id(value, path); };

  if (native) for_one_or_each(*native, body.path_of("stop_tokens"), body.fault(), take_either);
  if (const auto texts = body.value("stop")) for_one_or_each(*texts, body.path_of("stop"), body.fault(), take_text);
  if (const auto ids = body.array("stop_token_ids"))
    for_one_or_each(*ids, body.path_of("stop_token_ids"), body.fault(), take_id);
}

}  // namespace skein::protocol
