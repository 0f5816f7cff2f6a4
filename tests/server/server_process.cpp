#include "tests/server/server_process.hpp"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tests/support/http_client.hpp"

namespace skein::test {
namespace {

using namespace std::chrono_literals;

/// Asks `good` again and again; false when that took longer than `limit`.
template <typename Predicate>
bool eventually(std::chrono::seconds limit, Predicate good) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!good()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

std::uint64_t number_at(std::string_view text, std::size_t at) {
  std::uint64_t value = 0;
  if (std::from_chars(text.data() + at, text.data() + text.size(), value).ec != std::errc())
    throw std::runtime_error("no number in " + std::string(text));
  return value;
}

/// The number `name` in the flat object `section` of a JSON text that this server wrote.
std::uint64_t counter(std::string_view json, const std::string& section, const std::string& name) {
  const std::string opening = '"' + section + "\":{", key = '"' + name + "\":";
  const std::size_t from = json.find(opening);
  const std::size_t at = json.find(key, from);
  if (from == std::string_view::npos || at == std::string_view::npos)
    throw std::runtime_error("no " + section + '.' + name + " in " + std::string(json));
  return number_at(json, at + key.size());
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (auto& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

server_process::server_process(const std::string& program, const std::vector<std::string>& arguments)
    : log_(::memfd_create("skein log", MFD_CLOEXEC)) {
  std::vector<std::string> words{program, "serve", "--port", "0"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables;
  for (char** variable = environ; *variable; ++variable)
    if (!std::string_view(*variable).starts_with("SKEIN_")) variables.emplace_back(*variable);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, log_, STDERR_FILENO);
  const int failed =
      posix_spawn(&process_, program.c_str(), &files, nullptr, pointers(words).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw std::runtime_error("cannot start " + program);

  constexpr std::string_view line = R"("msg":"ready")", key = R"("port":)";
  const bool serves = eventually(30s, [&] {
    const std::string text = log();
    const std::size_t found = text.find(line);
    const std::size_t at = text.find(key, found);
    if (found == std::string::npos || text.find('\n', found) == std::string::npos) return false;
    port_ = static_cast<std::uint16_t>(number_at(text, at + key.size()));
    return true;
  });
  if (!serves) throw std::runtime_error("skein does not get ready:\n" + log());
}

server_process::~server_process() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  ::close(log_);
}

std::string server_process::log() const {
  std::string text;
  std::array<char, 65536> buffer;
  for (ssize_t count = 1; count > 0;) {
    count = ::pread(log_, buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

server_counters server_process::counters() const {
  http_client client(port_);
  client.request("GET", "/health", "", "Connection: close\r\n");
  const auto response = client.read_response();
  if (!response) throw std::runtime_error("no answer from /health");
  const std::string& json = response->body;
  server_counters c;
  c.slots_used = counter(json, "slots", "used");
  c.running = counter(json, "requests", "running");
  c.waiting = counter(json, "requests", "waiting");
  c.parked = counter(json, "requests", "parked");
  c.paused = counter(json, "requests", "paused");
  c.finished = counter(json, "requests", "finished");
  c.rejected = counter(json, "requests", "rejected");
  c.cancelled = counter(json, "requests", "cancelled");
  c.preempted = counter(json, "requests", "preempted");
  c.generated = counter(json, "tokens", "generated");
  c.connections_open = counter(json, "connections", "open") - 1;
  return c;
}

server_counters server_process::wait_for(const std::function<bool(const server_counters&)>& good) const {
  server_counters now;
  if (!eventually(30s, [&] { return good(now = counters()); })) {
    std::ostringstream seen;
    seen << "the counters never got there: slots " << now.slots_used << ", running " << now.running << ", waiting "
         << now.waiting << ", parked " << now.parked << ", paused " << now.paused << ", connections "
         << now.connections_open;
    throw std::runtime_error(seen.str());
  }
  return now;
}

std::string server_process::status(std::string_view file) const {
  std::ifstream from("/proc/" + std::to_string(process_) + '/' + std::string(file));
  return {std::istreambuf_iterator<char>(from), {}};
}

std::size_t server_process::resident_bytes() const {
  const std::string text = status("status");
  constexpr std::string_view key = "VmRSS:";
  const std::size_t at = text.find_first_not_of(" \t", text.find(key) + key.size());
  return number_at(text, at) * 1024;
}

std::size_t server_process::descriptors() const {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(process_) + "/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

bool server_process::wait_for_descriptors(std::size_t count) const {
  return eventually(30s, [&] { return descriptors() == count; });
}

double server_process::processor_seconds() const {
  const std::string text = status("stat");
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;  // utime and stime are fields 14 and 15, see proc(5)
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void server_process::signal(int number) const { ::kill(process_, number); }

int server_process::wait_for_exit() {
  int how = 0;
  if (!eventually(60s, [&] { return ::waitpid(process_, &how, WNOHANG) == process_; }))
    throw std::runtime_error("skein does not end:\n" + log());
  process_ = -1;
  return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

}  // namespace skein::test
