// What a log line looks like in each shape, that no value can break out of it, and how the shape is chosen.
#include "base/log/log_format.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <ctime>
#include <limits>

using namespace skein::log;

namespace {

// 2026-01-31T12:34:56.789Z
constexpr std::chrono::system_clock::time_point noon{std::chrono::milliseconds(1769862896789)};

std::string line(const line_style& style, std::string_view message, std::initializer_list<field> fields = {},
                 level severity = level::info) {
  return to_line({noon, severity, message, {fields.begin(), fields.size()}}, style);
}

std::string json(std::string_view message, std::initializer_list<field> fields = {}) {
  return line({format::json, false}, message, fields);
}

std::string systemd(std::string_view message, std::initializer_list<field> fields = {}, level severity = level::info) {
  return line({format::systemd, false}, message, fields, severity);
}

// The JSON line of a message `text`, without what stands around it.
std::string escaped(std::string_view text) {
  const std::string whole = json(text);
  const std::string before = R"({"ts":"2026-01-31T12:34:56.789Z","level":"info","msg":")";
  BOOST_TEST_REQUIRE(whole.starts_with(before));
  BOOST_TEST_REQUIRE(whole.ends_with("\"}\n"));
  return whole.substr(before.size(), whole.size() - before.size() - 3);
}

