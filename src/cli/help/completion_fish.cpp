#include "cli/help/completion_words.hpp"
#include "cli/help/manual.hpp"

namespace skein::cli {
namespace {

/// The text in single quotes for fish, which knows the escapes \' and \\.
std::string for_fish(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + '\'';
}

std::string line(const command_help& command, const std::string& rest, const std::string& text) {
  std::string all = "complete -c skein -n " + for_fish("__skein_at " + command.name) + rest;
  if (!text.empty()) all += " -d " + for_fish(text);
  return all + '\n';
}

std::string flag(const command_help& command, const option_help& option) {
  std::string rest;
  for (const auto& name : option.names)
    rest.append(name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
  const auto known = values_of(option);
  if (!option.value.empty()) rest += known.empty() ? " -r" : " -x -a " + for_fish(in_one(known));
  return line(command, rest, option.text);
}

/// Offers files only for commands that accept one.
std::string lines_of(const command_help& command) {
  std::string lines;
  bool takes_file = false;
  for (const auto& each : command.commands) lines += line(command, " -a " + last_word(each.name), each.text);
  for (const auto& option : command.options) {
    if (!option.positional())
      lines += flag(command, option);
    else if (option.choices.empty())
      takes_file = true;
    else
      lines += line(command, " -a " + for_fish(in_one(option.choices)), "");
  }
  return takes_file ? lines : line(command, " -f", "") + lines;
}

}  // namespace

std::string fish_completion(const command_help& program) {
  std::string known, lines;
  for (const auto* command : all_commands(program)) {
    if (command != &program) known += ' ' + for_fish(command->name);
    lines += lines_of(*command);
  }
  return "# fish completion for skein: written by `skein manual fish`\n"
         "function __skein_at\n"
         "  set -l command skein\n"
         "  for word in (commandline -opc)[2..-1]\n"
         "    switch \"$command $word\"\n"
         "      case" +
         known +
         "\n"
         "        set command \"$command $word\"\n"
         "    end\n"
         "  end\n"
         "  test \"$command\" = \"$argv\"\n"
         "end\n" +
         lines;
}

}  // namespace skein::cli
