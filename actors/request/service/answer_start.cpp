#include "actors/request/service/answer_start.hpp"

#include <algorithm>
#include <random>
#include <string_view>

#include "actors/request/service/cors.hpp"

namespace skein::request {
namespace {

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

/// The client's X-Request-Id if it is 1 to 128 printable characters, else a new one.
std::string request_name(const connection::request_head& head) {
  const std::string_view sent = head.field("x-request-id");
  if (!sent.empty() && sent.size() <= 128 && printable(sent)) return std::string(sent);
  thread_local std::mt19937_64 random{std::random_device{}()};
  static constexpr char digits[] = "0123456789abcdef";
  std::string name = "req-";
  for (int i = 0; i < 24; ++i) name += digits[random() % 16];
  return name;
}

}  // namespace

answer_start start_answer(const connection::request_head& head, const service_context& context) {
  answer_start made{request_name(head), cors_headers(head, context.settings.server.cors_origins, context.guarded())};
  if (head.method == "OPTIONS" && !made.headers.empty()) {
    const connection::header_list more = preflight_headers(head);
    made.headers.insert(made.headers.end(), more.begin(), more.end());
  }
  made.headers.emplace_back("X-Request-Id", made.name);
  made.headers.emplace_back("X-Content-Type-Options", "nosniff");
  made.headers.emplace_back("Cache-Control", "no-store");
  return made;
}

answer_start start_answer(const connection::header_list& fields, const service_context& context) {
  connection::request_head head;
  head.fields = fields;
  return start_answer(head, context);
}

}  // namespace skein::request
