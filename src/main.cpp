#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "actors/supervisor/check.hpp"
#include "actors/supervisor/supervisor.hpp"
#include "cli/command_line.hpp"
#include "cli/run.hpp"

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
    const auto command = skein::cli::parse_command_line(arguments);
    if (!command) return skein::cli::fail(command.error());
    return skein::cli::run(*command, {.serve = skein::supervisor::serve, .check = skein::supervisor::check});
  } catch (const std::exception& trouble) {
    return skein::cli::fail(trouble);
  }
}
