#include "protocol/responses_api/logged_constraint.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "protocol/json/json_writer.hpp"
#include "protocol/requests/shared_fields.hpp"

namespace skein::protocol {
namespace {

using constraint_kind = text_constraint::kind;

struct logged_kind {
  std::string_view name;
  constraint_kind what;
};
/// The names are stored in sessions.
constexpr std::array<logged_kind, 6> logged_kinds{{{"json_object", constraint_kind::json_object},
                                                   {"json_schema", constraint_kind::json_schema},
                                                   {"regex", constraint_kind::regex},
                                                   {"choices", constraint_kind::choices},
                                                   {"gbnf", constraint_kind::gbnf},
                                                   {"kbnf", constraint_kind::kbnf}}};

}  // namespace

std::string constraint_to_log(const object_reader& body) {
  generation_request only;
  read_constraint(body, only);
  if (!only.constraint) return {};
  const text_constraint& wanted = *only.constraint;
  std::string json;
  json_writer out(json);
  out.begin_object().key("kind").value(std::ranges::find(logged_kinds, wanted.what, &logged_kind::what)->name);
  out.key("text").value(wanted.text).key("field").value(wanted.field);
  if (!wanted.relaxed.empty()) out.key("relaxed").value(wanted.relaxed);
  out.end_object();
  return json;
}

void read_logged_constraint(const object_reader& response, generation_request& out) {
  const auto logged = response.object("constraint");
  if (!logged) return;
  const auto kind = std::ranges::find(logged_kinds, logged->text("kind").value_or(""), &logged_kind::name);
  if (kind == logged_kinds.end()) return logged->refuse("kind", "is not a kind of constraint");
  out.constraint = text_constraint{kind->what, std::string(logged->text("text").value_or("")),
                                   std::string(logged->text("field").value_or("")),
                                   std::string(logged->text("relaxed").value_or(""))};
}

}  // namespace skein::protocol
