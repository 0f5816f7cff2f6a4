#include "model/templates/chat_form.hpp"

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
