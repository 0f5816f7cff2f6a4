// Beast parses only the header. Beast 1.81 treats unknown transfer codings as "no body", merges trailers into the
// header fields and asserts on certain splits of a last chunk, so request_gate and body_decoder handle the body
// framing.
#include "actors/connection/http/header_parser.hpp"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>

namespace skein::connection {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

class header_collector final : public http::basic_parser<true> {
 public:
  explicit header_collector(std::uint32_t fields_max) : fields_max_(fields_max) {
    body_limit(boost::none);
    header_limit(std::numeric_limits<std::uint32_t>::max());  // header_scan has checked the size
  }

  raw_header header;
  bool too_many_fields = false;

 private:
  void on_request_impl(http::verb, string_view method, string_view target, int version, error_code&) override {
    header.method.assign(method.data(), method.size());
    header.target.assign(target.data(), target.size());
    header.version = static_cast<unsigned>(version);
  }

  void on_field_impl(http::field, string_view name, string_view value, error_code& ec) override {
    if (header.fields.size() >= fields_max_) {
      too_many_fields = true;
      ec = http::error::header_limit;
      return;
    }
    std::string lower(name.data(), name.size());
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    header.fields.emplace_back(std::move(lower), std::string(value.data(), value.size()));
  }

  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view, error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view, error_code&) override { return 0; }
  void on_finish_impl(error_code&) override {}

  const std::uint32_t fields_max_;
};

}  // namespace

accepted<raw_header> parse_header(std::string_view block, std::uint32_t fields_max) {
  header_collector collector(fields_max);
  error_code ec;
  const std::size_t parsed = collector.put(boost::asio::const_buffer(block.data(), block.size()), ec);
  if (collector.too_many_fields) return refusal{431, "the header has too many fields"};
  if (ec) return refusal{400, "the header is malformed: " + ec.message()};
  if (!collector.is_header_done() || parsed != block.size()) return refusal{400, "the header is malformed"};
  return std::move(collector.header);
}

}  // namespace skein::connection
