#include "protocol/chat/chat_template.hpp"

#include "base/text.hpp"
#include "protocol/json/json_indent.hpp"
#include "protocol/json/json_writer.hpp"
#include "protocol/json/large_integers.hpp"

namespace skein::protocol {
namespace {

std::string normalised(std::string_view text) {
  std::string lines;
  lines.reserve(text.size());
  text = trimmed(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool carriage_return = text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
    const bool repeated_newline = text[i] == '\n' && !lines.empty() && lines.back() == '\n';
    if (!carriage_return && !repeated_newline) lines += text[i];
  }
  return lines;
}

constexpr std::string_view headed_answer = "### Assistant";

bool is_system(const chat_message& message) { return message.role == "system" || message.role == "developer"; }

/// A tool's result: its JSON, or its text as JSON.
std::string fenced_result(std::string_view text) {
  std::string fenced = "```json\n";
  if (const auto document = parse_with_large_integers(text))
    indent_json(fenced, document->root(), indented_bytes_max(text.size()));
  else
    json_writer(fenced).value(text);
  return fenced += "\n```";
}

/// What is between a turn's name and its text, and after a turn.
std::string gap_of(const chat_style& style) { return style.turns == turn_form::headings ? "\n" : style.gap; }
std::string end_of_turn(const chat_style& style) { return style.turns == turn_form::headings ? "\n" : style.end; }

std::string speaker(const chat_message& message, const chat_style& style) {
  if (style.turns == turn_form::headings) {
    if (message.role == "user") return "### User";
    if (message.role == "assistant") return std::string(headed_answer);
    return message.role == "tool" ? "### Tool Output" : "### System";
  }
  if (message.role == "user") return style.user + style.mark;
  if (message.role == "assistant") return style.assistant + style.mark;
  if (message.role == "tool")
    return message.answers_call ? style.user + style.mark : "Observation" + (style.mark.empty() ? ":" : style.mark);
  return style.system + style.mark;
}

std::string_view wish_of(think_mode think) {
  switch (think) {
    case think_mode::short_think: return " (think a bit)";
    case think_mode::long_think: return " (think a lot)";
    case think_mode::english_think: return " (think)";
    case think_mode::off:
    case think_mode::on:
    case think_mode::chinese_think: break;
  }
  return "";
}

std::string opening_of(think_mode think, const chat_style& style) {
  constexpr std::string_view usual = "Assistant";
  std::string_view opening = "Assistant: <think";
  if (think == think_mode::off) opening = style.no_think_opening;
  if (think == think_mode::chinese_think) opening = "Assistant: <think>嗯";
  if (!opening.starts_with(usual)) return std::string(opening);
  opening.remove_prefix(usual.size());
  if (opening.starts_with(':')) opening.remove_prefix(1);
  if (style.turns == turn_form::headings) {
    if (opening.starts_with(' ')) opening.remove_prefix(1);
    return std::string(headed_answer).append("\n").append(opening);
  }
  std::string text = style.assistant + style.mark;
  if (opening.starts_with(' ')) {
    opening.remove_prefix(1);
    text += style.gap;
  }
  return text.append(opening);
}

/// Index of the last user message, or the number of messages.
std::size_t last_user(std::span<const chat_message> messages) {
  for (std::size_t i = messages.size(); i-- > 0;)
    if (messages[i].role == "user" && !messages[i].raw) return i;
  return messages.size();
}

void append_line(std::string& text, std::string_view line) {
  if (!text.empty() && !line.empty()) text += '\n';
  text += line;
}

void append_turn(std::string& prompt, const chat_style& style, std::string_view who, std::string_view text) {
  prompt += who;
  if (!text.empty()) prompt.append(gap_of(style)).append(text);
  prompt += end_of_turn(style);
}

/// Appends all turns.
void append_turns(std::span<const chat_message> messages, const chat_style& style, rendered_chat& out) {
  const auto asked = last_user(messages);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& message = messages[i];
    if (message.raw) {
      out.turns += message.content;
      out.ends.push_back(out.turns.size());
      continue;
    }
    const auto who = speaker(message, style);
    if (message.role == "assistant") {
      append_turn(out.turns, style, who, message.content);
      out.ends.push_back(out.turns.size());
      continue;
    }
    const std::size_t first = i;
    auto text = normalised(message.content);
    if (message.role == "tool" && style.turns == turn_form::headings)
      text = fenced_result(text);
    else if (message.answers_call)
      text.insert(0, "Function output:\n");
    for (; is_system(message) && i + 1 < messages.size() && is_system(messages[i + 1]) && !messages[i + 1].raw; ++i)
      append_line(text, normalised(messages[i + 1].content));
    append_turn(out.turns, style, who, text);
    out.ends.insert(out.ends.end(), i - first + 1, out.turns.size());
    if (i == asked) out.wish_at = out.turns.size() - end_of_turn(style).size();
    if (first == 0 && is_system(message)) out.system_bytes = out.turns.size();
  }
}

}  // namespace

