#include "model/templates/chat_form.hpp"

#include <algorithm>

namespace skein::model {

chat_form recognise_chat_template(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
  if (text.empty()) return chat_form::none;
  if (has("**Tool Call:**")) return chat_form::headings;
  // Control characters and tags around the names are the turns of other models.
  const bool tagged = has("<|im_start|>") || has("\x16") || has("\\x16");
  return text == "rwkv-world" || (has("User: ") && has("Assistant:") && !tagged) ? chat_form::names
                                                                                 : chat_form::unknown;
}

bool answers_as_bot(std::string_view name) {
  constexpr std::string_view first_generation = "1h", first_date = "20260701";
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool is_rwkv7 = name.starts_with("rwkv7") || name.starts_with("RWKV7") || name.starts_with("RWKV-x070");
  bool recent = false;
  while (!name.empty()) {
    const auto part = name.substr(0, name.find_first_of("-_."));
    name.remove_prefix(std::min(part.size() + 1, name.size()));
    const bool is_generation = part.size() >= 2 && part.size() <= 3 && (part[0] == 'g' || part[0] == 'G') &&
                               is_digit(part[1]) && (part.size() == 2 || (part[2] >= 'a' && part[2] <= 'z'));
    if (is_generation) return part.substr(1) >= first_generation;
    const bool is_date = part.size() == 8 && std::ranges::all_of(part, is_digit);
    recent = recent || (is_date && part >= first_date);
  }
  return is_rwkv7 && recent;
}

chat_form chat_form_named(std::string_view name) {
  for (const chat_form form : {chat_form::names, chat_form::headings})
    if (name == to_string(form)) return form;
  return chat_form::none;
}

std::string_view to_string(chat_form form) {
  switch (form) {
    case chat_form::none: return "none";
    case chat_form::names: return "list";
    case chat_form::headings: return "headings";
    case chat_form::unknown: break;
  }
  return "unknown";
}

}  // namespace skein::model
