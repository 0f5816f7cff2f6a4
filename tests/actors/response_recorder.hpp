#pragma once
#include <boost/test/unit_test.hpp>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "actors/connection/http/http.hpp"

namespace skein::test {

/// Remembers what a client would get.
class response_recorder final : public connection::response_writer {
 public:
  void respond(unsigned s, connection::header_list h, std::string body) override {
    BOOST_REQUIRE(!ended && !streaming);
    if (failures > 0 && failures--) throw std::bad_alloc();
    status = s;
    headers = std::move(h);
    text = std::move(body);
    ended = true;
  }
  void begin_stream(unsigned s, connection::header_list h) override {
    BOOST_REQUIRE(!ended && !streaming);
    status = s;
    headers = std::move(h);
    streaming = true;
  }
  void write(std::string bytes) override {
    BOOST_REQUIRE(streaming && !ended);
    text += bytes;
    queued += full_above > 0 ? bytes.size() : 0;
  }
  void end() override {
    BOOST_REQUIRE(streaming && !ended);
    ended = true;
  }
  void abort() override { ended = aborted = true; }
  void charge(byte_share share) override { charged = std::move(share); }
  [[nodiscard]] byte_share::outcome reserve(std::size_t bytes) override {
    const auto room = charged.take(bytes);
    if (room == byte_share::outcome::taken) charged.give_back(bytes);
    return room;
  }
  [[nodiscard]] std::size_t queued_bytes() const override { return queued; }
  [[nodiscard]] bool is_full() const override { return full_above > 0 && queued > full_above; }

  [[nodiscard]] std::string header(std::string_view name) const {
    for (const auto& [n, v] : headers)
      if (n == name) return v;
    return {};
  }
  [[nodiscard]] bool has(std::string_view piece) const { return text.find(piece) != std::string::npos; }

  unsigned status = 0;
  connection::header_list headers;
  byte_share charged;
  std::string text;
  std::size_t queued = 0;
  std::size_t full_above = 0;  ///< 0: what is written is not queued
  int failures = 0;            ///< respond() throws that many times
  bool streaming = false, ended = false, aborted = false;
};

}  // namespace skein::test
