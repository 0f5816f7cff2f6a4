#include "actors/request/responses/response_routes.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "actors/request/call/new_name.hpp"
#include "actors/request/call/route.hpp"
#include "actors/request/responses/response_items.hpp"
#include "protocol/json/json_writer.hpp"
#include "protocol/responses_api/response_id.hpp"
#include "protocol/responses_api/response_object.hpp"
#include "protocol/responses_api/responses_request.hpp"

namespace skein::request::response_routes {
namespace {

using persistence::answer_body;
using persistence::message_in;
using persistence::return_address;

constexpr std::uint32_t items_max = 100;

error unknown(const std::string& id) { return {error_kind::not_found, "there is no response '" + id + "'", ""}; }

error no_conversation(const std::string& id) {
  return {error_kind::not_found, "there is no conversation '" + id + "'", ""};
}

/// A refusal in the terms of this route, whose clients know no sessions.
std::optional<plain_answer> in_own_words(const error& why, const error& unknown) {
  if (why.kind != error_kind::not_found) return std::nullopt;
  const auto no = protocol::to_http(unknown);
  return plain_answer{no.status, no.body};
}

std::string deleted(const std::string& id, std::string_view object) {
  std::string json;
  protocol::json_writer out(json);
  out.begin_object().key("id").value(id).key("object").value(object).key("deleted").value(true).end_object();
  return json;
}

result<item_page> page_of(const route_input& in) {
  item_page p;
  p.bytes_max = in.limits.response_bytes_max;
  p.after = query_field(in.query, "after").value_or("");
  const std::string order = query_field(in.query, "order").value_or("desc");
  if (order != "asc" && order != "desc")
    return error{error_kind::invalid_argument, "order must be asc or desc", "order"};
  p.ascending = order == "asc";
  if (const auto text = query_field(in.query, "limit")) {
    const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), p.limit);
    if (code != std::errc() || end != text->data() + text->size() || p.limit < 1 || p.limit > items_max)
      return error{error_kind::invalid_argument, "limit must be a whole number from 1 to 100", "limit"};
  }
  return p;
}

plain_answer told(result<std::string> body) {
  if (body) return {200, std::move(*body)};
  const auto no = protocol::to_http(body.error());
  return {no.status, no.body};
}

/// Asks for all turns of a conversation, with their texts.
result<message_in> ask_for_turns(const std::string& id, return_address reply, const tenant_id& whose) {
  if (!protocol::is_conversation_id(id)) return no_conversation(id);
  return persistence::describe_session{reply, {whose, id}, true, std::nullopt};
}

plain_answer tell_conversation(const persistence::session_record& session) {
  return {200, protocol::conversation_object(session.key.id, session.created_ms / 1000, session.metadata)};
}
plain_answer tell_done(answer_body& a) { return tell_conversation(std::get<persistence::done>(a).session); }

}  // namespace

session_question input_items(const route_input& in) {
  const std::string id = in.path.front();
  const auto wanted = page_of(in);
  session_question q;
  q.ask = [id, wanted](const std::string&, return_address reply, const tenant_id& whose) -> result<message_in> {
    const auto conversation = protocol::conversation_of(id);
    if (!conversation) return unknown(id);
    if (!wanted) return wanted.error();
    persistence::describe_session ask;
    ask.reply = reply;
    ask.session = {whose, *conversation};
    ask.turn = id;
    return ask;
  };
  q.tell = [wanted](answer_body& a) {
    return told(input_item_list(*std::get<persistence::session_description>(a).versions.front(), *wanted));
  };
  q.refuse = [id](const error& why) { return in_own_words(why, unknown(id)); };
  return q;
}

session_question remove(const route_input& in) {
  const std::string id = in.path.front();
  session_question q;
  q.ask = [id](const std::string&, return_address reply, const tenant_id& whose) -> result<message_in> {
    const auto conversation = protocol::conversation_of(id);
    if (!conversation) return unknown(id);
    persistence::remove_session ask;
    ask.reply = reply;
    ask.session = {whose, *conversation};
    ask.turn = id;
    return ask;
  };
  q.tell = [id](answer_body&) -> plain_answer { return {200, deleted(id, "response")}; };
  q.refuse = [id](const error& why) -> std::optional<plain_answer> {
    if (why.kind != error_kind::conflict) return in_own_words(why, unknown(id));
    const auto busy = protocol::to_http(
        error{why.kind, "session busy: a response of its conversation is running; cancel it or wait until it ends",
              why.field});
    return plain_answer{busy.status, busy.body};
  };
  return q;
}

