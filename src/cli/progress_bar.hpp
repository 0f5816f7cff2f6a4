#pragma once
#include <cstdint>
#include <string>

namespace skein::cli {

/// One line on stderr that shows how far something is; nothing unless stderr is a terminal. Its end wipes the line.
class progress_bar {
 public:
  explicit progress_bar(std::string what);
  ~progress_bar();
  progress_bar(const progress_bar&) = delete;  // one line on the terminal has one owner
  progress_bar& operator=(const progress_bar&) = delete;

  void show(std::uint64_t done, std::uint64_t total);

 private:
  std::string what_;
  bool visible_;
  int percent_ = -1;
};

}  // namespace skein::cli