struct utc_zone {
  utc_zone() {
    setenv("TZ", "UTC", 1);
    tzset();
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(log_format, *boost::unit_test::fixture<utc_zone>())

BOOST_AUTO_TEST_CASE(json_is_one_object_a_line) {
  BOOST_TEST(
      json("request done", {{"route", "/v1/models"},
                            {"status", 200},
                            {"bytes", std::uint64_t{18446744073709551615u}},
                            {"offset", std::numeric_limits<std::int64_t>::min()},
                            {"ttft_ms", 1.5},
                            {"stream", true}}) ==
      "{\"ts\":\"2026-01-31T12:34:56.789Z\",\"level\":\"info\",\"msg\":\"request done\",\"route\":\"/v1/models\","
      "\"status\":200,\"bytes\":18446744073709551615,\"offset\":-9223372036854775808,\"ttft_ms\":1.5,"
      "\"stream\":true}\n");
}

BOOST_AUTO_TEST_CASE(json_has_no_infinity) {
  const std::string whole =
      json("m", {{"a", std::numeric_limits<double>::infinity()}, {"b", std::numeric_limits<double>::quiet_NaN()}});
  BOOST_TEST(whole.ends_with(",\"a\":null,\"b\":null}\n"));
}

BOOST_AUTO_TEST_CASE(strings_are_escaped) {
  BOOST_TEST(escaped("say \"hi\" \\ bye") == R"(say \"hi\" \\ bye)");
  BOOST_TEST(escaped("a\nb\r\tc") == R"(a\nb\r\tc)");
  BOOST_TEST(escaped(std::string_view("\0\x1b[2J\x7f", 6)) == R"(\u0000\u001b[2J\u007f)");
  BOOST_TEST(escaped("\xc2\x9b") == R"(\u009b)");  // one-character form of ESC [
  BOOST_TEST(escaped("a\xe2\x80\xae"
                     "b\xe2\x81\xa6\xd8\x9c") == R"(a\u202eb\u2066\u061c)");  // these turn what follows
  BOOST_TEST(escaped("a\xe2\x80\xa8\xe2\x80\xa9") == R"(a\u2028\u2029)");     // these end a line in some programs
  BOOST_TEST(json("m", {{"a\"b", 1}}).ends_with(",\"a\\\"b\":1}\n"));
}

BOOST_AUTO_TEST_CASE(utf8_passes_and_what_is_not_is_replaced) {
  const std::string bad = "\xef\xbf\xbd";
  BOOST_TEST(escaped("\xc2\xa0 \xc3\xa9 \xe4\xbd\xa0 \xf0\x9f\xa6\xa2") ==
             "\xc2\xa0 \xc3\xa9 \xe4\xbd\xa0 \xf0\x9f\xa6\xa2");
  BOOST_TEST(escaped("a\xff"
                     "b") == "a" + bad + "b");
  BOOST_TEST(escaped("\xc3") == bad);  // cut short
  BOOST_TEST(escaped("\xe4\xbd") == bad);
  BOOST_TEST(escaped("\xf0\x9f\xa6") == bad);
  BOOST_TEST(escaped("\xc0\xaf") == bad + bad);  // overlong
  BOOST_TEST(escaped("\xe0\x80\xaf") == bad + bad + bad);
  BOOST_TEST(escaped("\xed\xa0\x80") == bad + bad + bad);            // surrogate
  BOOST_TEST(escaped("\xf4\x90\x80\x80") == bad + bad + bad + bad);  // above U+10FFFF
  BOOST_TEST(escaped("\xf4\x8f\xbf\xbf") == "\xf4\x8f\xbf\xbf");
  BOOST_TEST(escaped("\x80z") == bad + "z");
}

BOOST_AUTO_TEST_CASE(long_strings_are_cut) {
  std::string expected(8192, 'x');
  BOOST_TEST(escaped(std::string(8192, 'x')) == expected);
  expected += "\xe2\x80\xa6";
  BOOST_TEST(escaped(std::string(8193, 'x')) == expected);
  BOOST_TEST(systemd("m", {{"v", std::string(9000, 'x')}}).size() < 8300);
}

BOOST_AUTO_TEST_CASE(text_is_short_and_coloured_on_request) {
  BOOST_TEST(line({format::text, false}, "model loaded", {{"name", "g1"}, {"bytes", 12u}}) ==
             "12:34:56.789 info    model loaded name=g1 bytes=12\n");
  BOOST_TEST(line({format::text, true}, "slow \"disk\"", {}, level::warning) ==
             "12:34:56.789 \x1b[33mwarning\x1b[0m slow \"disk\"\n");
}

BOOST_AUTO_TEST_CASE(systemd_has_a_priority_and_no_time) {
  BOOST_TEST(systemd("ready", {{"port", 8000}}) == "<6>ready port=8000\n");
  BOOST_TEST(systemd("x", {}, level::debug) == "<7>x\n");
  BOOST_TEST(systemd("x", {}, level::warning) == "<4>x\n");
  BOOST_TEST(systemd("x", {}, level::error) == "<3>x\n");
}

BOOST_AUTO_TEST_CASE(pairs_are_quoted_when_they_must_be) {
  BOOST_TEST(systemd("m", {{"a", ""}, {"b", "two words"}, {"c", "x=y"}, {"d", "q\"q"}, {"e", "1\n<3>forged"}}) ==
             "<6>m a=\"\" b=\"two words\" c=\"x=y\" d=\"q\\\"q\" e=\"1\\n<3>forged\"\n");
  BOOST_TEST(systemd("one\ntwo") == "<6>one\\ntwo\n");
}

BOOST_AUTO_TEST_CASE(the_shape_follows_the_descriptor) {
  int ends[2];
  BOOST_TEST_REQUIRE(pipe(ends) == 0);
  struct stat status;
  BOOST_TEST_REQUIRE(fstat(ends[1], &status) == 0);
  const std::string journal = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
  const std::string other = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino + 1);
  const auto shape = [&](format wanted, const char* stream) { return choose_style(wanted, ends[1], stream).shape; };
  BOOST_TEST((shape(format::automatic, nullptr) == format::json));
  BOOST_TEST((shape(format::automatic, other.c_str()) == format::json));
  BOOST_TEST((shape(format::automatic, "") == format::json));
  BOOST_TEST((shape(format::automatic, journal.c_str()) == format::systemd));
  BOOST_TEST((shape(format::text, journal.c_str()) == format::text));
  BOOST_TEST(!choose_style(format::text, ends[1], nullptr).colour);
  close(ends[0]);
  close(ends[1]);
}

BOOST_AUTO_TEST_CASE(a_terminal_gets_coloured_text) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  BOOST_TEST_REQUIRE(terminal >= 0);
  const line_style style = choose_style(format::automatic, terminal, nullptr);
  BOOST_TEST((style.shape == format::text));
  BOOST_TEST(style.colour);
  close(terminal);
}

BOOST_AUTO_TEST_SUITE_END()
