#include "base/log/log.hpp"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/log/journal.hpp"
#include "base/log/log_format.hpp"
#include "base/threads/start_thread.hpp"

namespace skein::log {
namespace {

constexpr int poll_ms = 50;
constexpr int flush_patience_ms = 1000;  // how long stop() waits for a reader that reads nothing

// The queue and its thread. A process has one log, as it has one stderr, so this is a global object.
class line_writer {
 public:
  ~line_writer() { stop(); }

  void start(const options& how) {
    check(!thread_.joinable(), "log::start was called twice");
    check(how.queue_max_lines > 0);
    const std::scoped_lock lock(mutex_);
    fd_ = how.fd;
    lines_max_ = how.queue_max_lines;
    minimum_ = how.minimum;
    line_style style = choose_style(how.shape, how.fd, std::getenv("JOURNAL_STREAM"));
    if (style.journal) style.journal = journal_.open(journal::standard_path);
    style_ = style;
    stopping_ = false;
    patience_lost_ = false;
    running_ = true;
    thread_ = start_thread("the log thread", [this] { run(); });
  }

  void stop() {
    if (!thread_.joinable()) return;
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  [[nodiscard]] level minimum() const { return minimum_; }
  void set_minimum(level minimum) { minimum_ = minimum; }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
  void drop() { ++dropped_; }

  void accept(const event& what) {
    const line_style style = style_;
    std::string line = style.journal ? to_journal_entry(what) : to_line(what, style);
    {
      const std::scoped_lock lock(mutex_);
      if (!running_) {
        if (!put(line)) ++dropped_;
        return;
      }
      if (queue_.size() + writing_ >= lines_max_) {
        ++dropped_;
        ++refused_;
      } else {
        queue_.push_back(std::move(line));
      }
    }
    wake_.notify_one();
  }

 private:
  void run() {
    sigset_t all;  // signals go to the thread that waits for them; SIGPIPE is ignored
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);

    std::vector<std::string> batch;
    std::uint64_t unreported = 0;
    while (take(batch, unreported)) {
      for (const std::string& line : batch) {
        if (put(line)) continue;
        ++dropped_;
        ++unreported;
      }
      if (unreported > 0 && put(report(unreported))) unreported = 0;
    }
  }

  // Waits for work; false if stop() was called and nothing is left. After that, lines go straight to stderr.
  bool take(std::vector<std::string>& batch, std::uint64_t& unreported) {
    batch.clear();
    std::unique_lock lock(mutex_);
    writing_ = 0;
    wake_.wait(lock, [this] { return stopping_ || refused_ > 0 || !queue_.empty(); });
    if (queue_.empty() && refused_ == 0) {
      running_ = false;
      fd_ = STDERR_FILENO;
      style_ = line_style{};
      return false;
    }
    std::swap(batch, queue_);
    writing_ = batch.size();
    unreported += std::exchange(refused_, 0);
    return true;
  }

  // Writes a line, however slowly it is read; false if the descriptor fails or stop() timed out.
  bool put(std::string_view line) {
    if (style_.load().journal) return journal_.send(line);
    int waited_ms = 0;
    while (!line.empty()) {
      pollfd ready{fd_, POLLOUT, 0};
      const int count = poll(&ready, 1, poll_ms);
      if (count == 0) {
        waited_ms = stopping_ ? waited_ms + poll_ms : 0;
        if (waited_ms >= flush_patience_ms) patience_lost_ = true;
        if (patience_lost_) return false;
        continue;
      }
      // A pipe that polls as writable accepts this many bytes without blocking, so a stuck reader cannot delay stop().
      const ssize_t written = count < 0 ? -1 : ::write(fd_, line.data(), std::min<std::size_t>(line.size(), PIPE_BUF));
      if (written >= 0) {
        line.remove_prefix(static_cast<std::size_t>(written));
        waited_ms = 0;
      } else if (errno != EINTR && errno != EAGAIN) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] std::string report(std::uint64_t count) const {
    const field fields[] = {{"count", count}};
    const event what{std::chrono::system_clock::now(), level::warning, "log lines were dropped", fields};
    const line_style style = style_;
    return style.journal ? to_journal_entry(what) : to_line(what, style);
  }

  std::atomic<level> minimum_{level::info};
  std::atomic<line_style> style_{line_style{}};
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool running_ = false;
  bool patience_lost_ = false;
  int fd_ = STDERR_FILENO;
  std::size_t lines_max_ = 0;
  std::size_t writing_ = 0;    // lines that the thread has taken and not yet written
  std::uint64_t refused_ = 0;  // lines dropped because the queue was full, not yet reported
  std::vector<std::string> queue_;
  journal journal_;
  std::thread thread_;
};

line_writer& writer() {
  static line_writer instance;
  return instance;
}

}  // namespace

void start(const options& how) { writer().start(how); }
void set_minimum(level minimum) { writer().set_minimum(minimum); }
void stop() { writer().stop(); }
bool enabled(level l) { return l != level::off && l >= writer().minimum(); }
std::uint64_t dropped_lines() { return writer().dropped(); }

void write(level l, std::string_view message, std::initializer_list<field> fields) {
  if (!enabled(l)) return;
  try {
    writer().accept({std::chrono::system_clock::now(), l, message, {fields.begin(), fields.size()}});
  } catch (const std::bad_alloc&) {
    writer().drop();
  }
}

}  // namespace skein::log
