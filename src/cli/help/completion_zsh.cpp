#include "cli/help/completion_words.hpp"
#include "cli/help/manual.hpp"

namespace skein::cli {
namespace {

/// Commands with their flags, as patterns of a case: ("skein serve --host"|"skein serve --localhost").
std::string pattern(const command_help& command, const option_help& option) {
  std::string list;
  for (const auto& name : option.names)
    list.append(list.empty() ? "    (" : "|").append('"' + command.name + ' ' + name + '"');
  return list + ") ";
}

/// 'word:what it means', as _describe reads it.
std::string described(const std::string& word, const std::string& text) {
  return quoted(text.empty() ? word : word + ':' + text);
}

/// The values of a command's flags.
std::string values(const command_help& command) {
  std::string lines;
  for (const auto& option : command.options) {
    if (option.positional() || option.value.empty()) continue;
    const auto known = values_of(option);
    lines += pattern(command, option);
    if (known.empty())
      lines += "_files";
    else
      lines.append(goes_on(option) ? "compadd -S '' -- " : "compadd -- ").append(in_one(known));
    lines += "; return ;;\n";
  }
  return lines;
}

/// The words that may follow a command. Flags are a separate list: zsh offers them after a '-'.
std::string next(const command_help& command) {
  std::string words, flags;
  const auto add = [](std::string& to, const std::string& word, const std::string& text) {
    to += "        " + described(word, text) + '\n';
  };
  bool takes_file = false;
  for (const auto& each : command.commands) add(words, last_word(each.name), each.text);
  for (const auto& option : command.options) {
    if (!option.positional())
      for (const auto& name : option.names) add(flags, name, option.text);
    else if (option.choices.empty())
      takes_file = true;
    else
      for (const auto& word : option.choices) add(words, word, "");
  }
  return "    (\"" + command.name + "\")\n      next=(\n" + words + "      )\n      flags=(\n" + flags + "      )\n" +
         (takes_file ? "      _files\n" : "") + "      ;;\n";
}

}  // namespace

std::string zsh_completion(const command_help& program) {
  std::string known, behind, nexts;
  for (const auto* command : all_commands(program)) {
    if (command != &program) known.append(known.empty() ? "" : "|").append('"' + command->name + '"');
    behind += values(*command);
    nexts += next(*command);
  }
  return "#compdef skein\n"
         "# zsh completion for skein: written by `skein manual zsh`\n"
         "_skein() {\n"
         "  local command=skein i\n"
         "  local -a next flags\n"
         "  for ((i = 2; i < CURRENT; ++i)); do\n"
         "    case \"$command ${words[i]}\" in\n"
         "      (" +
         known +
         ") command+=\" ${words[i]}\" ;;\n"
         "    esac\n"
         "  done\n"
         "  case \"$command ${words[CURRENT-1]}\" in\n" +
         behind +
         "  esac\n"
         "  case \"$command\" in\n" +
         nexts +
         "  esac\n"
         "  _describe -t words word next\n"
         "  _describe -o flag flags\n"
         "}\n"
         "_skein \"$@\"\n";
}

}  // namespace skein::cli
