#include "protocol/chat/chat_messages.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "protocol/chat/call_splitter.hpp"
#include "protocol/chat/tool_fields.hpp"

namespace skein::protocol {
namespace {

/// "rag" is RWKV-Infer's role for retrieved text; it is rendered like the system's.
bool is_role(std::string_view role) {
  constexpr std::array<std::string_view, 6> roles{"system", "developer", "user", "assistant", "tool", "rag"};
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

/// The text of one part of a content list; images, audio and files are refused.
std::string_view read_part(json_value part, const std::string& path, first_fault& fault) {
  if (!part.is(json_kind::object)) {
    fault.report(error_kind::invalid_argument, path, path + " must be an object with a type");
    return {};
  }
  const object_reader reader(part, path, fault);
  const auto type = reader.text("type");
  if (!type) {
    reader.refuse("type", "must be a string");
  } else if (*type == "text" || *type == "input_text" || *type == "output_text" || *type == "refusal") {
    const std::string_view holder = *type == "refusal" ? "refusal" : "text";
    if (const auto text = reader.text(holder)) return *text;
    reader.refuse(holder, "must be a string");
  } else {
    reader.refuse_unsupported("type");
  }
  return {};
}

std::string read_content(const object_reader& message) {
  const auto content = message.value("content");
  if (message.is_null("content")) return "";
  if (content && content->is(json_kind::string)) return std::string(*content->text());
  std::string joined;
  if (!content || !content->is(json_kind::array)) {
    message.refuse("content", "must be a string or a list of text parts");
    return joined;
  }
  std::size_t index = 0;
  for (const auto part : content->elements()) {
    if (message.fault().found()) break;
    joined += read_part(part, element_path(message.path_of("content"), index++), message.fault());
  }
  return joined;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

chat_message read_message(const object_reader& message, bool leniently, turn_form form) {
  for (const auto name : {"function_call", "audio"})
    if (const auto asked = message.value(name); asked && !asked->is_empty_array()) message.refuse_unsupported(name);
  std::string role(message.text("role").value_or(""));
  if (leniently) std::ranges::transform(role, role.begin(), lower);
  if (!is_role(role)) message.refuse("role", "must be system, developer, user, assistant or tool");
  const bool raw = leniently && message.boolean("raw").value_or(false);
  const auto calls = read_called(message);
  if (!calls.empty() && role != "assistant") message.refuse("tool_calls", "must be in a message of the assistant");
  chat_message read{std::move(role), {}, std::string(message.text("name").value_or("")), raw};
  const bool no_content = !calls.empty() && !message.value("content");
  read.content = text_with_calls(no_content ? std::string() : read_content(message), calls, form);
  read.calls = !calls.empty();
  read.answers_call = read.role == "tool" && message.text("tool_call_id").has_value();
  return read;
}

namespace {

void read_list(json_value list, const object_reader& body, bool leniently, turn_form form,
               std::vector<chat_message>& out) {
  std::size_t index = 0;
  for (const auto element : list.elements()) {
    if (body.fault().found()) return;
    const auto path = element_path(body.path_of("messages"), index++);
    if (element.is(json_kind::object))
      out.push_back(read_message({element, path, body.fault()}, leniently, form));
    else
      body.fault().report(error_kind::invalid_argument, path, path + " must be an object");
  }
}

void read_contents(const object_reader& body, std::vector<chat_message>& out) {
  const auto contents = body.array("contents");
  if (!contents) return;
  const auto before = out.size();
  for (const auto element : contents->elements()) {
    const auto text = element.text();
    if (!text) return body.refuse("contents", "must be a list of strings");
    if (out.size() > before) {
      const auto session = body.text("session_id");
      if (!session || session->empty()) return body.refuse("contents", "must have one entry in a conversation");
      return body.fault().report(error_kind::invalid_argument, "contents",
                                 "State mode only supports a single contents item");
    }
    out.push_back({"user", std::string(*text), ""});
  }
}

}  // namespace

std::vector<chat_message> read_messages(const object_reader& body, bool leniently, turn_form form) {
  std::vector<chat_message> messages;
  if (const auto system = body.text("system"); system && !system->empty())
    messages.push_back({"system", std::string(*system), ""});
  const auto list = body.array("messages");
  if (list)
    read_list(*list, body, leniently, form, messages);
  else if (!body.value("contents"))
    body.refuse("messages", "must be a list of messages");
  read_contents(body, messages);
  if (messages.empty()) body.refuse("messages", "must have at least one message");
  return messages;
}

}  // namespace skein::protocol
