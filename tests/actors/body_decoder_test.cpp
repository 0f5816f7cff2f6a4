// Shows that bodies come out the same however the network cuts them, and that every framing limit holds. Each case is
// fed whole and byte by byte.
#include "actors/connection/http/body_decoder.hpp"

#include <boost/test/unit_test.hpp>

namespace skein::connection {
namespace {

struct outcome {
  unsigned status = 0;  ///< of the refusal, or 0
  bool done = false;
  std::string body;
  std::size_t left_over = 0;
};

outcome decode(const body_framing& framing, std::string_view bytes, std::size_t at_once,
               const connection_limits& limits = {}) {
  body_decoder decoder(framing, limits);
  while (!bytes.empty() && !decoder.done()) {
    const std::string_view piece = bytes.substr(0, at_once);
    const auto taken = decoder.take(piece);
    if (!taken) return {taken.error().status, false, "", 0};
    BOOST_TEST((decoder.done() || *taken == piece.size()));
    bytes.remove_prefix(*taken);
  }
  return {0, decoder.done(), decoder.release(), bytes.size()};
}

outcome decode_both_ways(const body_framing& framing, std::string_view bytes, const connection_limits& limits = {}) {
  const outcome whole = decode(framing, bytes, bytes.size() + 1, limits);
  const outcome bytewise = decode(framing, bytes, 1, limits);
  BOOST_TEST(whole.status == bytewise.status);
  BOOST_TEST(whole.body == bytewise.body);
  BOOST_TEST(whole.done == bytewise.done);
  BOOST_TEST(whole.left_over == bytewise.left_over);
  return whole;
}

constexpr body_framing chunked{.chunked = true};

BOOST_AUTO_TEST_CASE(a_sized_body_ends_at_its_size) {
  const auto got = decode_both_ways({.content_length = 5}, "helloGET /");
  BOOST_TEST(got.done);
  BOOST_TEST(got.body == "hello");
  BOOST_TEST(got.left_over == 5u);
  BOOST_TEST(!decode_both_ways({.content_length = 5}, "hell").done);
  BOOST_TEST(body_decoder({}, {}).done());
}

BOOST_AUTO_TEST_CASE(a_file_may_be_longer) {
  connection_limits limits;
  limits.body_bytes_max = 4;
  limits.request_wire_bytes_max = 8;
  limits.upload_bytes_max = 20;
  const std::string bytes = "e\r\nfourteen bytes\r\n0\r\n\r\n";
  BOOST_TEST(decode_both_ways(chunked, bytes, limits).status == 413u);
  BOOST_TEST(decode_both_ways({.chunked = true, .upload = true}, bytes, limits).body == "fourteen bytes");
  limits.upload_bytes_max = 13;
  BOOST_TEST(decode_both_ways({.chunked = true, .upload = true}, bytes, limits).status == 413u);
}

BOOST_AUTO_TEST_CASE(chunks_are_joined) {
  for (const char* bytes : {"5\r\nhello\r\n0\r\n\r\nGET /", "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\nGET /",
                            "00005\r\nhello\r\n000\r\n\r\nGET /", "5;a=b;c=\"d\"\r\nhello\r\n0;x\r\n\r\nGET /",
                            "5\r\nhello\r\n0\r\nAuthorization: Bearer root\r\nX: y\r\n\r\nGET /"})
    BOOST_TEST_CONTEXT(bytes) {
      const auto got = decode_both_ways(chunked, bytes);
      BOOST_TEST(got.done);
      BOOST_TEST(got.body == "hello");
      BOOST_TEST(got.left_over == 5u);
    }
  BOOST_TEST(decode_both_ways(chunked, "A\r\n0123456789\r\n0\r\n\r\n").body == "0123456789");
  BOOST_TEST(decode_both_ways(chunked, "0\r\n\r\n").done);
}

BOOST_AUTO_TEST_CASE(malformed_chunks_are_refused) {
  for (const char* bytes : {"\r\n", "x\r\n", ";\r\n", "-1\r\n", "+1\r\n", "0x1\r\n", " 1\r\n", "1 \r\n", "1\n", "1\r\r",
                            "1\r\nab", "1\r\na\n", "1\r\na\r\r", "1;\n", "1;\x01\r\n", "00000000000000001\r\n",
                            "0\r\n\n", "0\r\nX: y\n", "0\r\nX\x01\r\n"})
    BOOST_TEST_CONTEXT(bytes) BOOST_TEST(decode_both_ways(chunked, bytes).status == 400u);
}

BOOST_AUTO_TEST_CASE(a_chunk_above_the_limit_is_refused_when_it_is_announced) {
  connection_limits limits;
  limits.body_bytes_max = 10;
  BOOST_TEST(decode_both_ways(chunked, "a\r\n0123456789\r\n0\r\n\r\n", limits).done);
  BOOST_TEST(decode_both_ways(chunked, "b\r\n", limits).status == 413u);
  BOOST_TEST(decode_both_ways(chunked, "6\r\n012345\r\n5\r\n", limits).status == 413u);
  BOOST_TEST(decode_both_ways(chunked, "ffffffffffffffff\r\n", limits).status == 413u);
}

// The memory that an allocator has given away for a body: its block and those that were outgrown.
BOOST_AUTO_TEST_CASE(a_body_holds_no_more_memory_than_it_says) {
  arriving_bytes announced(300'000);
  for (int i = 0; i < 300; ++i) announced.append(std::string(1000, 'x'));
  BOOST_TEST(announced.held_bytes() == 300'000u);
  BOOST_TEST(announced.so_far().capacity() == 300'000u);  // in one block from the first byte on
  arriving_bytes file(std::uint64_t{1} << 40);
  file.append("x");
  BOOST_TEST(file.so_far().capacity() <= 1u << 20);  // an announcement alone gets little address space
  BOOST_TEST(file.held_bytes() == 1u);

  arriving_bytes chunk;
  chunk.with_room_for(60'000).append(std::string(60'000, 'x'));
  BOOST_TEST(chunk.held_bytes() == 60'000u);
  for (const std::size_t bytes : {1u, 20u, 4000u, 5000u, 70'000u, 500'000u}) {
    arriving_bytes unknown;
    BOOST_TEST(unknown.held_bytes() == 0u);
    std::size_t outgrown = 0, capacity = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      unknown.append("x");
      if (unknown.so_far().capacity() == capacity) continue;
      outgrown += capacity < 128 * 1024 ? capacity : 0;  // larger blocks go back to the system
      capacity = unknown.so_far().capacity();
    }
    BOOST_TEST_CONTEXT(bytes) {
      BOOST_TEST(unknown.held_bytes() >= bytes);
      BOOST_TEST(unknown.held_bytes() >= outgrown + (capacity < 128 * 1024 ? capacity : bytes));
      BOOST_TEST(unknown.held_bytes() <= std::max<std::size_t>(6000, 6 * bytes));
      BOOST_TEST(unknown.release().size() == bytes);
    }
  }
}

BOOST_AUTO_TEST_CASE(framing_counts_too) {
  connection_limits limits;
  limits.request_wire_bytes_max = 60;
  std::string small_chunks;
  for (int i = 0; i < 11; ++i) small_chunks += "1\r\nx\r\n";
  BOOST_TEST(decode_both_ways(chunked, small_chunks, limits).status == 413u);
  BOOST_TEST(decode_both_ways(chunked, "1;" + std::string(65536, 'e') + "\r\n").status == 400u);

  limits = {};
  limits.header_bytes_max = 100;
  BOOST_TEST(decode_both_ways(chunked, "0\r\nX: " + std::string(100, 'y') + "\r\n\r\n", limits).status == 431u);
  std::string fields = "0\r\n";
  for (int i = 0; i < 3000; ++i) fields += "X-" + std::to_string(i) + ": y\r\n";
  BOOST_TEST(decode_both_ways(chunked, fields + "\r\n").status == 431u);
}

}  // namespace
}  // namespace skein::connection
