#include "protocol/chat/call_head.hpp"

#include <algorithm>
#include <initializer_list>

#include "protocol/json/json.hpp"

namespace skein::protocol {
namespace {

constexpr std::size_t head_bytes_max = 4096;

/// Reads a text of which more may come.
class head_reader {
 public:
  explicit head_reader(std::string_view text) : text_(text) {}

  [[nodiscard]] bool done() const { return at_ == text_.size(); }
  [[nodiscard]] std::size_t at() const { return at_; }
  /// All that was asked for so far was there, as far as the text goes.
  [[nodiscard]] bool fits() const { return fits_; }

  void skip_spaces() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  [[nodiscard]] bool next_is(char c) {
    skip_spaces();
    return !done() && text_[at_] == c;
  }
  void read(char c) {
    skip_spaces();
    if (done() || !fits_) return;
    fits_ = text_[at_] == c;
    if (fits_) ++at_;
  }
  /// A string, with its escapes decoded; nullopt if the text ends before it does.
  std::optional<std::string> read_quoted() {
    read('"');
    if (done() || !fits_) return std::nullopt;
    const auto begin = at_ - 1;
    for (; !done() && text_[at_] != '"'; ++at_)
      if (text_[at_] == '\\') at_ = std::min(at_ + 1, text_.size() - 1);
    if (done()) return std::nullopt;
    ++at_;
    const auto parsed = json_document::parse(text_.substr(begin, at_ - begin), {});
    fits_ = parsed && parsed->root().text();
    return fits_ ? std::optional(std::string(*parsed->root().text())) : std::nullopt;
  }
  /// One of the names and a colon. Returns the name, if the text has all of it.
  std::string read_name(std::initializer_list<std::string_view> names) {
    const auto found = read_quoted();
    if (found) fits_ = std::ranges::find(names, *found) != names.end();
    read(':');
    return found.value_or("");
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  bool fits_ = true;
};

}  // namespace

head_found find_head(std::string_view text) {
  head_reader in(text);
  call_head head;
  head.in_list = in.next_is('[');
  if (head.in_list) in.read('[');
  in.read('{');
  if (in.read_name({"name", "function"}) == "function") {
    in.read('{');
    head.depth = 2;
    (void)in.read_name({"name"});
  }
  head.name = in.read_quoted().value_or("");
  in.read(',');
  (void)in.read_name({"arguments", "parameters"});
  in.skip_spaces();
  if (!in.fits()) return {};
  if (in.done()) return {std::nullopt, text.size() <= head_bytes_max};
  if (!in.next_is('{')) return {};
  head.bytes = in.at();
  return {std::move(head), false};
}

}  // namespace skein::protocol
