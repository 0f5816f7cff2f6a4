#include "load/answer_reader.hpp"

#include <optional>

#include "protocol/json/json.hpp"

namespace skein::load {
namespace {

using protocol::json_value;

bool has_text(const json_value& object, std::string_view name) {
  const auto value = object.member(name);
  return value && !value->text().value_or("").empty();
}

/// Whether the first choice has text, under the field name of either route.
bool has_text(const json_value& choice) {
  const auto delta = choice.member("delta");
  return has_text(choice, "text") || (delta && (has_text(*delta, "content") || has_text(*delta, "reasoning_content")));
}

std::uint64_t number(const json_value& object, std::string_view name) {
  const auto value = object.member(name);
  return value ? value->unsigned_integer().value_or(0) : 0;
}

std::string message_of(const json_value& error) {
  const auto message = error.is(protocol::json_kind::object) ? error.member("message") : std::optional(error);
  return std::string(message ? message->text().value_or("error") : "error");
}

}  // namespace

std::uint32_t answer_reader::read(std::string_view bytes) {
  std::uint32_t pieces = 0;
  rest_ += bytes;
  std::size_t begin = 0;
  for (std::size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string_view line = std::string_view(rest_).substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.starts_with("data:")) continue;
    line.remove_prefix(line.starts_with("data: ") ? 6 : 5);
    if (line == "[DONE]")
      done_ = true;
    else
      pieces += take_event(line) ? 1 : 0;
  }
  rest_.erase(0, begin);
  return pieces;
}

bool answer_reader::take_event(std::string_view data) {
  const auto event = protocol::json_document::parse(data, {});
  if (!event) {
    failure_ = "an event is not valid JSON";
    return false;
  }
  const json_value root = event->root();
  if (const auto error = root.member("error"); error && !error->is(protocol::json_kind::null))
    failure_ = message_of(*error);
  if (const auto usage = root.member("usage"); usage && usage->is(protocol::json_kind::object)) {
    input_tokens_ = number(*usage, "prompt_tokens");
    output_tokens_ = number(*usage, "completion_tokens");
  }
  const auto choices = root.member("choices");
  if (!choices || !choices->is(protocol::json_kind::array) || choices->is_empty_array()) return false;
  return has_text(*choices->elements().begin());
}

}  // namespace skein::load
