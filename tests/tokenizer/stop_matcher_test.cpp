// The stop matcher against a definition that can be read at a glance: after each byte, does the stream end with a stop
// string? And what end of it is the beginning of one? Random stop strings over small alphabets, so that they overlap,
// repeat and contain each other; every stream is cut in every way that two cuts allow.
#include "tokenizer/stop_matcher.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/random_cases.hpp"

namespace skein::tokenizer {
namespace {

BOOST_AUTO_TEST_SUITE(stop_matcher_test)

struct scan {
  std::string text;  // released
  std::size_t held = 0;
  std::optional<std::uint32_t> stop;
  bool operator==(const scan&) const = default;
};

std::ostream& operator<<(std::ostream& out, const scan& s) {
  return out << "'" << s.text << "' held " << s.held << " stop " << (s.stop ? static_cast<int>(*s.stop) : -1);
}

scan slowly_scanned(const std::vector<std::string>& stops, const std::string& stream) {
  for (std::size_t end = 1; end <= stream.size(); ++end) {
    const std::string seen = stream.substr(0, end);
    std::optional<std::uint32_t> longest;
    for (std::uint32_t s = 0; s < stops.size(); ++s)
      if (!stops[s].empty() && seen.ends_with(stops[s]) && (!longest || stops[s].size() > stops[*longest].size()))
        longest = s;
    if (longest) return {seen.substr(0, end - stops[*longest].size()), 0, longest};
  }
  std::size_t held = 0;
  for (const std::string& stop : stops)
    for (std::size_t n = 1; n < stop.size(); ++n)
      if (stream.ends_with(stop.substr(0, n))) held = std::max(held, n);
  return {stream.substr(0, stream.size() - held), held, {}};
}

scan scanned(const std::vector<std::string>& stops, const std::vector<std::string_view>& pieces) {
  stop_matcher matcher(stops);
  scan seen;
  for (const auto piece : pieces) seen.stop = matcher.push(piece, seen.text).stop;
  seen.held = matcher.held();
  return seen;
}

BOOST_AUTO_TEST_CASE(known_streams) {
  const struct {
    std::vector<std::string> stops;
    std::string stream;
    scan expected;
  } cases[] = {
      {{}, "anything", {"anything", 0, {}}},
      {{"\n\nUser:"}, "Yes.\n\nUser: and", {"Yes.", 0, 0}},
      {{"\n\nUser:"}, "Yes.\n\nUse", {"Yes.", 5, {}}},
      {{"\n\nUser:"}, "a\n\n\nUser:", {"a\n", 0, 0}},
      {{"abab"}, "aabaabab", {"aaba", 0, 0}},
      {{"aab"}, "aaaab", {"aa", 0, 0}},
      {{"abcd", "bc"}, "xabcd", {"xa", 0, 1}},    // bc is complete first
      {{"c", "abc", "bc"}, "xabc", {"x", 0, 1}},  // all end at one byte: the longest
      {{"ab", "ab"}, "ab", {"", 0, 0}},           // equal ones: the first
      {{"abx", "bcdy"}, "abcd", {"a", 3, {}}},    // the longer hold passes on to the other string
      {{"", "b"}, "ab", {"a", 0, 1}},             // an empty one is never found
      {{""}, "ab", {"ab", 0, {}}},
      {{"\xad\xe4"}, "\xe4\xb8\xad\xe4\xb8\xad", {"\xe4\xb8", 0, 0}},  // bytes, not characters
      {{std::string("\0x", 2)}, std::string("a\0\0x", 4), {std::string("a\0", 2), 0, 0}},
  };
  for (const auto& c : cases) {
    BOOST_TEST(scanned(c.stops, {c.stream}) == c.expected);
    BOOST_TEST(slowly_scanned(c.stops, c.stream) == c.expected);
  }
}

BOOST_AUTO_TEST_CASE(random_streams_cut_anywhere) {
  test::random_cases random;
  for (int round = 0; round < 3000; ++round) {
    const std::string alphabet = random.below(3) ? "ab" : "abc";
    std::vector<std::string> stops(1 + random.below(5));
    for (auto& stop : stops) stop = random.text(1 + random.below(7), alphabet);
    const std::string stream = random.text(random.below(24), alphabet);
    const std::string_view bytes = stream;
    const scan expected = slowly_scanned(stops, stream);
    for (std::size_t a = 0; a <= bytes.size(); ++a)
      for (std::size_t b = a; b <= bytes.size(); ++b)
        BOOST_TEST_REQUIRE(scanned(stops, {bytes.substr(0, a), bytes.substr(a, b - a), bytes.substr(b)}) == expected);
  }
}

BOOST_AUTO_TEST_CASE(what_is_held_back_is_exact_after_every_byte) {
  test::random_cases random;
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> stops(1 + random.below(4));
    for (auto& stop : stops) stop = random.text(1 + random.below(6), "ab");
    const std::string stream = random.text(30, "abc");
    stop_matcher matcher(stops);
    scan seen;
    for (std::size_t i = 0; i < stream.size(); ++i) {
      seen.stop = matcher.push(std::string_view(stream).substr(i, 1), seen.text).stop;
      seen.held = matcher.held();
      BOOST_TEST_REQUIRE(seen == slowly_scanned(stops, stream.substr(0, i + 1)));
    }
  }
}

/// The stream after a text that was released before.
scan slowly_followed(const std::vector<std::string>& stops, const std::string& text, const std::string& stream) {
  for (std::size_t end = 1; end <= stream.size(); ++end) {
    const std::string seen = text + stream.substr(0, end);
    std::optional<std::uint32_t> longest;
    for (std::uint32_t s = 0; s < stops.size(); ++s)
      if (seen.ends_with(stops[s]) && (!longest || stops[s].size() > stops[*longest].size())) longest = s;
    if (longest) return {stream.substr(0, end - std::min(end, stops[*longest].size())), 0, longest};
  }
  std::size_t held = 0;
  for (const std::string& stop : stops)
    for (std::size_t n = 1; n < stop.size(); ++n)
      if ((text + stream).ends_with(stop.substr(0, n))) held = std::max(held, std::min(n, stream.size()));
  return {stream.substr(0, stream.size() - held), held, {}};
}

BOOST_AUTO_TEST_CASE(a_stop_string_may_begin_in_the_text_before) {
  stop_matcher matcher({"###"});
  std::string out;
  matcher.follow("ab##");
  const auto found = matcher.push("#c", out);
  BOOST_TEST((found.stop == 0u));
  BOOST_TEST(found.dropped == 1u);
  BOOST_TEST(out == "");

  test::random_cases random;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops(1 + random.below(4));
    for (auto& stop : stops) stop = random.text(1 + random.below(6), "ab");
    const std::string text = random.text(random.below(9), "ab"), stream = random.text(random.below(12), "ab");
    const std::string_view bytes = stream;
    const scan expected = slowly_followed(stops, text, stream);
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
      stop_matcher after(stops);
      after.follow(text);
      scan seen;
      for (const auto piece : {bytes.substr(0, cut), bytes.substr(cut)}) seen.stop = after.push(piece, seen.text).stop;
      seen.held = after.held();
      BOOST_TEST_REQUIRE(seen == expected);
    }
  }
}

