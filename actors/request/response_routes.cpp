#include "actors/request/response_routes.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "actors/request/new_name.hpp"
#include "actors/request/response_call.hpp"
#include "actors/request/route.hpp"
#include "protocol/json_writer.hpp"
#include "protocol/response_id.hpp"

namespace skein::request::response_routes {
namespace {

using persistence::answer_body;
using persistence::message_in;
using persistence::return_address;

constexpr std::uint32_t items_max = 100, items_default = 20;

error unknown(const std::string& id) { return {error_kind::not_found, "there is no response '" + id + "'", ""}; }

error no_conversation(const std::string& id) {
  return {error_kind::not_found, "there is no conversation '" + id + "'", ""};
}

/// A refusal in words of this route: its clients know nothing of sessions.
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

struct page {
  std::uint32_t limit = items_default;
  bool ascending = false;
  std::string after;
};

result<page> page_of(const route_input& in) {
  page p;
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

struct item {
  std::string id;
  const persistence::message* said;
};

std::string item_list(const persistence::version_record& version, const page& p) {
  std::vector<item> items;
  std::size_t number = 0;
  const auto known = protocol::read_logged(logged_response_of(version));
  const bool instructed = known && !known->facts.instructions.value_or("").empty();
  for (const auto& message : version.messages) {
    if (instructed && &message == version.messages.data() && message.role == "system" &&
        message.content == known->facts.instructions)
      continue;  // what was instructed is no item
    items.push_back({protocol::item_id("msg_", version.request_key) + "_" + std::to_string(number++), &message});
  }
  if (!p.ascending) std::ranges::reverse(items);
  const auto behind = std::ranges::find(items, p.after, &item::id);
  if (behind != items.end()) items.erase(items.begin(), behind + 1);
  const bool more = items.size() > p.limit;
  if (more) items.resize(p.limit);

  std::string json;
  protocol::json_writer out(json);
  out.begin_object().key("object").value("list").key("data").begin_array();
  for (const auto& [id, said] : items) {
    const bool answer = said->role == "assistant";
    out.begin_object().key("id").value(id).key("type").value("message").key("status").value("completed");
    out.key("role").value(said->role).key("content").begin_array().begin_object();
    out.key("type").value(answer ? "output_text" : "input_text").key("text").value(said->content);
    if (answer) out.key("annotations").begin_array().end_array();
    out.end_object().end_array().end_object();
  }
  out.end_array();
  const auto id_or_null = [&](std::string_view name, const item* i) {
    out.key(name);
    i ? out.value(i->id) : out.null();
  };
  id_or_null("first_id", items.empty() ? nullptr : &items.front());
  id_or_null("last_id", items.empty() ? nullptr : &items.back());
  out.key("has_more").value(more).end_object();
  return json;
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
  q.tell = [wanted](answer_body& a) -> plain_answer {
    return {200, item_list(*std::get<persistence::session_description>(a).versions.front(), *wanted)};
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
  q.refuse = [id](const error& why) { return in_own_words(why, unknown(id)); };
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
