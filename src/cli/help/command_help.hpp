#pragma once
#include <string>
#include <vector>

/// The contents of --help as plain values. Manual pages and shell completions are generated from them, so all agree.
namespace skein::cli {

struct option_help {
  std::vector<std::string> names;    ///< "--port" and older spellings; for a positional, only its name
  std::string value;                 ///< kind of value, "TEXT" or "NUMBER"; empty: no value
  std::vector<std::string> choices;  ///< the accepted words, if there is a fixed list
  std::string text;                  ///< meaning, and accepted values if they are not a list of words
  std::string standard;              ///< default value, if --help states one
  bool required = false;

  [[nodiscard]] bool positional() const { return !names.front().starts_with('-'); }
};

struct command_help {
  std::string name;  ///< as typed: "skein state fork"
  std::string text;
  std::vector<option_help> options;  ///< positionals first
  std::vector<command_help> commands;
};

/// The whole program.
[[nodiscard]] command_help program_help();

}  // namespace skein::cli
