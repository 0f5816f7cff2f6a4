#include "tests/cli/run_skein.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <string_view>

#include "tests/support/oracle.hpp"

namespace skein::test {
namespace {

std::vector<char*> argv_of(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (auto& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

outcome run_skein(const std::vector<std::string>& arguments, const std::string& input,
                  const std::vector<std::pair<std::string, std::string>>& environment) {
  // Files in place of pipes: nothing can block, whatever the program reads or writes first.
  const temporary_folder folder;
  const std::string in = folder.path() / "in", out = folder.path() / "out", err = folder.path() / "err";
  std::ofstream(in, std::ios::binary) << input;

  std::vector<std::string> words{SKEIN_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables;
  for (char** variable = environ; *variable; ++variable)
    if (!std::string_view(*variable).starts_with("SKEIN_")) variables.emplace_back(*variable);
  variables.emplace_back("SKEIN_CUDA_LIBRARY=/nonexistent/libskein_cuda.so");
  variables.emplace_back("SKEIN_HIP_LIBRARY=/nonexistent/libskein_hip.so");
  for (const auto& [name, value] : environment) {
    std::erase_if(variables, [&](const std::string& v) { return v.starts_with(name + '='); });
    variables.push_back(name + '=' + value);
  }

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, in.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT, 0600);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, SKEIN_PROGRAM, &files, nullptr, argv_of(words).data(), argv_of(variables).data());
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw std::runtime_error("cannot start " SKEIN_PROGRAM);
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content_of(out), content_of(err)};
}

}  // namespace skein::test
