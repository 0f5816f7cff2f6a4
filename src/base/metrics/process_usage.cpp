#include "base/metrics/process_usage.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace skein {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

/// Unix time of the system boot.
double boot_time() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("btime ")) return std::strtod(line.c_str() + 6, nullptr);
  return 0;
}

/// Linux says how many there are from 6.2 on; before, each has to be visited.
std::uint64_t count_open_files() {
  struct stat folder = {};
  if (stat("/proc/self/fd", &folder) == 0 && folder.st_size > 0) return static_cast<std::uint64_t>(folder.st_size);
  std::error_code trouble;
  std::filesystem::directory_iterator each("/proc/self/fd", trouble);
  std::uint64_t count = 0;
  for (; !trouble && each != std::filesystem::directory_iterator(); each.increment(trouble)) ++count;
  return count > 0 ? count - 1 : 0;  // without the descriptor that reads the directory
}

/// Fields of /proc/self/stat after the process name, which may contain any character. The first is the state, field 3
/// in proc(5).
void read_stat(process_usage& to) {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return;
  std::istringstream rest(text.substr(name_end + 1));
  std::string field;
  for (int number = 3; rest >> field; ++number) {
    const auto value = std::strtoull(field.c_str(), nullptr, 10);
    if (number == 20) to.threads = value;
    if (number == 22) {
      static const double booted = boot_time();  // /proc/stat is long on machines with many processors
      to.start_time_seconds = booted + static_cast<double>(value) / static_cast<double>(sysconf(_SC_CLK_TCK));
    }
    if (number == 23) to.virtual_bytes = value;
    if (number == 24) to.resident_bytes = value * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  }
}

}  // namespace

process_usage measure_process() {
  process_usage to;
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) == 0) to.cpu_seconds = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) to.open_files_max = files.rlim_cur;
  to.open_files = count_open_files();
  read_stat(to);
  return to;
}

}  // namespace skein
