#include <algorithm>
#include <array>
#include <utility>

#include "protocol/json/json_copy.hpp"
#include "protocol/requests/shared_fields.hpp"

namespace skein::protocol {
namespace {

using constraint_kind = text_constraint::kind;

/// Whether a value means "not requested": "", [] or false; null counts as absent anyway.
bool is_nothing(json_value value) {
  return value.is(json_kind::null) || value.is_empty_array() || value.text() == "" || value.boolean() == false;
}

/// Finds the constraint of a request, under the names that other servers give it. A second one is refused.
class constraint_reader {
 public:
  constraint_reader(first_fault& fault, generation_request& out) : fault_(fault), out_(out) {}

  void take(constraint_kind what, std::string text, std::string field) {
    if (out_.constraint)
      return fault_.report(error_kind::invalid_argument, field,
                           field + " cannot be combined with " + out_.constraint->field);
    out_.constraint = text_constraint{what, std::move(text), std::move(field)};
  }

  /// A member whose value is the constraint itself.
  void take_member(const object_reader& in, std::string_view name, constraint_kind what) {
    const auto value = in.value(name);
    if (!value || is_nothing(*value)) return;
    const std::string field = in.path_of(name);
    switch (what) {
      case constraint_kind::json_object:
        if (in.boolean(name)) take(what, "", field);
        return;
      case constraint_kind::json_schema: return take_schema(in, name);
      case constraint_kind::regex:
      case constraint_kind::gbnf:
      case constraint_kind::kbnf:
        if (const auto text = in.text(name)) take(what, std::string(*text), field);
        return;
      case constraint_kind::choices: return take_choices(in, name);
      case constraint_kind::calls: return;  // from tools alone
    }
  }

  /// A schema: an object, true, or its text. `strict` false: if it is not supported, any JSON matches.
  void take_schema(const object_reader& in, std::string_view name, bool strict = true) {
    const auto value = in.value(name);
    const std::string field = in.path_of(name);
    if (!value || (!value->is(json_kind::object) && !value->is(json_kind::boolean) && !value->text()))
      return in.refuse(name, "must be a JSON Schema");
    std::string text;
    if (const auto given = value->text()) {
      text = *given;
    } else {
      json_writer to(text);
      copy_json(to, *value);
    }
    take(constraint_kind::json_schema, std::move(text), field);
    if (!strict && out_.constraint) out_.constraint->relaxed = "true";
  }

 private:
  void take_choices(const object_reader& in, std::string_view name) {
    const auto list = in.array(name);
    if (!list) return;
    std::string text;
    json_writer to(text);
    to.begin_array();
    for (const auto element : list->elements()) {
      if (!element.text()) return in.refuse(name, "must be a list of strings");
      to.value(*element.text());
    }
    to.end_array();
    take(constraint_kind::choices, std::move(text), in.path_of(name));
  }

