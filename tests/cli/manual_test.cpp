// Shows that both manual pages and the completions say what the program reads: every flag that --help names, every key
// with its meaning; and that a real bash, zsh and fish complete with them.
#include "cli/help/manual.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include "cli/command_line.hpp"
#include "config/keys.hpp"
#include "tests/support/oracle.hpp"

namespace {

using namespace skein;

/// The text that man shows, but for its line breaks.
std::string shown(const std::string& page) {
  std::string text;
  for (std::size_t i = 0; i < page.size(); ++i) {
    if (page[i] != '\\')
      text += page[i];
    else if (page[++i] == '-')
      text += '-';
    else if (page[i] == 'e')
      text += '\\';
    else if (page[i] == 'f')
      ++i;
  }
  return text;
}

/// All between this headline and the next.
std::string part(const std::string& text, const std::string& headline) {
  const auto begin = text.find(headline);
  BOOST_REQUIRE_MESSAGE(begin != std::string::npos, "no part " + headline);
  const auto end = text.find("\n.S", begin + 1);
  return text.substr(begin, end - begin);
}

std::string help_of(const cli::command_help& command) {
  std::istringstream all(command.name + " --help");
  std::vector<std::string> words{std::istream_iterator<std::string>(all), {}};
  words.erase(words.begin());
  const auto parsed = cli::parse_command_line(words);
  BOOST_REQUIRE(parsed);
  return std::get<cli::print_text>(*parsed).text;
}

/// Every flag in a text of --help.
std::vector<std::string> flags_in(const std::string& help) {
  std::vector<std::string> flags;
  for (auto at = help.find("--"); at != std::string::npos; at = help.find("--", at + 2)) {
    const auto end = help.find_first_not_of("abcdefghijklmnopqrstuvwxyz_-", at);
    flags.push_back(help.substr(at, end - at));
  }
  return flags;
}

void expect_flags(const cli::command_help& command, const std::string& page) {
  for (const auto& each : command.commands) expect_flags(each, page);
  if (!command.commands.empty()) return;
  const std::string here = part(page, ".SS \"" + command.name + ' ');
  const auto flags = flags_in(help_of(command));
  BOOST_TEST(flags.size() > 0u);
  for (const auto& flag : flags)
    if (flag != "--help") BOOST_TEST(here.find(flag) != std::string::npos, command.name << " lacks " << flag);
}

std::string printed(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  BOOST_REQUIRE(pipe);
  std::string text;
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) text += static_cast<char>(c);
  return text;
}

/// A shell, and the script in which it says what it offers for the last word of a line: the completion's file is $F,
/// the line $L.
struct shell {
  const char* name;
  const char* script;
};
constexpr shell bash{"bash",
                     "compopt() { :; }; . $F; COMP_WORDS=($L); [[ $L != *' ' ]] || COMP_WORDS+=(''); "
                     "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _skein; echo \"${COMPREPLY[*]}\""};
// A shell without a terminal completes nothing, so what would take the words prints those that fit.
constexpr shell zsh{
    "zsh",
    "offer() { for w; do [[ $w != ${words[CURRENT]}* ]] || print -rn -- \"$w \"; done }; "
    "compadd() { while [[ $1 != -- ]]; do shift; done; shift; offer \"$@\"; }; "
    "_describe() { [[ $1 == -o && ${words[CURRENT]} != -* ]] || offer \"${(@)${(P)@[-1]}%%:*}\"; }; _files() { :; }; "
    "words=(${=L}); [[ $L != *' ' ]] || words+=(''); CURRENT=${#words}; . $F; echo"};
constexpr shell fish{"fish", "source $F; complete -C \"$L\" | string replace -r '\\t.*' '' | string join ' '"};

bool is_here(const shell& which) { return printed(std::string("command -v ") + which.name).size() > 1; }

/// What it offers, with a blank before and after every word.
std::string offered(const shell& by, const std::string& line, const std::filesystem::path& completion) {
  const test::temporary_folder folder;
  const auto script = folder.path() / "script";
  std::ofstream(script) << by.script << '\n';
  return ' ' +
         printed("F='" + completion.string() + "' L='" + line + "' HOME='" + folder.path().string() + "' " + by.name +
                 ' ' + script.string() + " | tr '\\n' ' '") +
         ' ';
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_program_s_page_has_every_flag_of_every_command) {
  const auto program = cli::program_help();
  BOOST_TEST(program.commands.size() >= 11u);
  expect_flags(program, shown(cli::manual("skein.1")));
}

BOOST_AUTO_TEST_CASE(the_settings_page_has_every_key_with_its_meaning_and_default) {
  const std::string page = shown(cli::manual("skein.toml.5"));
  const auto expect = [&](const config::key& key, const std::string& headline) {
    const std::string here = part(page, headline);
    BOOST_TEST(here.find(std::string(key.name()) + " = " + config::to_toml(key.standard())) != std::string::npos,
               key.path);
    BOOST_TEST(here.find(key.help) != std::string::npos, key.path);
    BOOST_TEST(here.find(key.legal()) != std::string::npos, key.path);
  };
  for (const auto& key : config::keys())
    if (!key.for_tests) expect(key, ".SS \"[" + std::string(key.section()) + "]\"");
  for (const auto& key : config::model_keys("name")) expect(key, ".SS \"[models.NAME]\"");
}

namespace {

struct completed {
  std::string line;      ///< the last word is the one that is completed
  std::string expected;  ///< one of the words that are offered
  std::string never;     ///< one that is not
};
const completed rows[] = {
    {"skein s", "serve", "bench"},
    {"skein serve --dt", "--dtype", "--device"},
    {"skein serve --dtype ", "bf16", "--port"},
    {"skein serve --port ", "", "--dtype"},
    {"skein state --", "--help", "--dtype"},
    {"skein state ", "fork", "serve"},
    {"skein state fork --state", "--state-dir", "--host"},
    {"skein check-config --set limits.n", "limits.n_max=", "limits.stops_max="},
    {"skein manual ", "skein.toml.5", "serve"},
};

void expect_completion(const shell& by) {
  const test::temporary_folder folder;
  const auto file = folder.path() / "skein";
  std::ofstream(file) << cli::manual(by.name);
  for (const auto& row : rows) {
    const std::string words = offered(by, row.line, file);
    BOOST_TEST(words.find(' ' + row.expected + ' ') != std::string::npos, by.name << ", " << row.line << ":" << words);
    BOOST_TEST(words.find(' ' + row.never + ' ') == std::string::npos, by.name << ", " << row.line << ":" << words);
  }
}

template <const shell& By>
boost::test_tools::assertion_result have(boost::unit_test::test_unit_id) {
  return is_here(By);
}

}  // namespace

BOOST_AUTO_TEST_CASE(bash_completes_commands_flags_values_and_keys) { expect_completion(bash); }

BOOST_AUTO_TEST_CASE(zsh_completes_commands_flags_values_and_keys, *boost::unit_test::precondition(have<zsh>)) {
  expect_completion(zsh);
}

BOOST_AUTO_TEST_CASE(fish_completes_commands_flags_values_and_keys, *boost::unit_test::precondition(have<fish>)) {
  expect_completion(fish);
}
