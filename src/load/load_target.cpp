#include "load/load_target.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <random>

#include "protocol/json/json_writer.hpp"

namespace skein::load {
namespace {

// Each word with its preceding space is one token of the World vocabulary.
constexpr std::array<std::string_view, 32> words{
    "the",  "river", "house", "morning", "little", "water", "people", "story", "winter", "garden", "letter",
    "city", "road",  "night", "friend",  "music",  "table", "window", "light", "summer", "market", "teacher",
    "ship", "train", "bread", "island",  "forest", "stone", "paper",  "field", "horse",  "color"};

error bad_url(std::string_view url) {
  return {error_kind::invalid_argument, "url: must be http://HOST[:PORT][/PATH], not " + std::string(url), "url"};
}

bool is_port(std::string_view text) {
  unsigned number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size() && number > 0 && number < 65536;
}

void write_words(protocol::json_writer& out, std::uint32_t count, std::mt19937_64& random) {
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i) text.append(i == 0 ? "" : " ").append(words[random() % words.size()]);
  out.value(text);
}

void write_tokens(protocol::json_writer& out, std::uint32_t count, std::uint32_t vocab, std::mt19937_64& random) {
  const std::uint32_t first = vocab > 0 ? 1 : 34, end = vocab > 0 ? vocab : 127;
  out.begin_array();
  for (std::uint32_t i = 0; i < count; ++i) out.value(first + random() % (end - first));
  out.end_array();
}

}  // namespace

result<load_target> parse_url(std::string_view url) {
  constexpr std::string_view scheme = "http://";
  if (!url.starts_with(scheme)) return bad_url(url);
  std::string_view rest = url.substr(scheme.size());
  load_target target;
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  target.prefix = rest.substr(slash);
  while (target.prefix.ends_with('/')) target.prefix.pop_back();
  rest = rest.substr(0, slash);
  const bool bracketed = rest.starts_with('[');
  const std::size_t bracket = rest.find(']');
  if (bracketed && bracket == std::string_view::npos) return bad_url(url);
  const std::size_t colon = rest.find(':', bracketed ? bracket : 0);
  target.host = bracketed ? rest.substr(1, bracket - 1) : rest.substr(0, colon);
  target.port = colon == std::string_view::npos ? "80" : rest.substr(colon + 1);
  const bool plain = std::ranges::all_of(url, [](char c) { return c > ' ' && c < 0x7f; });
  if (!plain || target.host.empty() || !is_port(target.port)) return bad_url(url);
  return target;
}

std::string path_of(const load_target& target) {
  return target.prefix + (target.chat ? "/v1/chat/completions" : "/v1/completions");
}

std::string body_of(const load_target& target, const planned_request& request, std::uint64_t number) {
  std::mt19937_64 random(number);
  std::string body;
  protocol::json_writer out(body);
  out.begin_object();
  if (!target.model.empty()) out.key("model").value(target.model);
  if (target.chat) {
    out.key("messages").begin_array().begin_object().key("role").value("user").key("content");
    write_words(out, request.input_tokens, random);
    out.end_object().end_array();
  } else {
    out.key("prompt");
    write_tokens(out, request.input_tokens, target.vocab, random);
  }
  out.key("max_tokens").value(request.output_tokens).key("ignore_eos").value(true).key("temperature").value(1.0);
  out.key("stream").value(true).key("stream_options").begin_object().key("include_usage").value(true).end_object();
  out.end_object();
  return body;
}

}  // namespace skein::load
