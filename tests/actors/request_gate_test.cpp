// Shows that the gate lets exactly those headers pass on which no two parsers disagree, case by case: each row is a
// header as raw bytes with the status it is refused with, or 0.
#include "actors/connection/http/request_gate.hpp"

#include <boost/test/unit_test.hpp>

#include "actors/connection/http/header_parser.hpp"
#include "actors/connection/http/header_scan.hpp"
#include "actors/connection/http/peer_address.hpp"
#include "actors/connection/http/request_target.hpp"

namespace skein::connection {
namespace {

/// What a connection does with the bytes of a header; `at_once` bytes come with each look.
accepted<admission> admit(std::string_view bytes, std::size_t at_once, const connection_limits& limits = {}) {
  header_scan scan(limits.header_bytes_max);
  for (std::size_t seen = std::min(at_once, bytes.size());; seen = std::min(seen + at_once, bytes.size())) {
    const auto size = scan.look(bytes.substr(0, seen));
    if (!size) return size.error();
    if (*size > 0) {
      auto header = parse_header(bytes.substr(0, *size), limits.header_fields_max);
      if (!header) return header.error();
      return pass_gate(std::move(*header), limits);
    }
    if (seen == bytes.size()) return refusal{0, "incomplete"};
  }
}

unsigned status_of(std::string_view bytes, const connection_limits& limits = {}) {
  const auto whole = admit(bytes, bytes.size(), limits);
  const auto bytewise = admit(bytes, 1, limits);
  BOOST_TEST(whole.has_value() == bytewise.has_value());
  if (!whole && !bytewise) BOOST_TEST(whole.error().status == bytewise.error().status);
  return whole ? 0 : whole.error().status;
}

std::string get(std::string_view fields) { return "GET / HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n"; }
std::string post(std::string_view fields) { return "POST / HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n"; }

BOOST_AUTO_TEST_CASE(an_encoded_body_is_refused_by_the_name_of_its_encoding) {
  for (const std::string coding : {"gzip", "deflate", "br", "zstd", "x-gzip", "GZIP", "gzip, br", "identity, gzip"}) {
    const auto no = admit(post("Content-Length: 5\r\nContent-Encoding: " + coding + "\r\n"), 1000);
    BOOST_REQUIRE(!no);
    BOOST_TEST(no.error().status == 415u);
    BOOST_TEST(no.error().message == "Content-Encoding: " + coding + " is not supported; send the body unencoded");
  }
  BOOST_TEST(status_of(post("Content-Encoding: identity\r\nContent-Encoding: gzip\r\n")) == 415u);
  BOOST_TEST(status_of(get("Content-Encoding: gzip\r\n")) == 415u);
  for (const char* none : {"Content-Encoding: identity\r\n", "Content-Encoding:\r\n", "Accept-Encoding: gzip\r\n"})
    BOOST_TEST(status_of(post(none)) == 0u);
}

BOOST_AUTO_TEST_CASE(framing_is_unambiguous_or_refused) {
  const std::pair<const char*, unsigned> rows[] = {
      {"", 0},
      {"Content-Length: 0\r\n", 0},
      {"Content-Length: 5\r\n", 0},
      {"Transfer-Encoding: chunked\r\n", 0},
      {"Transfer-Encoding: Chunked\r\n", 0},
      {"Transfer-Encoding: xchunked\r\n", 400},
      {"Transfer-Encoding: identity\r\n", 400},
      {"Transfer-Encoding: chunked, identity\r\n", 400},
      {"Transfer-Encoding: gzip, chunked\r\n", 400},
      {"Transfer-Encoding: chunked, chunked\r\n", 400},
      {"Transfer-Encoding: \"chunked\"\r\n", 400},
      {"Transfer-Encoding: chunked;q=1\r\n", 400},
      {"Transfer-Encoding: chunked,\r\n", 400},
      {"Transfer-Encoding:\r\n", 400},
      {"Transfer-Encoding: gzip\r\nContent-Length: 5\r\n", 400},
      {"Content-Length: 5\r\nTransfer-Encoding: gzip\r\n", 400},
      {"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 400},
      {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Transfer-Encoding : chunked\r\n", 400},
      {"Content-Length: 5\r\nContent-Length: 5\r\n", 400},
      {"Content-Length: 5, 5\r\n", 400},
      {"Content-Length: 5,\r\n", 400},
      {"Content-Length: +5\r\n", 400},
      {"Content-Length: -5\r\n", 400},
      {"Content-Length: 0x5\r\n", 400},
      {"Content-Length: 5 5\r\n", 400},
      {"Content-Length:\r\n", 400},
      {"Content-Length : 5\r\n", 400},
      {"Content-Length: 99999999999999999999999\r\n", 400},
      {"Content-Length: 18446744073709551615\r\n", 413},
      {"Content-Length: 8388608\r\n", 0},
      {"Content-Length: 8388609\r\n", 413},
  };
  for (const auto& [fields, status] : rows) BOOST_TEST_CONTEXT(fields) BOOST_TEST(status_of(post(fields)) == status);
}

BOOST_AUTO_TEST_CASE(the_gate_does_not_lean_on_the_parser) {
  const header_list rows[] = {
      {{"transfer-encoding", "chunked"}, {"content-length", "5"}},
      {{"content-length", "5"}, {"transfer-encoding", "chunked"}},
      {{"transfer-encoding", "chunked"}, {"transfer-encoding", "chunked"}},
      {{"transfer-encoding", "chunked"}, {"transfer-encoding", "identity"}},
      {{"transfer-encoding", "xchunked"}},
      {{"transfer-encoding", "chunked, identity"}},
      {{"transfer-encoding", ""}},
      {{"content-length", "5"}, {"content-length", "5"}},
      {{"content-length", "5, 5"}},
      {{"content-length", "+5"}},
      {{"content-length", "abc"}},
      {{"content-length", ""}},
      {{"host", "b"}},
  };
  for (const header_list& row : rows) BOOST_TEST_CONTEXT(row[0].first << ": " << row[0].second) {
      raw_header header{"POST", "/", 11, {{"host", "a"}}};
      header.fields.insert(header.fields.end(), row.begin(), row.end());
      const auto admitted = pass_gate(raw_header(header), {});
      BOOST_REQUIRE(admitted.has_error());
      BOOST_TEST(admitted.error().status == 400u);
    }
}

BOOST_AUTO_TEST_CASE(header_lines_have_one_shape) {
  const std::pair<std::string, unsigned> rows[] = {
      {get("X: a\r\n b\r\n"), 400},  // folded
      {get("X: a\r\n\tb\r\n"), 400},
      {get("Transfer-Encoding: x\r\n chunked\r\n"), 400},
      {"GET / HTTP/1.1\nHost: a\n\n", 400},  // bare line feeds
      {"GET / HTTP/1.1\r\nHost: a\n\r\n", 400},
      {get("X: a\rb\r\n"), 400},  // bare CR
      {get(std::string_view("X: a\0b\r\n", 8)), 400},
      {get("X: a\x01\r\n"), 400},
      {get("X: a\x7f\r\n"), 400},
      {get("X: caf\xc3\xa9\r\n"), 0},
      {get("X:\r\n"), 0},
      {get("X Y: a\r\n"), 400},
      {get(": a\r\n"), 400},
      {get("no colon\r\n"), 400},
      {" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400},
      {"GET /\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/1.2\r\nHost: a\r\n\r\n", 400},
      {"GET / http/1.1\r\nHost: a\r\n\r\n", 400},
      {"\x16\x03\x01\x02", 400},  // TLS
  };
  for (const auto& [bytes, status] : rows) BOOST_TEST_CONTEXT(bytes) BOOST_TEST(status_of(bytes) == status);
}

BOOST_AUTO_TEST_CASE(host_is_there_once) {
  const std::pair<const char*, unsigned> rows[] = {
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: [::1]:8000\r\n\r\n", 0},
      {"GET / HTTP/1.0\r\n\r\n", 0},
      {"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", 400},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
  };
  for (const auto& [bytes, status] : rows) BOOST_TEST_CONTEXT(bytes) BOOST_TEST(status_of(bytes) == status);
}

BOOST_AUTO_TEST_CASE(methods_and_expectations_are_known_ones) {
  for (const char* method : {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
    BOOST_TEST(status_of(std::string(method) + " / HTTP/1.1\r\nHost: a\r\n\r\n") == 0u);
  for (const char* method : {"TRACE", "CONNECT", "BREW", "M-SEARCH"})
    BOOST_TEST(status_of(std::string(method) + " / HTTP/1.1\r\nHost: a\r\n\r\n") == 501u);
  for (const std::string& method : {std::string("get"), std::string("Get"), std::string(4096, 'A'), std::string("G(T")})
    BOOST_TEST(status_of(method + " / HTTP/1.1\r\nHost: a\r\n\r\n") == 400u);

  BOOST_TEST(status_of(post("Expect: 100-continue\r\nContent-Length: 1\r\n")) == 0u);
  BOOST_TEST(status_of(post("Expect: 100-Continue\r\nContent-Length: 1\r\n")) == 0u);
  BOOST_TEST(status_of(post("Expect: tea\r\nContent-Length: 1\r\n")) == 417u);
  BOOST_TEST(status_of(post("Expect: 100-continue\r\nExpect: tea\r\n")) == 417u);
}

BOOST_AUTO_TEST_CASE(a_put_brings_a_file) {
  const connection_limits limits;
  const auto put = [](std::uint64_t bytes) {
    return "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n";
  };
  BOOST_TEST(status_of(put(limits.body_bytes_max + 1)) == 0u);
  BOOST_TEST(status_of(put(limits.upload_bytes_max)) == 0u);
  BOOST_TEST(status_of(put(limits.upload_bytes_max + 1)) == 413u);
  BOOST_TEST(status_of(post("Content-Length: " + std::to_string(limits.body_bytes_max + 1) + "\r\n")) == 413u);
}

BOOST_AUTO_TEST_CASE(sizes_have_ceilings) {
  std::string fields;
  for (int i = 0; i < 99; ++i) fields += "x" + std::to_string(i) + ": y\r\n";
  BOOST_TEST(status_of(get(fields)) == 0u);  // 100 with Host
  BOOST_TEST(status_of(get(fields + "x: y\r\n")) == 431u);
  BOOST_TEST(status_of(get("x: " + std::string(8192, 'y') + "\r\n")) == 431u);
  BOOST_TEST(status_of("GET /" + std::string(8192, 'y') + " HTTP/1.1\r\nHost: a\r\n\r\n") == 414u);
  const std::string fitting = get("");
  connection_limits limits;
  limits.header_bytes_max = static_cast<std::uint32_t>(fitting.size());
  BOOST_TEST(status_of(fitting, limits) == 0u);
  limits.header_bytes_max -= 1;
  BOOST_TEST(status_of(fitting, limits) == 431u);
}

BOOST_AUTO_TEST_CASE(persistence_follows_version_and_connection) {
  const std::pair<const char*, bool> rows[] = {
      {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true},
      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false},
      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: TE, Close\r\n\r\n", false},
      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", false},
      {"GET / HTTP/1.0\r\n\r\n", false},
      {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
  };
  for (const auto& [bytes, persists] : rows)
    BOOST_TEST_CONTEXT(bytes) BOOST_TEST(admit(bytes, 1000).value().keep_alive == persists);
}

BOOST_AUTO_TEST_CASE(targets_are_decoded_or_refused) {
  const std::tuple<const char*, const char*, const char*> good[] = {
      {"/", "/", ""},
      {"/v1/models/demo?x=%41&y", "/v1/models/demo", "x=%41&y"},
      {"/a%20b%2Fc", "/a b/c", ""},
      {"/%e9%b5%9d", "/\xe9\xb5\x9d", ""},
      {"/a/...", "/a/...", ""},
      {"//a", "//a", ""},
      {"/?", "/", ""},
      {"http://other:80/p?q", "/p", "q"},
      {"HTTP://other", "/", ""},
      {"https://other?q", "/", "q"},
  };
  for (const auto& [target, path, query] : good) BOOST_TEST_CONTEXT(target) {
      const auto parts = parse_target("GET", target);
      BOOST_REQUIRE(parts.has_value());
      BOOST_TEST(parts->path == path);
      BOOST_TEST(parts->query == query);
    }
  for (const char* target :
       {"",          "*",       "a",          "a/b",         "/%",       "/%4",     "/%zz",      "/%00",
        "/a%0d%0ab", "/..",     "/a/../b",    "/a/%2e%2e/b", "/a/.",     "/%2E/",   "/#x",       "/caf\xc3\xa9",
        "/%ff",      "/%c0%80", "/%ed%a0%80", "/%7f",        "ftp://a/", "http://", "http:///x", "http://u:p@a/",
        "a:80"})
    BOOST_TEST_CONTEXT(target) BOOST_TEST(parse_target("GET", target).has_error());
  BOOST_TEST(parse_target("OPTIONS", "*").value().path == "*");
}

BOOST_AUTO_TEST_CASE(absolute_form_counts_instead_of_host) {
  const auto admitted = admit("GET http://other:81/x HTTP/1.1\r\nHost: a\r\n\r\n", 1000);
  BOOST_TEST(admitted.value().head.field("host") == "other:81");
}

BOOST_AUTO_TEST_CASE(field_names_are_lower_case_and_values_trimmed) {
  const auto admitted = admit(get("X-Api-KEY: \t a b \r\n"), 1000);
  BOOST_TEST(admitted.value().head.field("x-api-key") == "a b");
}

BOOST_AUTO_TEST_CASE(forwarded_addresses_count_from_trusted_proxies_only) {
  const std::vector<std::string> trusted{"10.0.0.1", "10.0.0.2"};
  const peer_address proxy{"10.0.0.1", false, true};
  const peer_address stranger{"1.2.3.4", false, false};
  const auto behind = [&](const peer_address& peer, const char* chain) {
    return client_address(peer, {{"x-forwarded-for", chain}}, trusted);
  };
  BOOST_TEST(behind(stranger, "9.9.9.9") == "1.2.3.4");
  BOOST_TEST(behind(proxy, "9.9.9.9") == "9.9.9.9");
  BOOST_TEST(behind(proxy, "6.6.6.6, 9.9.9.9") == "9.9.9.9");
  BOOST_TEST(behind(proxy, "9.9.9.9, 10.0.0.2") == "9.9.9.9");
  BOOST_TEST(behind(proxy, "2001:DB8::1") == "2001:db8::1");
  BOOST_TEST(behind(proxy, "::ffff:9.9.9.9") == "9.9.9.9");
  for (const char* with_port : {"9.9.9.9:1234", "\t9.9.9.9 ", "6.6.6.6,\t9.9.9.9:1\t", "9.9.9.9:80, 10.0.0.2:4711"})
    BOOST_TEST(behind(proxy, with_port) == "9.9.9.9", with_port);
  BOOST_TEST(behind(proxy, "[2001:db8::1]:443") == "2001:db8::1");
  BOOST_TEST(behind(proxy, "[2001:db8::1]") == "2001:db8::1");
  // What is no address has a name of its own, not the proxy's, which all clients behind it would share.
  for (const char* wrong :
       {"nonsense", "010.0.0.9", "9.9.9.9:", "9.9.9.9:port", "9.9.9.9:123456", "[::1", "[::1]x", "[]"})
    BOOST_TEST(behind(proxy, wrong) == "unknown", wrong);
  BOOST_TEST(behind(proxy, "") == "10.0.0.1");
  BOOST_TEST(client_address(proxy, {{"x-forwarded-for", "6.6.6.6"}, {"x-forwarded-for", "9.9.9.9"}}, trusted) ==
             "9.9.9.9");
}

}  // namespace
}  // namespace skein::connection
