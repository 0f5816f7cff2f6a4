#include "actors/connection/http/header_reader.hpp"

#include <string_view>
#include <utility>

namespace skein::connection {
namespace {

/// Size of the empty lines at the beginning of `bytes`.
std::size_t leading_empty_lines(std::string_view bytes) {
  std::size_t size = 0;
  while (bytes.substr(size).starts_with("\r\n")) size += 2;
  return size;
}

}  // namespace

accepted<std::optional<raw_header>> header_reader::take(std::string& in) {
  if (!begun_) {  // old clients send an empty line after a body (RFC 9112, 2.2)
    const std::size_t empty = leading_empty_lines(in);
    in.erase(0, empty);
    skipped_ += empty;
    if (skipped_ > bytes_max_) return refusal(400, "too many empty lines before the request line");
  }
  if (in.empty() || in == "\r") return std::optional<raw_header>();
  begun_ = true;
  const auto size = scan_.look(in);
  if (!size) return size.error();
  if (*size == 0) return std::optional<raw_header>();
  auto header = parse_header(std::string_view(in).substr(0, *size), fields_max_);
  in.erase(0, *size);
  if (!header) return header.error();
  return std::optional(std::move(*header));
}

}  // namespace skein::connection
