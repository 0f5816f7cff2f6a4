#include "cli/command_line_words.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "config/nearest.hpp"

namespace skein::cli {
namespace {

/// Parses CLI11's description of an option's value: "TEXT:{fp32,fp16}", "UINT:UINT in [1 - 65536]".
void describe_value(const std::string& type, option_help& into) {
  into.value = type.empty() || type.starts_with("TEXT") || type.starts_with('{') ? "TEXT" : "NUMBER";
  if (const auto open = type.find('{'); open != std::string::npos) {
    std::istringstream words(type.substr(open + 1, type.rfind('}') - open - 1));
    for (std::string word; std::getline(words, word, ',');) into.choices.push_back(word);
  }
  if (const auto range = type.find(" in ["); range != std::string::npos) into.text += type.substr(range + 3);
}

option_help described(const CLI::Option& option) {
  option_help made;
  made.text = option.get_description();
  for (const auto& name : option.get_snames()) made.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) made.names.push_back("--" + name);
  if (made.names.empty()) made.names.push_back(option.get_name());
  if (option.get_items_expected_max() > 0) describe_value(option.get_type_name(), made);
  made.standard = option.get_default_str();
  made.required = option.get_required();
  return made;
}

/// Option groups have no name; their options belong to the command.
void describe_options(const CLI::App& app, std::vector<option_help>& into) {
  for (const auto* option : app.get_options()) into.push_back(described(*option));
  for (const auto* group : app.get_subcommands(nullptr))
    if (group->get_name().empty()) describe_options(*group, into);
}

}  // namespace

command_help described(const CLI::App& app, const std::string& name) {
  command_help made{name, app.get_description(), {}, {}};
  describe_options(app, made.options);
  std::ranges::stable_partition(made.options, &option_help::positional);
  for (const auto* sub : app.get_subcommands(nullptr))
    if (!sub->get_name().empty()) made.commands.push_back(described(*sub, name + ' ' + sub->get_name()));
  return made;
}

std::optional<error> not_a_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().starts_with('-')) return std::nullopt;
  std::vector<std::string> names;
  for (const CLI::App* each : app.get_subcommands(nullptr)) names.push_back(each->get_name());
  if (std::ranges::find(names, arguments.front()) != names.end()) return std::nullopt;
  const std::vector<std::string_view> known(names.begin(), names.end());
  const auto near = config::nearest(arguments.front(), known);
  return error{error_kind::invalid_argument,
               "unknown command \"" + arguments.front() + "\"" +
                   (near.empty() ? "." : "; did you mean " + std::string(near) + "?") + " See skein --help",
               {}};
}

std::pair<const CLI::App*, std::string> called_command(const CLI::App& app) {
  std::pair<const CLI::App*, std::string> found{&app, "skein"};
  for (auto below = app.get_subcommands(); !below.empty(); below = found.first->get_subcommands()) {
    found.first = below.front();
    found.second += ' ' + found.first->get_name();
  }
  return found;
}

error unexpected(const CLI::App& app) {
  const auto [command, called] = called_command(app);
  const auto words = app.remaining(true);
  const auto is_flag = [](const std::string& word) { return word.starts_with("--"); };
  const auto flag = std::ranges::find_if(words, is_flag);
  const std::string word = flag != words.end() ? *flag : words.empty() ? "" : words.front();
  std::vector<std::string> flags;
  for (const CLI::Option* option : command->get_options())
    for (const auto& name : option->get_lnames()) flags.push_back("--" + name);
  const std::vector<std::string_view> known(flags.begin(), flags.end());
  const auto near = config::nearest(word, known);
  return {error_kind::invalid_argument,
          "\"" + word + "\" was not expected" + (near.empty() ? "." : "; did you mean " + std::string(near) + "?") +
              " See " + called + " --help",
          {}};
}

}  // namespace skein::cli
