#include "tests/server/streamed_answer.hpp"

#include <charconv>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/utf8.hpp"

namespace skein::test {
namespace {

[[noreturn]] void fail(const std::string& what, std::string_view where) {
  throw std::runtime_error(what + ": " + std::string(where.substr(0, 200)));
}

std::size_t number(std::string_view digits, int base) {
  std::size_t value = 0;
  const auto [end, trouble] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (trouble != std::errc() || end != digits.data() + digits.size()) fail("not a number", digits);
  return value;
}

char32_t code_unit(std::string_view hex) { return static_cast<char32_t>(number(hex.substr(0, 4), 16)); }

/// The value of a field that holds a string; nothing when it is absent or null. `opening` is `"name":"`, which cannot
/// stand inside another string: there a quotation mark has a backslash before it, so the first one matches no more.
std::string text_field(std::string_view json, std::string_view opening) {
  const std::size_t at = json.find(opening);
  return at == std::string_view::npos ? std::string() : unescaped(json.substr(at + opening.size() - 1));
}

}  // namespace

std::string unescaped(std::string_view json) {
  std::string text;
  for (std::size_t i = 1; i < json.size() && json[i] != '"'; ++i) {
    if (json[i] != '\\') {
      text += json[i];
      continue;
    }
    switch (json[++i]) {
      case 'b': text += '\b'; break;
      case 'f': text += '\f'; break;
      case 'n': text += '\n'; break;
      case 'r': text += '\r'; break;
      case 't': text += '\t'; break;
      case 'u': {
        char32_t code = code_unit(json.substr(i + 1));
        i += 4;
        if (code >= 0xd800 && code < 0xdc00) {
          code = 0x10000 + ((code - 0xd800) << 10) + (code_unit(json.substr(i + 3)) - 0xdc00);
          i += 6;
        }
        append_utf8(code, text);
        break;
      }
      default: text += json[i];
    }
  }
  return text;
}

void streamed_answer::read(std::string_view bytes) {
  waiting_ += bytes;
  while (step()) {
  }
}

/// Takes one piece of the response from what waits; false when more bytes are needed.
bool streamed_answer::step() {
  const auto take_line = [this](std::string_view ending, auto&& use) {
    const std::size_t end = waiting_.find(ending);
    if (end == std::string::npos) return false;
    use(std::string_view(waiting_).substr(0, end));
    waiting_.erase(0, end + ending.size());
    return true;
  };
  switch (stage_) {
    case stage::head: return take_line("\r\n\r\n", [this](std::string_view head) { take_head(head); });
    case stage::chunk_line:
      return take_line("\r\n", [this](std::string_view line) {
        remaining_ = number(line, 16);
        stage_ = remaining_ > 0 ? stage::chunk : stage::chunk_end;
      });
    case stage::chunk:
    case stage::sized: {
      if (waiting_.size() < remaining_) return false;
      if (stage_ == stage::chunk) take_body(std::string_view(waiting_).substr(0, remaining_));
      waiting_.erase(0, remaining_);
      stage_ = stage_ == stage::chunk ? stage::chunk_end : stage::complete;
      return true;
    }
    case stage::chunk_end:
      return take_line("\r\n", [this](std::string_view rest) {
        if (!rest.empty()) fail("a chunk longer than it said", rest);
        stage_ = std::exchange(remaining_, 0) > 0 ? stage::chunk_line : stage::complete;
      });
    case stage::complete:
      if (!waiting_.empty()) fail("bytes after the answer", waiting_);
      return false;
  }
  return false;
}

void streamed_answer::take_head(std::string_view head) {
  constexpr std::string_view version = "HTTP/1.1 ";
  if (!head.starts_with(version)) fail("no status line", head);
  status_ = static_cast<unsigned>(number(head.substr(version.size(), 3), 10));
  if (head.find("\r\nTransfer-Encoding: chunked") != std::string_view::npos) {
    stage_ = stage::chunk_line;
    return;
  }
  constexpr std::string_view length = "\r\nContent-Length: ";
  const std::size_t at = head.find(length);
  if (at == std::string_view::npos) fail("a body without a length", head);
  const std::string_view rest = head.substr(at + length.size());
  remaining_ = number(rest.substr(0, rest.find('\r')), 10);
  stage_ = stage::sized;
}

void streamed_answer::take_body(std::string_view bytes) {
  event_ += bytes;
  for (std::size_t end = event_.find("\n\n"); end != std::string::npos; end = event_.find("\n\n")) {
    take_event(std::string_view(event_).substr(0, end));
    event_.erase(0, end + 2);
  }
}

void streamed_answer::take_event(std::string_view event) {
  if (event.starts_with(':')) return;
  constexpr std::string_view field = "data: ";
  if (!event.starts_with(field) || done_) fail("an unexpected event", event);
  const std::string_view json = event.substr(field.size());
  if (json == "[DONE]") {
    done_ = true;
    return;
  }
  if (!json.starts_with('{') || !finish_reason_.empty()) fail("an unexpected event", event);
  ++events_;
  text_ += text_field(json, R"("text":")");
  finish_reason_ = text_field(json, R"("finish_reason":")");
  stop_reason_ = text_field(json, R"("rwkv":{"stop_reason":")");
}

}  // namespace skein::test