session_question make_conversation(const route_input& in) {
  session_question q;
  q.ask = [limits = in.limits](const std::string& body, return_address reply,
                               const tenant_id& whose) -> result<message_in> {
    auto metadata = protocol::parse_conversation(body, limits);
    if (!metadata) return metadata.error();
    return persistence::label_session{
        reply, {whose, protocol::conversation_id(new_name())}, std::nullopt, std::move(*metadata), true};
  };
  q.tell = tell_done;
  return q;
}

session_question conversation(const route_input& in) {
  session_question q;
  q.ask = [id = in.path.front()](const std::string&, return_address reply,
                                 const tenant_id& whose) -> result<message_in> {
    if (!protocol::is_conversation_id(id)) return no_conversation(id);
    persistence::describe_session ask;
    ask.reply = reply;
    ask.session = {whose, id};
    return ask;
  };
  q.tell = [](answer_body& a) -> plain_answer {
    return tell_conversation(std::get<persistence::session_description>(a).session.record);
  };
  q.refuse = [id = in.path.front()](const error& why) { return in_own_words(why, no_conversation(id)); };
  return q;
}

session_question conversation_items(const route_input& in) {
  session_question q;
  q.ask = [id = in.path.front(), wanted = page_of(in)](const std::string&, return_address reply,
                                                       const tenant_id& whose) -> result<message_in> {
    if (!wanted) return wanted.error();
    return ask_for_turns(id, reply, whose);
  };
  q.tell = [wanted = page_of(in)](answer_body& a) {
    return told(conversation_item_list(std::get<persistence::session_description>(a).versions, *wanted));
  };
  q.refuse = [id = in.path.front()](const error& why) { return in_own_words(why, no_conversation(id)); };
  return q;
}

session_question conversation_item(const route_input& in) {
  session_question q;
  q.ask = [id = in.path.front()](const std::string&, return_address reply, const tenant_id& whose) {
    return ask_for_turns(id, reply, whose);
  };
  q.tell = [id = in.path.front(), item = in.path.back(), bytes_max = in.limits.response_bytes_max](answer_body& a) {
    auto found = request::conversation_item(std::get<persistence::session_description>(a).versions, item);
    if (found && found->size() > bytes_max) return told(answer_too_long(found->size(), bytes_max));
    if (found) return told(std::move(*found));
    return told(error{error_kind::not_found, "there is no item '" + item + "' in conversation '" + id + "'", ""});
  };
  q.refuse = [id = in.path.front()](const error& why) { return in_own_words(why, no_conversation(id)); };
  return q;
}

session_question change_conversation(const route_input& in) {
  session_question q;
  q.ask = [id = in.path.front(), limits = in.limits](const std::string& body, return_address reply,
                                                     const tenant_id& whose) -> result<message_in> {
    if (!protocol::is_conversation_id(id)) return no_conversation(id);
    auto metadata = protocol::parse_conversation(body, limits);
    if (!metadata) return metadata.error();
    return persistence::label_session{reply, {whose, id}, std::nullopt, std::move(*metadata), false};
  };
  q.tell = tell_done;
  q.refuse = [id = in.path.front()](const error& why) { return in_own_words(why, no_conversation(id)); };
  return q;
}

session_question remove_conversation(const route_input& in) {
  const std::string id = in.path.front();
  session_question q;
  q.ask = [id](const std::string&, return_address reply, const tenant_id& whose) -> result<message_in> {
    if (!protocol::is_conversation_id(id)) return no_conversation(id);
    persistence::remove_session ask;
    ask.reply = reply;
    ask.session = {whose, id};
    return ask;
  };
  q.tell = [id](answer_body&) -> plain_answer { return {200, deleted(id, "conversation.deleted")}; };
  q.refuse = [id](const error& why) { return in_own_words(why, no_conversation(id)); };
  return q;
}

}  // namespace skein::request::response_routes
