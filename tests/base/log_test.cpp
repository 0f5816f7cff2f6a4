// The log's queue and thread, over a pipe: lines arrive whole and in order, a reader that takes nothing never holds up
// a caller, and every line is either delivered or counted.
#include "base/log/log.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <charconv>
#include <map>
#include <thread>
#include <vector>

#include "tests/support/failing_new.hpp"

namespace logging = skein::log;

namespace {

class test_pipe {
 public:
  test_pipe() {
    BOOST_TEST_REQUIRE(pipe(ends_) == 0);
    fcntl(ends_[1], F_SETPIPE_SZ, 4096);
  }
  ~test_pipe() {
    close_writing();
    close_reading();
  }
  test_pipe(const test_pipe&) = delete;  // one owner closes
  test_pipe& operator=(const test_pipe&) = delete;

  [[nodiscard]] int writing() const { return ends_[1]; }
  void close_writing() { close_once(ends_[1]); }
  void close_reading() { close_once(ends_[0]); }

  /// All lines until the writing end is closed.
  [[nodiscard]] std::vector<std::string> read_lines() const {
    std::vector<std::string> lines;
    std::string text;
    std::array<char, 700> buffer;
    for (ssize_t n; (n = read(ends_[0], buffer.data(), buffer.size())) > 0;) text.append(buffer.data(), n);
    for (std::size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
      lines.push_back(text.substr(0, end));
    BOOST_TEST(text.empty());
    return lines;
  }

 private:
  static void close_once(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
  int ends_[2] = {-1, -1};
};

logging::options over(const test_pipe& pipe, std::uint32_t queue_max_lines = 8192) {
  return {logging::level::info, logging::format::systemd, pipe.writing(), queue_max_lines};
}

// Stops the log and returns what the pipe got.
std::vector<std::string> finish(test_pipe& pipe) {
  std::vector<std::string> lines;
  std::thread reader([&] { lines = pipe.read_lines(); });
  logging::stop();
  pipe.close_writing();
  reader.join();
  return lines;
}

std::uint64_t number_after(const std::string& line, std::string_view what) {
  std::uint64_t value = 0;
  const auto at = line.find(what);
  BOOST_TEST_REQUIRE(at != std::string::npos);
  std::from_chars(line.data() + at + what.size(), line.data() + line.size(), value);
  return value;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(log_queue)

BOOST_AUTO_TEST_CASE(lines_arrive_in_order) {
  test_pipe pipe;
  logging::start(over(pipe));
  logging::info("first", {{"n", 1}});
  logging::warning("second");
  logging::error("third", {{"why", "disk full"}});
  const std::vector<std::string> expected{"<6>first n=1", "<4>second", "<3>third why=\"disk full\""};
  BOOST_TEST(finish(pipe) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_pipe_gets_json_by_default) {
  test_pipe pipe;
  unsetenv("JOURNAL_STREAM");
  logging::start({logging::level::info, logging::format::automatic, pipe.writing()});
  logging::info("hello");
  const auto lines = finish(pipe);
  BOOST_TEST_REQUIRE(lines.size() == 1u);
  BOOST_TEST(lines[0].starts_with("{\"ts\":\""));
  BOOST_TEST(lines[0].ends_with("\"level\":\"info\",\"msg\":\"hello\"}"));
}

BOOST_AUTO_TEST_CASE(lines_below_the_minimum_are_not_written) {
  test_pipe pipe;
  logging::options how = over(pipe);
  how.minimum = logging::level::warning;
  logging::start(how);
  BOOST_TEST(!logging::enabled(logging::level::debug));
  BOOST_TEST(!logging::enabled(logging::level::info));
  BOOST_TEST(logging::enabled(logging::level::warning));
  BOOST_TEST(logging::enabled(logging::level::error));
  BOOST_TEST(!logging::enabled(logging::level::off));
  logging::info("quiet");
  logging::error("loud");
  BOOST_TEST(finish(pipe) == std::vector<std::string>{"<3>loud"});
}

BOOST_AUTO_TEST_CASE(a_full_queue_drops_and_counts) {
  constexpr std::uint64_t written = 1000;
  test_pipe pipe;
  const std::uint64_t dropped_before = logging::dropped_lines();
  logging::start(over(pipe, 8));
  const std::string filler(300, 'x');
  for (std::uint64_t n = 0; n < written; ++n)
    logging::info("line", {{"n", n}, {"filler", filler}});  // without a reader
  const std::uint64_t dropped = logging::dropped_lines() - dropped_before;
  // The pipe holds 4 KiB, the queue 8 lines.
  BOOST_TEST(dropped >= written - 8 - 4096 / 300 - 1);

  std::uint64_t delivered = 0;
  std::uint64_t reported = 0;
  std::uint64_t next = 0;
  for (const std::string& line : finish(pipe)) {
    if (line.starts_with("<4>log lines were dropped")) {
      reported += number_after(line, "count=");
      continue;
    }
    const std::uint64_t n = number_after(line, " n=");
    BOOST_TEST(n >= next);
    next = n + 1;
    ++delivered;
    BOOST_TEST(line.ends_with(filler));
  }
  BOOST_TEST(delivered >= 8u);
  BOOST_TEST(delivered + dropped == written);
  BOOST_TEST(reported == dropped);
  BOOST_TEST(logging::dropped_lines() - dropped_before == dropped);
}

BOOST_AUTO_TEST_CASE(a_line_without_memory_is_dropped_and_counted) {
  test_pipe pipe;
  const std::uint64_t dropped_before = logging::dropped_lines();
  logging::start(over(pipe));
  const std::string filler(300, 'x');
  {
    const skein::test::failing_new lack(100);
    logging::error("line", {{"filler", filler}});
  }
  logging::error("next");
  BOOST_TEST(finish(pipe) == std::vector<std::string>{"<3>next"});
  BOOST_TEST(logging::dropped_lines() - dropped_before == 1u);
}

BOOST_AUTO_TEST_CASE(stop_gives_up_on_a_reader_that_takes_nothing) {
  test_pipe pipe;
  const std::uint64_t dropped_before = logging::dropped_lines();
  logging::start(over(pipe));
  const std::string filler(1000, 'x');
  for (int n = 0; n < 20; ++n) logging::info("line", {{"filler", filler}});
  logging::stop();
  BOOST_TEST(logging::dropped_lines() - dropped_before >= 15u);
}

BOOST_AUTO_TEST_CASE(a_reader_that_left_costs_lines_only) {
  test_pipe pipe;
  pipe.close_reading();
  const std::uint64_t dropped_before = logging::dropped_lines();
  logging::start(over(pipe));
  for (int n = 0; n < 5; ++n) logging::info("line");
  logging::stop();
  BOOST_TEST(logging::dropped_lines() - dropped_before == 5u);
}

BOOST_AUTO_TEST_CASE(lines_longer_than_the_pipe_arrive_whole_even_without_blocking) {
  test_pipe pipe;
  fcntl(pipe.writing(), F_SETFL, O_NONBLOCK);
  logging::start(over(pipe));
  const std::string value(8000, 'y');
  for (int n = 0; n < 10; ++n) logging::info("long", {{"value", value}});
  const auto lines = finish(pipe);
  BOOST_TEST(lines.size() == 10u);
  for (const std::string& line : lines) BOOST_TEST(line == "<6>long value=" + value);
}

BOOST_AUTO_TEST_CASE(many_threads_write_at_once) {
  constexpr std::uint64_t threads = 4;
  constexpr std::uint64_t lines_each = 500;
  test_pipe pipe;
  logging::start(over(pipe));
  std::vector<std::string> lines;
  std::thread reader([&] { lines = pipe.read_lines(); });
  {
    std::vector<std::jthread> writers;
    for (std::uint64_t t = 0; t < threads; ++t)
      writers.emplace_back([t] {
        for (std::uint64_t n = 0; n < lines_each; ++n) logging::info("line", {{"thread", t}, {"n", n}});
      });
  }
  logging::stop();
  pipe.close_writing();
  reader.join();

  std::map<std::uint64_t, std::uint64_t> next;
  for (const std::string& line : lines) {
    const std::uint64_t thread = number_after(line, "thread=");
    BOOST_TEST(number_after(line, " n=") == next[thread]++);
  }
  BOOST_TEST(next.size() == threads);
  for (const auto& [thread, count] : next) BOOST_TEST(count == lines_each);
}

BOOST_AUTO_TEST_CASE(without_a_writer_lines_go_to_stderr_at_once) {
  test_pipe pipe;
  logging::stop();  // harmless
  const int kept = dup(STDERR_FILENO);
  dup2(pipe.writing(), STDERR_FILENO);
  logging::error("direct", {{"n", 1}});
  dup2(kept, STDERR_FILENO);
  close(kept);
  pipe.close_writing();
  const auto lines = pipe.read_lines();
  BOOST_TEST_REQUIRE(lines.size() == 1u);
  BOOST_TEST(lines[0].ends_with(" error   direct n=1"));
}

BOOST_AUTO_TEST_SUITE_END()
