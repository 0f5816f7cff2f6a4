#include "protocol/chat_template.hpp"

namespace skein::protocol {
namespace {

constexpr std::string_view blank = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

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

bool is_system(const chat_message& message) { return message.role == "system" || message.role == "developer"; }

std::string_view speaker(const chat_message& message) {
  if (message.role == "user") return "User:";
  if (message.role == "assistant") return "Assistant:";
  if (message.role == "tool") return "Observation:";
  return "System:";
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

std::string_view opening_of(think_mode think, const model_preset& preset) {
  if (think == think_mode::off) return preset.no_think_opening;
  if (think == think_mode::chinese_think) return "Assistant: <think>嗯";
  return "Assistant: <think";
}

/// Index of the last user message, or the number of messages.
std::size_t last_user(std::span<const chat_message> messages) {
  for (std::size_t i = messages.size(); i-- > 0;)
    if (messages[i].role == "user") return i;
  return messages.size();
}

void append_line(std::string& text, std::string_view line) {
  if (!text.empty() && !line.empty()) text += '\n';
  text += line;
}

void append_turn(std::string& prompt, std::string_view who, std::string_view text) {
  prompt += who;
  if (!text.empty()) prompt.append(1, ' ').append(text);
  prompt += "\n\n";
}

/// All turns, each with the blank line after it. `wish` goes to the last user text.
std::string render_turns(std::span<const chat_message> messages, std::string_view wish) {
  const auto asked = last_user(messages);
  std::string turns;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& message = messages[i];
    const auto who = speaker(message);
    if (message.role == "assistant") {
      append_turn(turns, who, message.content);
      continue;
    }
    auto text = normalised(message.content);
    for (; is_system(message) && i + 1 < messages.size() && is_system(messages[i + 1]); ++i)
      append_line(text, normalised(messages[i + 1].content));
    if (i == asked) text += wish;
    append_turn(turns, who, text);
  }
  return turns;
}

}  // namespace

bool continues_answer(std::span<const chat_message> messages) {
  return !messages.empty() && messages.back().role == "assistant" && !messages.back().content.empty();
}

std::string render_chat(std::span<const chat_message> messages, think_mode think, const model_preset& preset) {
  if (!continues_answer(messages)) {
    const bool empty_answer = !messages.empty() && messages.back().role == "assistant";
    auto prompt = render_turns(messages.first(messages.size() - empty_answer), wish_of(think));
    return prompt += opening_of(think, preset);
  }
  auto prompt = render_turns(messages.first(messages.size() - 1), "");
  prompt.append(speaker(messages.back())).append(" ").append(messages.back().content);
  prompt.erase(prompt.find_last_not_of(' ') + 1);
  return prompt;
}

std::string fim_prompt(std::string_view prefix, std::string_view suffix) {
  std::string prompt = "✿prefix✿✿suffix✿";
  prompt.append(suffix).append("✿middle✿").append(prefix);
  return prompt;
}

}  // namespace skein::protocol