BOOST_AUTO_TEST_CASE(after_a_stop_nothing_comes) {
  stop_matcher matcher({"stop"});
  std::string out;
  BOOST_TEST((matcher.push("go stop on", out).stop == 0u));
  BOOST_TEST((matcher.push(" and on", out).stop == 0u));
  matcher.finish(out);
  BOOST_TEST((matcher.push("st", out).stop == 0u));
  BOOST_TEST(out == "go ");
  BOOST_TEST(matcher.held() == 0u);
}

BOOST_AUTO_TEST_CASE(the_end_of_the_stream_releases_what_was_held) {
  stop_matcher matcher({"stop"});
  std::string out;
  BOOST_TEST(!matcher.push("a st", out).stop);
  BOOST_TEST(out == "a ");
  matcher.finish(out);
  BOOST_TEST(out == "a st");
  BOOST_TEST(!matcher.push("op", out).stop);  // the stream before has ended
  BOOST_TEST(out == "a stop");
}

BOOST_AUTO_TEST_CASE(many_long_stops_over_a_long_stream) {
  std::vector<std::string> stops;
  for (int i = 0; i < 16; ++i) stops.push_back(std::string(255, 'a') + static_cast<char>('b' + i));
  const std::string stream(1 << 20, 'a');
  stop_matcher matcher(stops);
  std::string out;
  for (std::size_t at = 0; at < stream.size(); at += 3)
    BOOST_TEST_REQUIRE(!matcher.push(std::string_view(stream).substr(at, 3), out).stop);
  BOOST_TEST(matcher.held() == 255u);
  BOOST_TEST((matcher.push("f", out).stop == 4u));
  BOOST_TEST(out.size() == stream.size() - 255);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::tokenizer
