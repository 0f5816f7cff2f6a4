#include "cli/help/completion_words.hpp"

#include "config/keys.hpp"

namespace skein::cli {

std::vector<const command_help*> all_commands(const command_help& of) {
  std::vector<const command_help*> list{&of};
  for (const auto& each : of.commands) {
    const auto below = all_commands(each);
    list.insert(list.end(), below.begin(), below.end());
  }
  return list;
}

std::string last_word(const std::string& name) { return name.substr(name.rfind(' ') + 1); }

std::string in_one(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

bool goes_on(const option_help& option) { return option.names.front() == "--set"; }

std::vector<std::string> values_of(const option_help& option) {
  if (!goes_on(option)) return option.choices;
  std::vector<std::string> keys;
  for (const auto& key : config::keys())
    if (!key.for_tests) keys.push_back(key.path + '=');
  return keys;
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text)
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  return out + '\'';
}

}  // namespace skein::cli
