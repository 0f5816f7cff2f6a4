#include "cli/help/completion_words.hpp"
#include "cli/help/manual.hpp"

namespace skein::cli {
namespace {

/// The words that may follow a command: its subcommands, the choices of its first positional, its flags.
std::string next_words(const command_help& command) {
  std::vector<std::string> list;
  list.reserve(command.commands.size());
  for (const auto& each : command.commands) list.push_back(last_word(each.name));
  for (const auto& option : command.options) {
    const auto& from = option.positional() ? option.choices : option.names;
    list.insert(list.end(), from.begin(), from.end());
  }
  return in_one(list);
}

/// Flags with a value as patterns of a case: `"skein serve --host" | "skein serve --localhost"`.
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
    lines += "    " + patterns(command, option) + ")\n      words=\"" + in_one(values_of(option)) + "\"\n" +
             (goes_on(option) ? "      compopt -o nospace\n" : "") + "      ;;\n";
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

// If no word fits, bash offers file names, which most flags accept.
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
