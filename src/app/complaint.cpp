#include "app/complaint.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/log/log_format.hpp"

namespace skein::cli {

void complain(const std::string& what) {
  const bool journal = log::choose_style(log::format::automatic, STDERR_FILENO, std::getenv("JOURNAL_STREAM")).journal;
  std::fprintf(stderr, "%sskein: %s\n", journal ? "<3>" : "", what.c_str());
}

}  // namespace skein::cli
