#include "protocol/chat/tool_list.hpp"

#include <algorithm>
#include <utility>

#include "base/utf8.hpp"
#include "protocol/requests/metadata_fields.hpp"

namespace skein::protocol {
namespace {

constexpr std::string_view slash = "/";

bool is_tool_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  return !name.empty() && name.size() <= tool_name_bytes_max && std::ranges::all_of(name, fits);
}

std::string read_tool_name(const object_reader& of) {
  std::string name(of.text("name").value_or(""));
  if (!is_tool_name(name)) of.refuse("name", "must have 1 to 64 letters, digits, _, - or .");
  return name;
}

class list_reader {
 public:
  list_reader(const object_reader& body, bool namespaces, std::size_t functions_max)
      : body_(body), namespaces_(namespaces), functions_max_(functions_max) {}

  /// The elements of `tools` of the body or of a namespace, whose name is `space`.
  void read(const object_reader& of, std::string_view space) {
    const auto list = of.array("tools");
    if (!list) return;
    std::size_t index = 0;
    for (const auto element : list->elements()) {
      const auto path = element_path(of.path_of("tools"), index++);
      if (!element.is(json_kind::object))
        body_.fault().report(error_kind::invalid_argument, path, path + " must be an object");
      else
        read_element({element, path, body_.fault()}, path, space);
      if (body_.fault().found()) return;
    }
  }

  tool_list take() && {
    found_.notes.resize(utf8_prefix(found_.notes, metadata_value_bytes_max).size());
    return std::move(found_);
  }

 private:
  void read_element(const object_reader& element, const std::string& path, std::string_view space) {
    const auto type = element.text("type").value_or("");
    if (type.empty()) return element.refuse("type", "must be function");
    if (type == "function") return read_function(element, space);
    if (type == "namespace" && namespaces_ && space.empty()) return read_namespace(element);
    auto& notes = found_.notes;
    if (notes.empty()) found_.other = path;
    if (notes.size() > metadata_value_bytes_max) return;
    notes.append(notes.empty() ? "" : "; ").append(path).append(" is left out: tools of the type ");
    notes.append(utf8_prefix(type, tool_name_bytes_max)).append(" are not supported");
  }

  /// The description of the namespace precedes that of its first function.
  void read_namespace(const object_reader& element) {
    const std::string name = read_tool_name(element);
    if (body_.fault().found()) return;
    const std::size_t first = found_.functions.size();
    read(element, name);
    const auto about = element.text("description").value_or("");
    if (about.empty() || found_.functions.size() == first) return;
    auto& description = found_.functions[first].description;
    description = std::string(about) + (description.empty() ? "" : "\n") + description;
  }

  /// The Responses API has no member `function`.
  void read_function(const object_reader& element, std::string_view space) {
    if (found_.functions.size() >= functions_max_)
      return body_.refuse("tools", "must have at most " + std::to_string(functions_max_) + " functions");
    const auto function = element.object("function");
    const object_reader& of = function ? *function : element;
    tool one;
    one.name = qualified_name(space, read_tool_name(of));
    one.description = of.text("description").value_or("");
    one.strict = of.boolean("strict").value_or(false);
    if (const auto parameters = of.object("parameters")) {
      one.parameters = of.value("parameters");
      one.field = of.path_of("parameters");
      const auto type = one.parameters->member("type");
      if (type && type->text().value_or("object") != "object")
        parameters->refuse("type", "must be object: the arguments of a call are an object");
    }
    if (std::ranges::find(found_.functions, one.name, &tool::name) != found_.functions.end())
      body_.refuse("tools", "has the name " + one.name + " twice");
    found_.functions.push_back(std::move(one));
  }

  const object_reader& body_;
  const bool namespaces_;
  const std::size_t functions_max_;
  tool_list found_;
};

void add_names(json_value tools, std::string_view space, std::vector<std::string>& names) {
  if (!tools.is(json_kind::array)) return;
  for (const auto element : tools.elements()) {
    if (!element.is(json_kind::object)) continue;
    const auto type = element.member("type"), name = element.member("name");
    if (!name || name->text().value_or("").empty() || !type || !type->text()) continue;
    const auto inner = element.member("tools");
    if (*type->text() == "function") names.push_back(qualified_name(space, *name->text()));
    if (*type->text() == "namespace" && space.empty() && inner) add_names(*inner, *name->text(), names);
  }
}

}  // namespace

std::string qualified_name(std::string_view space, std::string_view name) {
  return std::string(space).append(space.empty() ? "" : slash).append(name);
}

name_parts parts_of(std::string_view qualified) {
  const auto at = qualified.find(slash);
  if (at == std::string_view::npos) return {"", qualified};
  return {qualified.substr(0, at), qualified.substr(at + slash.size())};
}

std::string name_in(const object_reader& object) {
  return qualified_name(object.text("namespace").value_or(""), object.text("name").value_or(""));
}

tool_list read_tool_list(const object_reader& body, bool namespaces, std::size_t functions_max) {
  list_reader reader(body, namespaces, functions_max);
  reader.read(body, "");
  return std::move(reader).take();
}

std::vector<std::string> names_in(json_value tools) {
  std::vector<std::string> names;
  add_names(tools, "", names);
  return names;
}

}  // namespace skein::protocol
