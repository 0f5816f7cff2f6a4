#include "actors/request/sessions/session_routes.hpp"

#include <charconv>
#include <utility>

#include "actors/request/call/route.hpp"
#include "actors/request/sessions/session_json.hpp"
#include "protocol/json/json_writer.hpp"
#include "protocol/server/session_request.hpp"

namespace skein::request::session_routes {
namespace {

using persistence::answer_body;
using persistence::message_in;
using persistence::return_address;
using persistence::session_key;

constexpr std::uint32_t page_max = 1000, page_default = 20;

error wrong(const std::string& field, const std::string& complaint) {
  return {error_kind::invalid_argument, field + ' ' + complaint, field};
}

result<session_key> key_of(const route_input& in, const tenant_id& whose) {
  if (auto ok = protocol::check_session_id(in.path.front(), "session_id"); !ok) return ok.error();
  return session_key{whose, in.path.front()};
}

result<std::optional<std::uint32_t>> number_field(const route_input& in, const std::string& name, std::uint32_t min,
                                                  std::uint32_t max) {
  const auto text = query_field(in.query, name);
  if (!text) return std::optional<std::uint32_t>();
  std::uint32_t number = 0;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (code != std::errc() || end != text->data() + text->size() || number < min || number > max)
    return wrong(name, "must be a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  return std::optional(number);
}

/// Nothing if it is neither true nor false. (A result<bool> would convert to whether it has a value.)
std::optional<bool> flag_field(const route_input& in, const std::string& name, bool standard = false) {
  const auto text = query_field(in.query, name);
  if (!text) return standard;
  if (text->empty() || *text == "true" || *text == "1") return true;
  if (*text == "false" || *text == "0") return false;
  return std::nullopt;
}

error no_flag(const std::string& name) { return wrong(name, "must be true or false"); }

/// The content of an answer that can have only one type.
template <typename Body>
const Body& as(const answer_body& answer) {
  return std::get<Body>(answer);
}

plain_answer tell_session(answer_body& answer) { return {200, session_body(as<persistence::done>(answer).session)}; }

plain_answer in_words(unsigned status, std::string_view word, std::string_view message) {
  plain_answer told;
  told.status = status;
  protocol::json_writer(told.body).begin_object().key("status").value(word).key("message").value(message).end_object();
  return told;
}

}  // namespace

session_question list(const route_input& in) {
  const auto ask = [in](const std::string&, return_address reply, const tenant_id& whose) -> result<message_in> {
    const auto limit = number_field(in, "limit", 1, page_max);
    if (!limit) return limit.error();
    persistence::list_sessions q;
    q.tenant = whose;
    q.reply = reply;
    q.after = query_field(in.query, "after").value_or("");
    q.bytes_max = in.limits.response_bytes_max;
    q.count = limit->value_or(page_default);
    return q;
  };
  return {ask, [bytes_max = in.limits.response_bytes_max](answer_body& a) -> plain_answer {
            return {200, session_list_body(as<persistence::session_list>(a), bytes_max)};
          }};
}

session_question describe(const route_input& in) {
  const auto transcript = flag_field(in, "transcript"), tree = flag_field(in, "tree");
  const auto version = number_field(in, "version", 0, 0xffffffff), after = number_field(in, "after", 0, 0xffffffff);
  const auto ask = [=](const std::string&, return_address reply, const tenant_id& whose) -> result<message_in> {
    const auto key = key_of(in, whose);
    if (!key) return key.error();
    if (!transcript) return no_flag("transcript");
    if (!tree) return no_flag("tree");
    if (!version) return version.error();
    if (*transcript && *tree) return wrong("tree", "cannot be combined with transcript");
    if (*version && !*transcript) return wrong("version", "needs transcript=true");
    if (!after) return after.error();
    if (*after && !*tree) return wrong("after", "needs tree=true");
    return persistence::describe_session{reply, *key, *transcript, *version};
  };
  return {ask, [=, bytes_max = in.limits.response_bytes_max](answer_body& a) -> result<plain_answer> {
            auto body = session_details_body(as<persistence::session_description>(a),
                                             {*transcript, *tree, after->value_or(0), bytes_max});
            if (!body) return body.error();
            return plain_answer{200, std::move(*body)};
          }};
}

session_question versions(const route_input& in) {
  const auto after = number_field(in, "after", 0, 0xffffffff);
  const auto ask = [in, after](const std::string&, return_address reply, const tenant_id& whose) -> result<message_in> {
    const auto key = key_of(in, whose);
    if (!key) return key.error();
    if (!after) return after.error();
    return persistence::describe_session{reply, *key, false, std::nullopt};
  };
  return {ask, [after, bytes_max = in.limits.response_bytes_max](answer_body& a) -> plain_answer {
            const auto& versions = as<persistence::session_description>(a).versions;
            return {200, version_list_body(versions, after->value_or(0), bytes_max)};
          }};
}

session_question label(const route_input& in) {
  const auto ask = [in](const std::string& body, return_address reply, const tenant_id& whose) -> result<message_in> {
    const auto key = key_of(in, whose);
    if (!key) return key.error();
    auto request = protocol::parse_labels(body, in.limits);
    if (!request) return request.error();
    return persistence::label_session{reply, *key, std::move(request->title), std::move(request->metadata), false};
  };
  return {ask, tell_session};
}

session_question fork(const route_input& in) {
  const auto ask = [in](const std::string& body, return_address reply, const tenant_id& whose) -> result<message_in> {
    const auto key = key_of(in, whose);
    if (!key) return key.error();
    auto request = protocol::parse_fork(body, in.limits);
    if (!request) return request.error();
    return persistence::fork_session{reply, *key, {whose, std::move(request->to)}, request->version};
  };
  return {ask, tell_session};
}

session_question rollback(const route_input& in) {
  const auto ask = [in](const std::string& body, return_address reply, const tenant_id& whose) -> result<message_in> {
    const auto key = key_of(in, whose);
    if (!key) return key.error();
    const auto version = protocol::parse_rollback(body, in.limits);
    if (!version) return version.error();
    return persistence::rollback_session{reply, *key, *version};
  };
  return {ask, tell_session};
}

session_question export_file(const route_input& in) {
  const auto ask = [in](const std::string&, return_address reply, const tenant_id& whose) -> result<message_in> {
    const auto key = key_of(in, whose);
    if (!key) return key.error();
    const auto with_state = flag_field(in, "state", true);
    if (!with_state) return no_flag("state");
    const auto version = number_field(in, "version", 0, 0xffffffff);
    if (!version) return version.error();
    return persistence::export_session{reply, *key, *with_state, *version};
  };
  return {ask, [](answer_body& a) -> plain_answer {
            return {200, std::move(std::get<persistence::session_bytes>(a).file), "application/octet-stream"};
          }};
}

session_question import_file(const route_input& in) {
  const auto ask = [in](std::string body, return_address reply, const tenant_id& whose) -> result<message_in> {
    const auto key = key_of(in, whose);
    if (!key) return key.error();
    const auto replace = flag_field(in, "replace");
    if (!replace) return no_flag("replace");
    if (body.empty()) return error{error_kind::invalid_argument, "the body must be an exported session", ""};
    return persistence::import_session{reply, *key, std::move(body), *replace};
  };
  session_question q{ask, tell_session};
  q.takes_file = true;
  return q;
}

session_question remove(const route_input& in) {
  const auto ask = [in](const std::string&, return_address reply, const tenant_id& whose) -> result<message_in> {
    const auto key = key_of(in, whose);
    if (!key) return key.error();
    const auto prefix = flag_field(in, "prefix");
    if (!prefix) return no_flag("prefix");
    return persistence::remove_session{reply, *key, *prefix};
  };
  return {ask, [id = in.path.front()](answer_body& a) -> plain_answer {
            plain_answer told;
            const auto count = as<persistence::removed>(a).sessions;
            if (count == 0) told.status = 404;
            protocol::json_writer out(told.body);
            out.begin_object().key("id").value(id).key("object").value("session.deleted");
            out.key("deleted").value(count > 0).key("sessions").value(count).end_object();
            return told;
          }};
}

session_question state_status(const route_input& in) {
  const auto ask = [in](const std::string& body, return_address reply, const tenant_id& whose) -> result<message_in> {
    if (auto ok = protocol::parse_nothing(body, in.limits); !ok) return ok.error();
    return persistence::tiers_status{reply, whose};
  };
  return {ask, [](answer_body& a) -> plain_answer {
            return {200, state_status_body(as<persistence::tiers_report>(a))};
          }};
}

session_question state_delete(const route_input& in) {
  const auto asked = std::make_shared<protocol::state_delete_request>();
  const auto ask = [in, asked](const std::string& body, return_address reply,
                               const tenant_id& whose) -> result<message_in> {
    auto request = protocol::parse_state_delete(body, in.limits);
    if (!request) return request.error();
    if (auto ok = protocol::check_session_id(request->session_id, "session_id"); !ok) return ok.error();
    *asked = std::move(*request);
    return persistence::remove_session{reply, {whose, asked->session_id}, asked->with_prefix};
  };
  const auto not_found = [asked] {
    return in_words(404, "not_found", "Session " + asked->session_id + " not found in database");
  };
  const auto deleted = [asked] {
    return in_words(200, "success", "Session " + asked->session_id + " deleted successfully");
  };
  session_question q;
  q.ask = ask;
  q.tell = [=](answer_body& a) {
    return as<persistence::removed>(a).sessions > 0 || asked->with_prefix ? deleted() : not_found();
  };
  q.refuse = [=](const error& why) -> std::optional<plain_answer> {
    if (why.kind != error_kind::not_found) return std::nullopt;
    return asked->with_prefix ? deleted() : not_found();
  };
  return q;
}

}  // namespace skein::request::session_routes