bool continues_answer(std::span<const chat_message> messages) {
  return !messages.empty() && messages.back().role == "assistant" && !messages.back().content.empty() &&
         !messages.back().raw;
}

rendered_chat render_turns(std::span<const chat_message> messages, think_mode think, const chat_style& style) {
  rendered_chat chat;
  chat.answer_lead = style.turns == turn_form::headings ? std::string(headed_answer) : style.assistant + style.mark;
  chat.gap = gap_of(style);
  chat.end_of_turn = end_of_turn(style);
  if (!continues_answer(messages)) {
    const bool empty_answer = !messages.empty() && messages.back().role == "assistant";
    append_turns(messages.first(messages.size() - empty_answer), style, chat);
    if (empty_answer) chat.ends.push_back(chat.turns.size());
    if (last_user(messages) < messages.size()) chat.wish = wish_of(think);
    if (style.opens_answer) chat.opening = opening_of(think, style);
    return chat;
  }
  append_turns(messages.first(messages.size() - 1), style, chat);
  chat.turns.append(speaker(messages.back(), style)).append(chat.gap).append(messages.back().content);
  chat.turns.erase(chat.turns.find_last_not_of(' ') + 1);
  chat.ends.push_back(chat.turns.size());
  return chat;
}

fed_text text_to_feed(const rendered_chat& chat, std::size_t from) {
  fed_text fed{chat.turns.substr(from)};
  if (!chat.wish.empty() && from <= chat.wish_at) fed.text.insert(chat.wish_at - from, chat.wish);
  if (from == 0) fed.system_bytes = chat.system_bytes;
  if (!chat.opening.empty()) fed.turn_bytes = fed.text.size();
  fed.text += chat.opening;
  return fed;
}

std::string resent_answer(const rendered_chat& chat, std::string_view content) {
  if (chat.opening.empty()) return std::string(content);
  std::string text = chat.answer_lead;
  if (!content.empty()) text.append(chat.gap).append(content);
  return text;
}

std::string render_chat(std::span<const chat_message> messages, think_mode think, const chat_style& style) {
  return text_to_feed(render_turns(messages, think, style), 0).text;
}

std::size_t rendered_bytes_max(const chat_message& message, const chat_style& style) {
  const bool indented = message.role == "tool" && !message.raw && style.turns == turn_form::headings;
  return indented ? indented_bytes_max(message.content.size()) : message.content.size();
}

turn_form turns_of(std::string_view prompt, const chat_style& usual) {
  const auto headed = prompt.rfind(headed_answer), named = prompt.rfind('\n' + usual.assistant + usual.mark);
  const bool last = named == std::string_view::npos || (headed != std::string_view::npos && headed > named);
  return headed != std::string_view::npos && last ? turn_form::headings : turn_form::names;
}

void choose_template(const model_preset& preset, chat_style& style) {
  const std::string& name = preset.chat_template;
  if (name == "custom") {
    style.system = preset.template_system;
    style.user = preset.template_user;
    style.assistant = preset.template_assistant;
    style.mark.clear();
    style.gap = preset.template_gap;
    style.end = preset.template_end;
  } else if (name == "bot" || (name == "auto" && preset.bot_turns)) {
    style.assistant = "Bot";
    style.mark = "✿";
    style.gap.clear();
    style.end = "✿\n";
  }
}

std::string fim_prompt(std::string_view prefix, std::string_view suffix) {
  std::string prompt = "✿prefix✿✿suffix✿";
  prompt.append(suffix).append("✿middle✿").append(prefix);
  return prompt;
}

}  // namespace skein::protocol
