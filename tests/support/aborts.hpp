#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstdio>

namespace skein::test {

/// Whether `work` aborts the process, as a failed check does. It runs in a copy of the process.
template <typename Work>
[[nodiscard]] bool aborts(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    if (!std::freopen("/dev/null", "w", stderr)) _exit(1);
    work();
    _exit(0);
  }
  int status = 0;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

}  // namespace skein::test
