#include <algorithm>

#include "cli/manual.hpp"
#include "config/keys.hpp"

namespace skein::cli {
namespace {

/// The command with all below it.
std::vector<const command_help*> all_commands(const command_help& of) {
  std::vector<const command_help*> list{&of};
  for (const auto& each : of.commands) {
    const auto below = all_commands(each);
    list.insert(list.end(), below.begin(), below.end());
  }
  return list;
}

std::string last_word(const std::string& name) { return name.substr(name.rfind(' ') + 1); }

std::string words(const std::vector<std::string>& list) {
  std::string text;
  for (const auto& word : list) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

std::vector<std::string> setting_names() {
  std::vector<std::string> list;
  for (const auto& key : config::keys()) list.push_back(key.path + '=');
  return list;
}

/// What may come next in a command: its commands, the words of its first positional, its flags.
std::string next_words(const command_help& command) {
  std::vector<std::string> list;
  for (const auto& each : command.commands) list.push_back(last_word(each.name));
  for (const auto& option : command.options) {
    const auto& from = option.positional() ? option.choices : option.names;
    list.insert(list.end(), from.begin(), from.end());
  }
  return words(list);
}

/// What may stand behind a flag; nothing where that is anything.
std::vector<std::string> values_of(const option_help& option) {
  return option.names.front() == "--set" ? setting_names() : option.choices;
}

/// Flags with a value, as patterns of a case: `"skein serve --host" | "skein serve --localhost"`.
std::string patterns(const command_help& command, const option_help& option) {
  std::string list;
  for (const auto& name : option.names)
    list.append(list.empty() ? "" : " | ").append('"' + command.name + ' ' + name + '"');
  return list;
}

std::string flags_with_words(const command_help& command) {
  std::string lines;
  for (const auto& option : command.options) {
    if (option.positional() || values_of(option).empty()) continue;
    const bool goes_on = option.names.front() == "--set";
    lines += "    " + patterns(command, option) + ")\n      words=\"" + words(values_of(option)) + "\"\n" +
             (goes_on ? "      compopt -o nospace\n" : "") + "      ;;\n";
  }
  return lines;
}

std::string flags_with_anything(const command_help& command) {
  std::string list;
  for (const auto& option : command.options)
    if (!option.positional() && !option.value.empty() && values_of(option).empty())
      list.append(list.empty() ? "    " : " | \\\n    ").append(patterns(command, option));
  return list.empty() ? list : list + ") ;;\n";
}

}  // namespace

// Where nothing fits, bash offers names of files: what most flags want.
std::string bash_completion(const command_help& program) {
  const auto commands = all_commands(program);
  std::string known, values, nexts;
  for (const auto* command : commands) {
    if (command != &program) known.append(known.empty() ? "" : " | ").append('"' + command->name + '"');
    values += flags_with_words(*command) + flags_with_anything(*command);
    nexts += "        \"" + command->name + "\") words=\"" + next_words(*command) + "\" ;;\n";
  }
  return "# bash completion for skein: written by `skein manual bash`\n"
         "_skein() {\n"
         "  local command=skein words= i\n"
         "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
         "    case \"$command ${COMP_WORDS[i]}\" in\n"
         "      " +
         known +
         ") command+=\" ${COMP_WORDS[i]}\" ;;\n"
         "    esac\n"
         "  done\n"
         "  case \"$command ${COMP_WORDS[COMP_CWORD-1]}\" in\n" +
         values +
         "    *)\n"
         "      case \"$command\" in\n" +
         nexts +
         "      esac\n"
         "      ;;\n"
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
         "} &&\n"
         "  complete -o bashdefault -o default -F _skein skein\n";
}

}  // namespace skein::cli
