#include "protocol/chat/chat_messages.hpp"
#include "protocol/chat/chat_template.hpp"
#include "protocol/dialects/dialect_readers.hpp"
#include "protocol/requests/shared_fields.hpp"

/// Bodies of the older servers' own routes: lists of raw prompts.
namespace skein::protocol {
namespace {

/// The template for the questions of /v3.
chat_style question_style() { return {.no_think_opening = "Assistant: <think>\n</think>"}; }

std::vector<std::string_view> read_texts(const object_reader& body, std::string_view name) {
  std::vector<std::string_view> texts;
  const auto list = body.array(name);
  if (!list) return texts;
  for (const auto element : list->elements()) {
    const auto text = element.text();
    if (!text) {
      body.refuse(name, "must be a list of strings");
      return {};
    }
    texts.push_back(*text);
  }
  return texts;
}

/// Rejects with a legacy message that clients of the older servers may compare.
void refuse(const object_reader& body, error_kind kind, std::string_view field, std::string message) {
  body.fault().report(kind, std::string(field), std::move(message));
}

void need_prompts(const object_reader& body, const reading& by, const generation_request& out) {
  if (out.prompts.empty()) refuse(body, error_kind::invalid_argument, by.as.prompt_field, "Empty prompts list");
}

}  // namespace

void read_one_turn(const object_reader& body, const reading&, generation_request& out) {
  out.chat = false;
  const bool nothing_new = goes_on(body, "contents");
  const auto texts = nothing_new ? std::vector<std::string_view>() : read_texts(body, "contents");
  if (!texts.empty()) out.prompts.push_back({std::string(texts.front()), {}, false});
  // The older servers' message for several prompts, status and misspelling included: clients may compare it.
  if (texts.size() > 1) refuse(body, error_kind::internal, "contents", "Server Error: Requst must be single prompt !");
  if (out.prompts.empty() && !nothing_new)
    refuse(body, error_kind::invalid_argument, "contents", "Request must contain exactly one prompt");
  if (out.prompts.empty()) out.prompts.emplace_back();
}

void read_one_row(const object_reader& body, const reading&, generation_request& out) {
  if (out.n > 1) body.refuse("n", "must be 1 on this route");
}

void read_branch(const object_reader& body, const reading& by, generation_request& out) {
  read_one_row(body, by, out);
  read_session(body, out);
  const bool named = body.value("dialogue_idx") || body.value("parent");
  if (!out.session) return refuse(body, error_kind::invalid_argument, "session_id", "Missing session_id parameter");
  if (!named) return refuse(body, error_kind::invalid_argument, "dialogue_idx", "Missing dialogue_idx parameter");
  constexpr std::int64_t version_max = 0xffffffff;
  const auto index = body.integer("dialogue_idx", 0, version_max);
  const auto parent = body.integer("parent", 0, version_max);
  out.session->from_version = static_cast<std::uint32_t>(parent.value_or(index.value_or(0)));
  out.session->branches = true;
}

void read_contents(const object_reader& body, const reading& by, generation_request& out) {
  out.chat = false;
  for (const auto text : read_texts(body, "contents"))
    add_prompt({has_all_prompts(out, by.limits) ? "" : std::string(text), {}, false}, by.limits, out);
  need_prompts(body, by, out);
}

void read_padding(const object_reader& body, const reading&, generation_request& out) {
  out.pad_zero = body.boolean("pad_zero").value_or(true);
  // The original mode of that route applied each penalty twice and exempted some tokens.
  if (const auto mode = body.text("penalty_mode"); mode && *mode != "rapid")
    body.refuse("penalty_mode", "must be rapid");
}

void read_questions(const object_reader& body, const reading& by, generation_request& out) {
  out.think = body.boolean("enable_think").value_or(false) ? think_mode::on : think_mode::off;
  out.reasoning_raw = true;
  out.style = question_style();
  const auto questions = read_texts(body, "contents");
  const auto messages = body.value("messages");
  if (questions.empty() && messages && !messages->is_empty_array()) {
    out.messages = read_messages(body);
    return;
  }
  out.chat = false;
  for (const auto question : questions) {
    if (has_all_prompts(out, by.limits)) {
      add_prompt({}, by.limits, out);
      continue;
    }
    const chat_message message{"user", std::string(question), ""};
    add_prompt({render_chat({&message, 1}, out.think, out.style), {}, false}, by.limits, out);
  }
  need_prompts(body, by, out);
}

void read_pairs(const object_reader& body, const reading& by, generation_request& out) {
  out.chat = false;
  const auto before = read_texts(body, "prefix");
  const auto after = read_texts(body, "suffix");
  if (before.size() != after.size())
    return body.refuse("suffix", "has " + std::to_string(after.size()) + " entries, but prefix has " +
                                     std::to_string(before.size()) + "; they must have the same number");
  for (std::size_t i = 0; i < before.size(); ++i)
    add_prompt({has_all_prompts(out, by.limits) ? "" : fim_prompt(before[i], after[i]), {}, false}, by.limits, out);
  need_prompts(body, by, out);
}

}  // namespace skein::protocol
