#include "actors/request/responses/response_items.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "actors/request/generation/replay.hpp"
#include "protocol/chat/call_splitter.hpp"
#include "protocol/chat/tool_fields.hpp"
#include "protocol/json/json_writer.hpp"
#include "protocol/responses_api/response_id.hpp"
#include "protocol/responses_api/response_object.hpp"

namespace skein::request {
namespace {

using persistence::version_record;
using protocol::json_writer;
using protocol::response_status;

struct item {
  enum class kind : std::uint8_t { said, result, thought, answered, called };
  kind what = kind::said;
  std::string id;
  std::string turn;  ///< name from which ids of its turn are made
  std::string_view role, text;
  response_status status = response_status::completed;
  std::string call_id = {};                     ///< of a result
  const protocol::tool_call* call = nullptr;    ///< of a call
  std::shared_ptr<const void> owner = nullptr;  ///< of text and call, if not the turn
  bool as_summary = false;                      ///< of a thought
};

/// The response of a turn; nothing if another route made it.
std::optional<protocol::known_response> response_of(const version_record& turn) {
  auto known = protocol::read_logged(logged_response_of(turn));
  return known ? std::optional(std::move(*known)) : std::nullopt;
}

/// The name from which ids of a turn are made: the response's id, or the turn's number if another route made the turn.
std::string name_of(const version_record& turn) {
  const bool response = protocol::conversation_of(turn.request_key).has_value();
  return response ? turn.request_key : "turn_v" + std::to_string(turn.id);
}

/// The messages of a turn that the server added: the instructions and the description of the tools, which are not
/// items.
struct added_messages {
  bool instructions = false;  ///< the first message
  std::optional<std::size_t> description = {};
};

/// The description is the last of the system messages at the beginning. Only that one is compared, because its text is
/// made from all tools for the comparison.
added_messages added_to(const version_record& turn, const protocol::response_facts& facts) {
  added_messages added;
  const auto& all = turn.messages;
  const auto is_system = [](const storage::message& m) { return m.role == "system" || m.role == "developer"; };
  const auto leading = static_cast<std::size_t>(std::ranges::find_if_not(all, is_system) - all.begin());
  if (leading == 0) return added;
  added.instructions = all.front().role == "system" && !facts.instructions.value_or("").empty() &&
                       all.front().content == facts.instructions;
  if (facts.tools.empty() || facts.tool_choice == "\"none\"" || all[leading - 1].role != "system") return added;
  if (protocol::describes_tools(all[leading - 1].content, facts.tools)) added.description = leading - 1;
  return added;
}

/// A text of the client with calls, taken apart.
struct split_text {
  std::string content;
  std::vector<protocol::tool_call> calls;
};
using split_ref = std::shared_ptr<const split_text>;

/// The assistant's messages that have calls, by message; empty if their number is not that of the calls of the input.
std::vector<split_ref> split_messages(const version_record& turn, const protocol::response_facts& facts) {
  if (facts.calls.empty()) return {};
  std::vector<std::string> names;
  names.reserve(facts.calls.size());
  for (const auto& call : facts.calls) names.push_back(call.name);
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  const auto shared = std::make_shared<const std::vector<std::string>>(std::move(names));
  std::vector<split_ref> all(turn.messages.size());
  std::size_t found = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (turn.messages[i].role != "assistant") continue;
    split_text split;
    split.calls = protocol::split_calls(turn.messages[i].content, shared, split.content);
    if (split.calls.empty()) continue;
    if (split.calls.size() > facts.calls.size() - found) return {};
    for (auto& call : split.calls) call.id = facts.calls[found++].id;
    all[i] = std::make_shared<const split_text>(std::move(split));
  }
  return found == facts.calls.size() ? all : std::vector<split_ref>();
}

/// The client's items, in the order of the input.
class said_items {
 public:
  /// `known`: the response of the turn, or null.
  said_items(const version_record& turn, const protocol::known_response* known, std::vector<item>& to)
      : turn_(turn), known_(known), name_(name_of(turn)), to_(to) {}

