#pragma once
#include <cstdint>
#include <string>

namespace skein::cli {

/// A progress bar in one line on stderr, if that is a terminal. The destructor erases the line.
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
