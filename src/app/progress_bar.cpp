#include "app/progress_bar.hpp"

#include <unistd.h>

#include <cstdio>

namespace skein::cli {

progress_bar::progress_bar(std::string what) : what_(std::move(what)), visible_(isatty(STDERR_FILENO) == 1) {}

progress_bar::~progress_bar() {
  if (percent_ >= 0) std::fputs("\r\033[K", stderr);
}

void progress_bar::show(std::uint64_t done, std::uint64_t total) {
  const int percent =
      total == 0 ? 100 : static_cast<int>(100.0 * static_cast<double>(done) / static_cast<double>(total));
  if (!visible_ || percent == percent_) return;
  percent_ = percent;
  constexpr int width = 40;
  const int full = percent * width / 100;
  std::fprintf(stderr, "\r%s [%s%s] %3d %%", what_.c_str(), std::string(full, '#').c_str(),
               std::string(width - full, ' ').c_str(), percent);
  std::fflush(stderr);
}

}  // namespace skein::cli
