#include "protocol/chat/tool_fields.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "config/limits.hpp"
#include "protocol/chat/call_splitter.hpp"
#include "protocol/chat/tool_list.hpp"
#include "protocol/json/json_copy.hpp"
#include "protocol/json/json_indent.hpp"
#include "protocol/json/large_integers.hpp"

namespace skein::protocol {
namespace {

constexpr std::uint32_t calls_max = 16;
constexpr std::string_view call_opening = "Assistant: ```json", headed_opening = "Assistant: **Tool Call:**\n```json";

constexpr std::string_view description_start = "Tools:\n", headed_description_start = "### `";

struct tool_wish {
  enum class mode : std::uint8_t { none, automatic, required } how = mode::automatic;
  std::vector<std::string> allowed;  ///< empty: all
};

std::string name_of(const object_reader& choice) {
  const auto function = choice.object("function");
  return name_in(function ? *function : choice);
}

/// A mode, a function, or a list of allowed ones with a mode.
tool_wish read_choice(const object_reader& body) {
  using mode = tool_wish::mode;
  tool_wish wish;
  const auto given = body.value("tool_choice");
  if (!given) return wish;
  const auto mode_of = [&](std::string_view name) {
    if (name == "none") wish.how = mode::none;
    if (name == "required" || name == "any") wish.how = mode::required;
    return name == "none" || name == "auto" || name == "required" || name == "any" || name.empty();
  };
  if (const auto name = given->text()) {
    if (!mode_of(*name)) body.refuse("tool_choice", "must be none, auto, required or a function");
    return wish;
  }
  const auto choice = body.object("tool_choice");
  if (!choice) return wish;
  const auto type = choice->text("type").value_or("function");
  if (type == "function") {
    wish.how = mode::required;
    wish.allowed.push_back(name_of(*choice));
  } else if (type == "allowed_tools") {
    const auto inner = choice->object("allowed_tools");
    const object_reader& list = inner ? *inner : *choice;
    if (!mode_of(list.text("mode").value_or("auto"))) list.refuse("mode", "must be auto or required");
    const auto tools = list.array("tools");
    if (!tools || tools->is_empty_array()) list.refuse("tools", "must be a list of functions");
    if (tools)
      for (const auto element : tools->elements()) {
        if (!element.is(json_kind::object)) continue;
        const object_reader one(element, list.path_of("tools"), body.fault());
        if (one.text("type").value_or("function") != "function") list.refuse("tools", "must be a list of functions");
        wish.allowed.push_back(name_of(one));
      }
  } else {
    choice->refuse("type", "must be function or allowed_tools");
  }
  return wish;
}

constexpr std::string_view any_object = R"({"type":"object"})";

/// The schema of a call's arguments, which are an object.
schema_text arguments_of(const tool& of) {
  if (!of.parameters) return {std::string(any_object), of.field};
  schema_text made{"", of.field, of.strict ? "" : std::string(any_object)};
  json_writer out(made.text);
  out.begin_object();
  for (const auto [name, value] : of.parameters->members()) copy_json(out.key(name), value);
  if (!of.parameters->member("type")) out.key("type").value("object");
  out.end_object();
  return made;
}

/// A schema of JSON that is no call in one of the forms that call_splitter reads: what it reads as a call must be one
/// of the grammar. `begin` precedes its keywords.
std::string no_call(const std::vector<tool>& tools, std::string_view begin) {
  std::string text = std::string(begin) + R"("$defs":{"name":{"enum":)";
  json_writer out(text);
  out.begin_array();
  for (const auto& one : tools) out.value(one.name);
  out.end_array();
  return text +=
         R"(},"named":{"type":"object","required":["name"],"properties":{"name":{"$ref":"#/$defs/name"}}},"call":{"anyOf":[)"
         R"({"type":"object","required":["name","arguments"],"properties":{"name":{"$ref":"#/$defs/name"},"arguments":{"type":"object"}}},)"
         R"({"type":"object","required":["name","parameters"],"properties":{"name":{"$ref":"#/$defs/name"},"parameters":{"type":"object"}}},)"
         R"({"type":"object","required":["function"],"properties":{"function":{"$ref":"#/$defs/named"}}}]}},)"
         R"("not":{"$ref":"#/$defs/call"},"items":{"not":{"$ref":"#/$defs/call"}}})";
}

schema_text answer_of(text_constraint wanted, const std::vector<tool>& tools) {
  if (wanted.what == text_constraint::kind::json_object) wanted.text = no_call(tools, R"({"type":"object",)");
  if (!wanted.relaxed.empty()) wanted.relaxed = no_call(tools, "{");
  return {std::move(wanted.text), std::move(wanted.field), std::move(wanted.relaxed)};
}

/// What a model reads of its tools, in the form of its training: the parameters are called arguments.
std::string description_of(const std::vector<tool>& tools, bool only_calls) {
  std::string text(description_start);
  json_writer out(text);
  out.begin_array();
  for (const auto& one : tools) {
    out.begin_object().key("name").value(one.name);
    if (!one.description.empty()) out.key("description").value(one.description);
    out.key("arguments");
    const auto properties = one.parameters ? one.parameters->member("properties") : std::nullopt;
    if (properties)
      copy_json(out, *properties);
    else
      out.begin_object().end_object();
    out.end_object();
  }
  out.end_array();
  if (only_calls) text += "\nReturn only a JSON function call.";
  return text;
}

void append_parameters(std::string& text, json_value parameters) {
  std::string compact;
  json_writer writer(compact);
  copy_json(writer, parameters);
  indent_json(text, parameters, indented_bytes_max(compact.size()));
}

/// The same in the form of the official templates.
std::string headed_description_of(const std::vector<tool>& tools) {
  std::string text;
  for (const auto& one : tools) {
    text.append(headed_description_start).append(one.name).append("`\n");
    if (!one.description.empty()) text.append("**Description:** ").append(one.description).append("\n");
    text += "**Parameters:**\n```json\n";
    one.parameters ? append_parameters(text, *one.parameters) : void(text += "{}");
    text += "\n```\n";
  }
  return text +=
         "To call one of these tools, write exactly this format:\n**Tool Call:**\n```json\n"
         "{\"name\": \"tool_name\", \"arguments\": {\"key\": \"value\"}}\n```\n"
         "Do not invent tool call IDs or write tool outputs yourself.";
}

void refuse_other(const object_reader& body, const std::string& path) {
  const std::string type = path + ".type";
  body.fault().report(error_kind::invalid_argument, type,
                      type +
                          " must be function: other types are not supported, and are left out only if functions "
                          "remain and tool_choice does not require a call");
}

bool is_system_role(const chat_message& message) {
  return (message.role == "system" || message.role == "developer") && !message.raw;
}

}  // namespace

turn_form tool_form(const model_preset& preset) {
  const bool headed = preset.tool_template == "headings" || (preset.tool_template == "auto" && preset.headed_tools);
  return headed ? turn_form::headings : turn_form::names;
}

bool describes_tools(std::string_view text, std::string_view tools) {
  if (!text.starts_with(description_start) && !text.starts_with(headed_description_start)) return false;
  const auto document = json_document::parse(R"({"tools":)" + std::string(tools) + '}', known_json);
  if (!document) return false;
  first_fault fault;
  const object_reader body(document->root(), "", fault);
  const auto list = read_tool_list(body, true, config::limits::tools_max);
  if (fault.found()) return false;
  return text == description_of(list.functions, false) || text == description_of(list.functions, true) ||
         text == headed_description_of(list.functions);
}

void read_tools(const object_reader& body, const tool_reading& how, generation_request& out) {
  const turn_form form = how.form;
  const bool headed = form == turn_form::headings;
  const auto has_calls = [](const chat_message& m) { return m.calls || m.role == "tool"; };
  if (headed && std::ranges::any_of(out.messages, has_calls)) out.style.turns = form;
  const auto wish = read_choice(body);
  const bool several = body.boolean("parallel_tool_calls").value_or(true);
  if (body.fault().found() || wish.how == tool_wish::mode::none) return;  // then tools of any kind are harmless
  auto [tools, other, notes] = read_tool_list(body, how.namespaces, how.functions_max);
  if (body.fault().found()) return;
  const bool required = wish.how == tool_wish::mode::required;
  // An answer that could have called one of the others is not the answer that the client asked for.
  if (!other.empty() && (tools.empty() || (required && wish.allowed.empty()))) return refuse_other(body, other);
  out.tool_notes = std::move(notes);
  if (tools.empty()) {
    if (required) body.refuse("tool_choice", "needs tools");
    return;
  }
  for (const auto& name : wish.allowed)
    if (std::ranges::find(tools, name, &tool::name) == tools.end())
      return body.refuse("tool_choice",
                         "names the function " + name.substr(0, tool_name_bytes_max) + ", which is not in tools");
  const auto after_system = std::ranges::find_if_not(out.messages, is_system_role);
  out.messages.insert(after_system,
                      {"system", headed ? headed_description_of(tools) : description_of(tools, required), ""});
  out.style.turns = form;
  if (!wish.allowed.empty())
    std::erase_if(tools, [&](const tool& t) { return std::ranges::find(wish.allowed, t.name) == wish.allowed.end(); });

  const auto wanted = std::exchange(out.constraint, std::nullopt);
  if (wanted && wanted->what != text_constraint::kind::json_schema &&
      wanted->what != text_constraint::kind::json_object)
    return body.fault().report(error_kind::unsupported, wanted->field,
                               wanted->field + " cannot be combined with tools that may be called");
  text_constraint made;
  made.what = text_constraint::kind::calls;
  made.field = body.path_of("tools");
  for (const auto& one : tools) made.calls.functions.push_back({one.name, arguments_of(one)});
  if (several) made.calls.calls_max = calls_max;
  if (wanted && !required) made.calls.answer = answer_of(*wanted, tools);  // a required call is the whole answer
  if (!required && !wanted)
    for (const auto mark : call_marks()) made.marks.emplace_back(mark);
  out.constraint = std::move(made);
  std::vector<std::string> names;
  names.reserve(tools.size());
  for (auto& one : tools) names.push_back(std::move(one.name));
  std::ranges::sort(names);
  out.tool_names = std::make_shared<const std::vector<std::string>>(std::move(names));
  out.calls_at_once = required || wanted;
  if (out.calls_at_once) out.style.no_think_opening = headed && required ? headed_opening : call_opening;
}

std::string read_arguments(const object_reader& function, std::string_view name) {
  const auto text = function.text(name);
  if (!text || text->empty()) return "{}";
  const auto document = parse_with_large_integers(*text);
  if (!document || !document->root().is(json_kind::object)) function.refuse(name, "must be a JSON object as text");
  return std::string(*text);
}

std::vector<tool_call> read_called(const object_reader& message) {
  std::vector<tool_call> calls;
  const auto list = message.array("tool_calls");
  if (!list) return calls;
  for (const auto element : list->elements()) {
    const auto path = element_path(message.path_of("tool_calls"), calls.size());
    if (message.fault().found()) break;
    if (!element.is(json_kind::object)) {
      message.fault().report(error_kind::invalid_argument, path, path + " must be an object");
      break;
    }
    const object_reader call(element, path, message.fault());
    const auto function = call.object("function");
    if (!function) {
      call.refuse("function", "must be an object");
      break;
    }
    const auto name = function->text("name").value_or("");
    if (name.empty()) function->refuse("name", "must be a string");
    calls.push_back(
        {std::string(call.text("id").value_or("")), std::string(name), read_arguments(*function, "arguments")});
  }
  return calls;
}

}  // namespace skein::protocol