  first_fault& fault_;
  generation_request& out_;
};

struct named_kind {
  std::string_view name;
  constraint_kind what;
};
constexpr std::array<named_kind, 10> constraint_members{{{"json_schema", constraint_kind::json_schema},
                                                         {"grammar", constraint_kind::gbnf},
                                                         {"ebnf", constraint_kind::gbnf},
                                                         {"bnf_schema", constraint_kind::kbnf},
                                                         {"regex", constraint_kind::regex},
                                                         {"guided_json", constraint_kind::json_schema},
                                                         {"guided_regex", constraint_kind::regex},
                                                         {"guided_choice", constraint_kind::choices},
                                                         {"guided_grammar", constraint_kind::gbnf},
                                                         {"guided_json_object", constraint_kind::json_object}}};
constexpr std::array<named_kind, 5> structured_members{{{"json", constraint_kind::json_schema},
                                                        {"regex", constraint_kind::regex},
                                                        {"choice", constraint_kind::choices},
                                                        {"grammar", constraint_kind::gbnf},
                                                        {"json_object", constraint_kind::json_object}}};

/// The forms of response_format: an object with a type. In OpenAI's, the schema is in its member json_schema.
void read_response_format(const object_reader& body, constraint_reader& found) {
  const auto format = body.object("response_format");
  if (!format) return;
  const auto type = format->text("type").value_or("");
  if (type.empty() || type == "text") return;
  const std::string field = body.path_of("response_format");
  if (type == "json_object") {
    format->value("schema") ? found.take_schema(*format, "schema")
                            : found.take(constraint_kind::json_object, "", field);
  } else if (type == "json_schema") {
    const auto holder = format->object("json_schema");
    if (!holder) return format->refuse("json_schema", "must be an object with a schema");
    (void)holder->text("name");
    found.take_schema(*holder, "schema", holder->boolean("strict").value_or(true));
  } else if (type == "grammar") {
    format->value("grammar") ? found.take_member(*format, "grammar", constraint_kind::gbnf)
                             : format->refuse("grammar", "must be a string");
  } else if (type == "regex") {
    format->value("pattern") ? found.take_member(*format, "pattern", constraint_kind::regex)
                             : format->refuse("pattern", "must be a string");
  } else {
    format->refuse("type", "must be text, json_object, json_schema, grammar or regex");
  }
}

/// Ollama's format: "json" or a schema.
void read_format(const object_reader& body, constraint_reader& found) {
  const auto format = body.value("format");
  if (!format || is_nothing(*format)) return;
  if (format->is(json_kind::object)) return found.take_schema(body, "format");
  if (format->text() == "json") return found.take(constraint_kind::json_object, "", body.path_of("format"));
  body.refuse("format", "must be \"json\" or a JSON Schema");
}

/// vLLM's structured_outputs; has no effect if all its members are null or empty.
void read_structured_outputs(const object_reader& body, constraint_reader& found) {
  const auto wanted = body.value("structured_outputs");
  if (!wanted || is_nothing(*wanted)) return;
  const auto object = body.object("structured_outputs");
  if (!object) return;
  for (const auto& [name, what] : structured_members) found.take_member(*object, name, what);
  for (const auto [name, value] : wanted->members()) {
    const auto is_name = [&](const named_kind& known) { return known.name == name; };
    if (!is_nothing(value) && std::ranges::none_of(structured_members, is_name)) object->refuse_unsupported(name);
  }
}

/// vLLM's fields, and those that other servers name after them. guided_decoding_backend only chooses an implementation.
constexpr std::string_view guided = "guided_", extensions = "nvext";

bool is_honoured(std::string_view name) {
  return name == "guided_decoding_backend" ||
         std::ranges::find(constraint_members, name, &named_kind::name) != constraint_members.end();
}

void refuse_given(const object_reader& in, std::string_view name) {
  if (const auto value = in.value(name); value && !is_nothing(*value)) in.refuse_unsupported(name);
}

/// Fields that ask for constrained output and have no equivalent here. `nvext` is NVIDIA's object of extensions.
void refuse_other_constraints(const object_reader& body) {
  refuse_given(body, "structural_tag");
  for (const auto name : body.names_with(guided))
    if (!is_honoured(name)) refuse_given(body, name);
  const auto more = body.value(extensions);
  if (!more || !more->is(json_kind::object)) return;
  const object_reader inside = *body.object(extensions);
  for (const auto name : inside.names_with(guided)) refuse_given(inside, name);
}

}  // namespace

void read_constraint(const object_reader& body, generation_request& out) {
  constraint_reader found(body.fault(), out);
  read_response_format(body, found);
  read_structured_outputs(body, found);
  read_format(body, found);
  for (const auto& [name, what] : constraint_members) found.take_member(body, name, what);
  refuse_other_constraints(body);
}

void read_text_format(const object_reader& body, generation_request& out) {
  const auto text = body.object("text");
  const auto format = text ? text->object("format") : std::nullopt;
  const auto type = format ? format->text("type").value_or("text") : "text";
  if (type == "text") return;
  constraint_reader found(body.fault(), out);
  if (type == "json_object") {
    found.take(constraint_kind::json_object, "", text->path_of("format"));
  } else if (type == "json_schema") {
    found.take_schema(*format, "schema", format->boolean("strict").value_or(true));
  } else {
    format->refuse("type", "must be text, json_object or json_schema");
  }
}

}  // namespace skein::protocol
