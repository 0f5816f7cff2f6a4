#include "actors/connection/http/response_head.hpp"

#include <array>
#include <cstdio>

namespace skein::connection {
namespace {

std::string_view reason_phrase(unsigned status) {
  switch (status) {
    case 101: return "Switching Protocols";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 426: return "Upgrade Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 507: return "Insufficient Storage";
    default: return "";
  }
}

/// RFC 9110, 5.6.7: always English names, so strftime, which uses the locale, is unsuitable.
std::string http_date(std::time_t now) {
  constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT", days[utc.tm_wday], utc.tm_mday,
                months[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
  return text.data();
}

void append_value(std::string& head, std::string_view value) {
  for (const char c : value) head += (c == '\r' || c == '\n' || c == '\0') ? ' ' : c;
}

}  // namespace

bool status_has_body(unsigned status) { return status >= 200 && status != 204 && status != 304; }

std::string response_head(unsigned status, const header_list& headers, const response_frame& frame) {
  std::string head = "HTTP/1.1 " + std::to_string(status) + " ";
  head.reserve(256);
  head += reason_phrase(status);
  head += "\r\nDate: " + http_date(frame.now) + "\r\n";
  for (const auto& [name, value] : headers) {
    head += name;
    head += ": ";
    append_value(head, value);
    head += "\r\n";
  }
  if (frame.kind == response_frame::body::sized)
    head += "Content-Length: " + std::to_string(frame.content_length) + "\r\n";
  if (frame.kind == response_frame::body::chunked) head += "Transfer-Encoding: chunked\r\n";
  if (frame.after == response_frame::persistence::close) head += "Connection: close\r\n";
  if (frame.after == response_frame::persistence::keep_alive) head += "Connection: keep-alive\r\n";
  head += "\r\n";
  return head;
}

}  // namespace skein::connection
