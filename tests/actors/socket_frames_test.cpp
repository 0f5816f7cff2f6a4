// Frames of a WebSocket, cut at every byte and put together again. What a whole server makes of them, case by case, is
// in tests/server/websocket.test.mjs.
#include "actors/connection/websocket/socket_frames.hpp"

#include <boost/test/unit_test.hpp>
#include <vector>

using namespace skein::connection;

namespace {

std::string masked(unsigned char first, std::string_view payload) {
  constexpr std::string_view mask = "\x01\x82\x33\xf4";
  std::string frame{static_cast<char>(first), static_cast<char>(0x80 | payload.size())};
  frame += mask;
  for (std::size_t i = 0; i < payload.size(); ++i) frame += static_cast<char>(payload[i] ^ mask[i % 4]);
  return frame;
}

std::string told(std::string stream, std::size_t piece) {
  frame_reader reader(100);
  std::string in, out;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    in += stream.substr(at, piece);
    while (const auto event = reader.next(in)) {
      out +=
          std::to_string(static_cast<int>(event->what)) + ':' + event->data + ':' + std::to_string(event->code) + ' ';
      if (event->what == socket_event::kind::fault) return out;
    }
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(socket_frames)

BOOST_AUTO_TEST_CASE(pieces_make_no_difference) {
  const std::string stream = masked(0x01, "h\xc3") + masked(0x89, "p") + masked(0x80, "\xa9") + masked(0x8a, "") +
                             masked(0x81, "") +
                             masked(0x88,
                                    "\x03\xe8"
                                    "bye");
  for (std::size_t piece = 1; piece <= stream.size(); ++piece)
    BOOST_TEST(told(stream, piece) == "1:p:0 0:h\xc3\xa9:0 2::0 0::0 3:bye:1000 ");
}

BOOST_AUTO_TEST_CASE(faults_are_seen_as_early_as_they_can_be) {
  const std::string wrong_text = masked(0x81,
                                        "abc\xff"
                                        "never read");
  BOOST_TEST(told(wrong_text.substr(0, 10), 1).starts_with("4:"));
  const std::string long_header{"\x81\xfe\x01\x00mask", 8};
  BOOST_TEST(told(long_header, 1).ends_with(":1009 "));
  BOOST_TEST(told(std::string("\x91", 1) + '\x80', 1).ends_with(":1002 "));
}

BOOST_AUTO_TEST_CASE(an_announced_message_takes_one_block) {
  frame_reader reader(1 << 20);
  std::string in{'\x81', '\xfe', '\xea', '\x60'};  // 60,000 bytes
  in += "mask" + std::string(50'000, 'm');
  BOOST_TEST(!reader.next(in).has_value());
  BOOST_TEST(reader.held_bytes() == 50'000u);
}

BOOST_AUTO_TEST_CASE(own_frames_have_the_shortest_length) {
  BOOST_TEST(text_frame("ab") == (std::string("\x81\x02") + "ab"));
  BOOST_TEST(text_frame(std::string(126, 'x')).substr(0, 4) == (std::string("\x81\x7e\x00\x7e", 4)));
  BOOST_TEST(text_frame(std::string(65536, 'x')).substr(0, 10) == (std::string("\x81\x7f\0\0\0\0\0\1\0\0", 10)));
  BOOST_TEST(close_frame(close_code::none, "unsaid") == (std::string("\x88\x00", 2)));
  BOOST_TEST(close_frame(1001, std::string(200, 'x')).size() == 127u);
}

BOOST_AUTO_TEST_SUITE_END()
