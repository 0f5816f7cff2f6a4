#include "actors/request/responses/response_items.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "actors/request/responses/response_call.hpp"
#include "protocol/json/json_writer.hpp"
#include "protocol/responses_api/response_id.hpp"
#include "protocol/responses_api/response_object.hpp"

namespace skein::request {
namespace {

using persistence::version_record;
using protocol::json_writer;
using protocol::response_status;

struct item {
  enum class kind : std::uint8_t { said, thought, answered };
  kind what = kind::said;
  std::string id;
  std::string turn;  ///< name from which ids of its turn are made
  std::string_view role, text;
  response_status status = response_status::completed;
};

/// The name from which ids of a turn are made: the response's id, or the turn's number if another route made the turn.
std::string name_of(const version_record& turn) {
  const bool response = protocol::conversation_of(turn.request_key).has_value();
  return response ? turn.request_key : "turn_v" + std::to_string(turn.id);
}

void add_said(const version_record& turn, std::vector<item>& items) {
  const std::string name = name_of(turn);
  auto add = [&, number = std::size_t{0}](std::string_view role, std::string_view text) mutable {
    std::string id = protocol::item_id("msg_", name) + '_' + std::to_string(number++);
    items.push_back({item::kind::said, std::move(id), name, role, text});
  };
  const auto known = protocol::read_logged(logged_response_of(turn));
  const bool instructed = known && !known->facts.instructions.value_or("").empty();
  for (const auto& message : turn.messages) {
    if (instructed && &message == turn.messages.data() && message.role == "system" &&
        message.content == known->facts.instructions)
      continue;  // instructions are not an item
    add(message.role, message.content);
  }
  if (turn.messages.empty() && turn.prompt_bytes > 0)  // raw text
    add("user", std::string_view(turn.text).substr(0, turn.prompt_bytes));
}

void add_answered(const version_record& turn, std::vector<item>& items) {
  const std::string name = name_of(turn);
  const auto status = protocol::outcome_of(turn.finish_reason, turn.stop_reason, turn.unfinished).status;
  if (!turn.reasoning.empty())
    items.push_back({item::kind::thought, protocol::item_id("rs_", name), name, "", turn.reasoning});
  items.push_back({item::kind::answered, protocol::item_id("msg_", name), name, "", turn.answer, status});
}

std::vector<item> all_of(std::span<const persistence::shared_version> turns) {
  std::vector<item> items;
  for (const auto& turn : turns) {
    add_said(*turn, items);
    add_answered(*turn, items);
  }
  return items;
}

void write_item(json_writer& out, const item& i) {
  if (i.what == item::kind::thought) return protocol::write_reasoning_item(out, i.turn, i.text, i.status);
  if (i.what == item::kind::answered) return protocol::write_message_item(out, i.turn, i.text, i.status);
  const bool answer = i.role == "assistant";
  out.begin_object().key("id").value(i.id).key("type").value("message").key("status").value("completed");
  out.key("role").value(i.role).key("content").begin_array().begin_object();
  out.key("type").value(answer ? "output_text" : "input_text").key("text").value(i.text);
  if (answer) out.key("annotations").begin_array().end_array();
  out.end_object().end_array().end_object();
}

/// Writes an item unless `json` would be longer than `bytes_max`.
bool write_within(std::size_t bytes_max, std::string& json, json_writer& out, const item& i) {
  const std::size_t before = json.size();
  if (protocol::json_bytes(i.text) <= bytes_max) write_item(out, i);
  const bool fits = json.size() > before && json.size() <= bytes_max;
  if (!fits) json.resize(before);
  return fits;
}

error too_long(const item& i, std::size_t bytes_max) {
  return {error_kind::too_large,
          "the item '" + i.id + "' alone is longer than limits.response_bytes_max (" + std::to_string(bytes_max) +
              " bytes)",
          ""};
}

result<std::string> list_of(std::vector<item> items, const item_page& page) {
  if (!page.ascending) std::ranges::reverse(items);
  if (!page.after.empty()) {
    const auto behind = std::ranges::find(items, page.after, &item::id);
    if (behind == items.end())
      return error{error_kind::invalid_argument, "after must be the id of an item in this list", "after"};
    items.erase(items.begin(), behind + 1);
  }
  std::string json;
  json_writer out(json);
  out.begin_object().key("object").value("list").key("data").begin_array();
  constexpr std::size_t tail_bytes = 64;  // and two ids
  std::size_t told = 0;
  for (; told < items.size() && told < page.limit; ++told) {
    const std::size_t tail = tail_bytes + items.front().id.size() + items[told].id.size();
    if (!write_within(page.bytes_max - std::min(page.bytes_max, tail), json, out, items[told])) break;
  }
  if (told == 0 && !items.empty()) return too_long(items.front(), page.bytes_max);
  out.end_array();
  const auto id_or_null = [&](std::string_view name, const item* i) {
    out.key(name);
    i ? out.value(i->id) : out.null();
  };
  id_or_null("first_id", told == 0 ? nullptr : &items.front());
  id_or_null("last_id", told == 0 ? nullptr : &items[told - 1]);
  out.key("has_more").value(told < items.size()).end_object();
  return json;
}

}  // namespace

error answer_too_long(std::size_t bytes, std::size_t bytes_max) {
  return {error_kind::too_large,
          "the answer has " + std::to_string(bytes) + " bytes, more than limits.response_bytes_max (" +
              std::to_string(bytes_max) + " bytes)",
          ""};
}

result<std::string> input_item_list(const version_record& turn, const item_page& page) {
  std::vector<item> items;
  add_said(turn, items);
  return list_of(std::move(items), page);
}

result<std::string> conversation_item_list(std::span<const persistence::shared_version> turns, const item_page& page) {
  return list_of(all_of(turns), page);
}

std::optional<std::string> conversation_item(std::span<const persistence::shared_version> turns,
                                             const std::string& id) {
  const auto items = all_of(turns);
  const auto found = std::ranges::find(items, id, &item::id);
  if (found == items.end()) return std::nullopt;
  std::string json;
  json_writer out(json);
  write_item(out, *found);
  return json;
}

}  // namespace skein::request