  void add_all() {
    const auto outputs = static_cast<std::size_t>(std::ranges::count(turn_.messages, "tool", &storage::message::role));
    // In records of older versions the calls have no ids.
    const bool named = known_ && known_->facts.answered_calls.size() == outputs;
    const auto split = known_ ? split_messages(turn_, known_->facts) : std::vector<split_ref>();
    const auto added = known_ ? added_to(turn_, known_->facts) : added_messages();
    for (std::size_t i = 0; i < turn_.messages.size(); ++i) {
      const auto& message = turn_.messages[i];
      if ((i == 0 && added.instructions) || i == added.description) continue;
      if (!split.empty() && split[i])
        add_calls(split[i]);
      else if (named && message.role == "tool")
        add_result(message.content);
      else
        add_message(message.role, message.content);
    }
    if (turn_.messages.empty() && turn_.prompt_bytes > 0)  // raw text
      add_message("user", std::string_view(turn_.text).substr(0, turn_.prompt_bytes));
  }

 private:
  item& add(item::kind what, std::string_view prefix, std::size_t number, std::string_view text) {
    std::string id = protocol::item_id(prefix, name_) + '_' + std::to_string(number);
    to_.push_back({what, std::move(id), name_, "", text});
    return to_.back();
  }
  void add_message(std::string_view role, std::string_view text) {
    add(item::kind::said, "msg_", messages_++, text).role = role;
  }
  void add_result(std::string_view text) {
    add(item::kind::result, "fco_", results_, text).call_id = known_->facts.answered_calls[results_];
    ++results_;
  }
  void add_calls(const split_ref& split) {
    if (!split->content.empty()) {
      add_message("assistant", split->content);
      to_.back().owner = split;
    }
    for (const auto& call : split->calls) {
      item& called = add(item::kind::called, "fci_", calls_++, call.arguments);
      called.call = &call;
      called.owner = split;
    }
  }

  const version_record& turn_;
  const protocol::known_response* const known_;
  const std::string name_;
  std::vector<item>& to_;
  std::size_t messages_ = 0, results_ = 0, calls_ = 0;
};

/// The items of the answer are those of the response.
void add_answered(const version_record& turn, std::optional<protocol::known_response> known, std::vector<item>& items) {
  const std::string name = name_of(turn);
  const auto status = protocol::outcome_of(turn.finish_reason, turn.stop_reason, turn.unfinished).status;
  if (!turn.reasoning.empty()) {
    items.push_back({item::kind::thought, protocol::item_id("rs_", name), name, "", turn.reasoning});
    items.back().as_summary = known && !known->facts.summary.empty();
  }
  const bool called = known && !known->text.calls.empty();
  // The items keep the text alone: the rest of the response may be large.
  const auto text = called ? std::make_shared<const protocol::response_text>(std::move(known->text)) : nullptr;
  const std::string_view content = called ? text->content : turn.answer;
  if (!called || !content.empty()) {
    items.push_back({item::kind::answered, protocol::item_id("msg_", name), name, "", content, status});
    if (called) items.back().owner = text;
  }
  if (!called) return;
  for (std::size_t i = 0; i < text->calls.size(); ++i) {
    const auto& call = text->calls[i];
    const auto end = call.whole ? response_status::completed : response_status::incomplete;
    items.push_back({item::kind::called, protocol::call_item_id(name, i), name, "", call.arguments, end});
    items.back().call = &call;
    items.back().owner = text;
  }
}

std::vector<item> all_of(std::span<const persistence::shared_version> turns) {
  std::vector<item> items;
  for (const auto& turn : turns) {
    auto known = response_of(*turn);
    said_items(*turn, known ? &*known : nullptr, items).add_all();
    add_answered(*turn, std::move(known), items);
  }
  return items;
}

void write_item(json_writer& out, const item& i) {
  if (i.what == item::kind::thought) return protocol::write_reasoning_item(out, i.turn, i.text, i.status, i.as_summary);
  if (i.what == item::kind::answered) return protocol::write_message_item(out, i.turn, i.text, i.status);
  if (i.what == item::kind::result) return protocol::write_call_output_item(out, i.id, i.call_id, i.text);
  if (i.what == item::kind::called) return protocol::write_call_item(out, i.id, *i.call, i.status);
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

result<std::string> input_item_list(const version_record& turn, const item_page& page) {
  std::vector<item> items;
  const auto known = response_of(turn);
  said_items(turn, known ? &*known : nullptr, items).add_all();
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
