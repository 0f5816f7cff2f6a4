#include "cli/help/manual.hpp"

#include <string>

#include "app/exit_code.hpp"
#include "base/check.hpp"
#include "base/version.hpp"
#include "cli/help/roff.hpp"
#include "config/keys.hpp"
#include "config/shipped_file.hpp"

namespace skein::cli {
namespace {

/// "skein 0.1.0"
std::string program_version() { return "skein " + std::string(this_build().version); }

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string list;
  for (const auto& word : words) list.append(list.empty() ? "" : between).append(word);
  return list;
}

void append_sentence(std::string& text, std::string_view sentence) {
  text.append(text.empty() ? "" : text.ends_with('.') ? " " : ". ").append(sentence) += '.';
}

void write_option(roff_page& page, const option_help& option) {
  std::string text = option.text;
  if (!option.standard.empty()) append_sentence(text, "Default: " + option.standard);
  if (option.required && !option.positional()) append_sentence(text, "Required");
  page.item(joined(option.names, ", "), option.choices.empty() ? option.value : joined(option.choices, "|"), text);
}

/// Writes the section of a command. A command with subcommands has no section itself, only those of its subcommands.
void write_command(roff_page& page, const command_help& command) {
  if (command.commands.empty()) {
    std::string line = command.name;
    for (const auto& option : command.options)
      if (option.positional()) line += option.required ? ' ' + option.names.front() : " [" + option.names.front() + ']';
    page.sub_heading(line + " [OPTIONS]");
    page.paragraph(command.text + '.');
    for (const auto& option : command.options)
      if (option.names.back() != "--help") write_option(page, option);
  }
  for (const auto& each : command.commands) write_command(page, each);
}

struct exit_row {
  exit_code code;
  const char* text;
};
constexpr exit_row exits[] = {
    {exit_code::ok, "Success; a server shut down in order."},
    {exit_code::usage, "The command line is wrong."},
    {exit_code::bad_data, "A model, state or other file cannot be used."},
    {exit_code::no_input, "A file or folder is missing."},
    {exit_code::unavailable, "The device or enough memory is not available."},
    {exit_code::internal, "The device was lost or hangs, or the program has a bug."},
    {exit_code::io, "A disk or a file failed."},
    {exit_code::try_again, "Temporary failure; try again later."},
    {exit_code::no_permission, "Permission denied."},
    {exit_code::bad_config, "The configuration is wrong."},
};

std::string program_page() {
  const command_help program = program_help();
  roff_page page("skein", "1", program_version());
  page.heading("name");
  page.paragraph("skein - " + program.text);
  page.heading("synopsis");
  page.item("skein", "COMMAND [OPTIONS]", "");
  page.heading("description");
  page.paragraph(
      "Skein serves RWKV language models to clients of the OpenAI API over HTTP, server-sent events and WebSocket. "
      "Without a configured model it serves a small demo model.");
  page.paragraph(
      "A flag overrides an environment variable (SKEIN_SERVER_PORT for server.port), which overrides the configuration "
      "file; "
      "see skein.toml(5).");
  page.heading("options");
  for (const auto& option : program.options) write_option(page, option);
  page.heading("commands");
  write_command(page, program);
  page.heading("signals");
  page.item("SIGTERM, SIGINT", "",
            "Shut down a server in order: running answers finish. A second signal ends them at once.");
  page.item("SIGHUP", "", "Reload the configuration and keys of a server; an invalid file changes nothing.");
  page.heading("exit status");
  for (const auto& each : exits) page.item(std::to_string(static_cast<int>(each.code)), "", each.text);
  page.heading("environment");
  page.item("SKEIN_CONFIG", "", "The configuration file, unless --config names one.");
  page.item("SKEIN_SECTION_KEY", "", "Any setting, as SKEIN_LIMITS_N_MAX for limits.n_max.");
  page.item("SKEIN_DATA_DIR", "", "The first folder that is searched for the demo model and vocabularies.");
  page.item("SKEIN_CUDA_LIBRARY", "", "The back end for NVIDIA GPUs, libskein_cuda.so.");
  page.item("SKEIN_HIP_LIBRARY", "", "The back end for AMD GPUs, libskein_hip.so.");
  page.item("SKEIN_CUBLASLT", "", "The file of cuBLASLt, which the GPU back end may use.");
  page.heading("files");
  page.item("/etc/skein/skein.toml", "", "Settings of the service, as the package ships them.");
  page.item("/etc/skein/conf.d/*.toml", "", "Settings of your own, which no upgrade changes.");
  page.item("/etc/skein/api-keys", "", "API keys of the service, created by skein keys.");
  page.item("/var/lib/skein", "", "Sessions and states of the service.");
  page.item("/usr/share/skein", "", "The demo model; also searched for vocabularies.");
  page.item("/usr/lib/skein", "", "GPU back ends.");
  page.heading("see also");
  page.paragraph("skein.toml(5), systemctl(1), journalctl(1)");
  return page.text();
}

void write_setting(roff_page& page, const config::key& key) {
  std::string text(key.help);
  if (const auto legal = key.legal(); !legal.empty()) append_sentence(text, "Accepted: " + legal);
  if (key.live) append_sentence(text, "Live");
  if (!key.flags.empty()) append_sentence(text, "Flag: " + std::string(key.flags.front()));
  page.item(key.name(), "= " + config::to_toml(key.standard()), text);
}

std::string settings_page() {
  roff_page page("skein.toml", "5", program_version());
  page.heading("name");
  page.paragraph("skein.toml - configuration of skein");
  page.heading("synopsis");
  page.item("/etc/skein/skein.toml, /etc/skein/conf.d/*.toml", "", "");
  page.heading("description");
  page.paragraph(
      "A TOML file with the sections below. Each key is shown with its default, which applies if the key is not set. A "
      "flag of skein serve overrides an environment variable (SKEIN_SERVER_PORT for server.port), which overrides the "
      "file. Files conf.d/*.toml next to it are read after it in the order of their names, and later files override "
      "earlier ones. Any setting can be given as --set KEY=VALUE.");
  page.paragraph(
      "Live keys change without a restart: SIGHUP (systemctl reload skein) reads everything again. An invalid file "
      "then "
      "changes nothing, and the log says why.");
  page.paragraph(
      "skein check-config lists all faults, each with file, line and key; skein serve --dump-config prints the merged "
      "configuration with the origin of each value.");
  page.heading("settings");
  std::string_view section;
  for (const auto& key : config::keys()) {
    if (key.for_tests) continue;
    if (key.section() != section) page.sub_heading('[' + std::string(section = key.section()) + ']');
    write_setting(page, key);
  }
  page.sub_heading("[models.NAME]");
  page.paragraph("Defaults for requests to the model of that name; one section per model.");
  for (const auto& key : config::model_keys("name")) write_setting(page, key);
  page.heading("example");
  page.example(
      "[server]\nhost = \"0.0.0.0\"\nkeys_file = \"/etc/skein/api-keys\"\n\n[model]\npath = \"/srv/model.pth\"");
  page.heading("see also");
  page.paragraph("skein(1)");
  return page.text();
}

}  // namespace

std::vector<std::string> manual_pages() { return {"skein.1", "skein.toml.5", "skein.toml", "bash", "zsh", "fish"}; }

std::string manual(std::string_view page) {
  if (page == "skein.1") return program_page();
  if (page == "skein.toml.5") return settings_page();
  if (page == "skein.toml") return config::shipped_file();
  if (page == "zsh") return zsh_completion(program_help());
  if (page == "fish") return fish_completion(program_help());
  check(page == "bash");
  return bash_completion(program_help());
}

}  // namespace skein::cli
