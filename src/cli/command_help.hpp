#pragma once
#include <string>
#include <vector>

/// What --help says, as plain values: manual pages and the completion are made of it, so that all three agree.
namespace skein::cli {

struct option_help {
  std::vector<std::string> names;    ///< "--port" and older spellings; of a positional its name alone
  std::string value;                 ///< kind of its value, "TEXT" or "NUMBER"; empty: it has none
  std::vector<std::string> choices;  ///< where the value is one of a few words
  std::string text;                  ///< meaning, and legal values where they are no list of words
  std::string standard;              ///< the value without it, where --help says so
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
