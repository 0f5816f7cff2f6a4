#include "tests/server/session_writer.hpp"

#include <simdjson.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "engine/fake/fake_model.hpp"
#include "tests/support/http_client.hpp"

namespace skein::test {
namespace {

constexpr std::uint32_t answer_tokens = 12;
constexpr std::string_view stop = "e";  // one of the fake model's letters, so that some answers are cut

std::vector<token_id> tokens_of(std::string_view text) {
  std::vector<token_id> tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string json_text(std::string_view text) {
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') made += '\\';
    c == '\n' ? made += "\\n" : made += c;
  }
  return made += '"';
}

/// The last event of a stream that holds `what`, or the body that does; empty: none.
std::string part_with(http_client& client, bool streamed, std::string_view what, std::string& text) {
  if (!streamed) {
    const auto body = client.read_body();
    return body && body->find(what) != std::string::npos ? text = *body : std::string();
  }
  std::string last;
  bool done = false;
  while (const auto event = client.read_event()) {
    text += event->data + '\n';
    done = event->data == "[DONE]";
    if (event->data.find(what) != std::string::npos) last = event->data;
  }
  return done ? last : std::string();
}

/// What the server tells of a session; nothing: it has no such session. Throws for any other answer.
std::optional<std::string> ask(std::uint16_t port, const std::string& session, const std::string& what) {
  http_client client(port);
  client.request("GET", "/v1/sessions/" + session + '?' + what, "", "Connection: close\r\n");
  auto response = client.read_response();
  if (response && response->status == 404) return std::nullopt;
  if (!response || response->status != 200)
    throw std::runtime_error("session " + session + ": " + (response ? response->body : "no answer"));
  return std::move(response->body);
}

/// The turns of a session, up to a version or to its head.
std::vector<known_turn> transcript(std::uint16_t port, const std::string& session,
                                   std::optional<std::uint32_t> version = {}) {
  std::vector<known_turn> turns;
  const auto told =
      ask(port, session, "transcript=true" + (version ? "&version=" + std::to_string(*version) : std::string()));
  if (!told) return turns;
  simdjson::dom::parser parser;
  for (const simdjson::dom::element turn : parser.parse(*told)["transcript"].get_array())
    turns.push_back(
        {std::string(turn["prompt"].get_string().value()), std::string(turn["answer"].get_string().value())});
  return turns;
}

/// The whole turns that go on from a version.
std::vector<std::uint32_t> versions_behind(std::uint16_t port, const std::string& session, std::uint32_t parent) {
  std::vector<std::uint32_t> found;
  const auto told = ask(port, session, "tree=true");
  if (!told) return found;
  simdjson::dom::parser parser;
  for (const simdjson::dom::element v : parser.parse(*told)["tree"].get_array())
    if (v["parent"].get_uint64().value() == parent && !v["unfinished"].get_bool().value())
      found.push_back(static_cast<std::uint32_t>(v["version"].get_uint64().value()));
  return found;
}

std::uint32_t version_in(std::string_view event) {
  constexpr std::string_view before = R"("version":)";
  const auto at = event.find(before);
  if (at == std::string_view::npos) throw std::runtime_error("a turn has no version: " + std::string(event));
  return static_cast<std::uint32_t>(std::stoul(std::string(event.substr(at + before.size(), 10))));
}

}  // namespace

known_turn session_writer::next_turn() const {
  known_turn turn;
  turn.prompt = turns_.empty() ? "" : "\n\n";
  turn.prompt += "User: " + session_ + branch_ + " says " + std::to_string(sent_) + "\n\nAssistant:";
  std::string history;
  for (const known_turn& t : turns_) history += t.text();
  sampling::sampling_params greedy;
  greedy.temperature = 0;
  greedy.max_tokens = answer_tokens;
  for (const token_id t : engine::fake_text(engine::fake_model{}, tokens_of(history + turn.prompt), greedy))
    turn.answer += static_cast<char>(t);
  turn.answer.resize(std::min(turn.answer.find(stop), turn.answer.size()));
  return turn;
}

std::string session_writer::request_body(const known_turn& turn) const {
  return R"({"session_id":)" + json_text(session_) + R"(,"contents":[)" + json_text(turn.prompt) + R"(],"stream":)" +
         (sent_ % 2 == 0 ? "true" : "false") + R"(,"max_tokens":)" + std::to_string(answer_tokens) +
         R"(,"temperature":0,"alpha_presence":0,"alpha_frequency":0,"stop_tokens":[)" + json_text(stop) + "]" +
         (branch_.empty() ? std::string() : R"(,"from_version":)" + std::to_string(end_)) + "}";
}

turn_outcome session_writer::write(std::uint16_t port) {
  if (unknown_) throw std::runtime_error("the turn before is not settled");
  const known_turn turn = next_turn();
  const std::string body = request_body(turn);
  const bool streamed = sent_++ % 2 == 0;
  std::optional<http_client> client;
  try {
    client.emplace(port);
  } catch (const std::runtime_error&) {
    return turn_outcome::failed;  // it was not received
  }
  unknown_ = turn;
  std::string text, last;
  try {
    if (!client->request("POST", "/state/chat/completions", body, "Connection: close\r\n"))
      return turn_outcome::unknown;
    const auto head = client->read_head();
    if (!head) return turn_outcome::unknown;
    if (head->status != 200) {
      unknown_.reset();
      return turn_outcome::failed;
    }
    last = part_with(*client, streamed, R"("session":)", text);
  } catch (const std::runtime_error&) {
    return turn_outcome::unknown;  // reset in the middle
  }
  if (last.empty()) return turn_outcome::unknown;
  if (last.find(R"("durable":"process")") == std::string::npos)
    throw std::runtime_error("a turn is not durable: " + last);
  turns_.push_back(*unknown_);
  end_ = version_in(last);
  unknown_.reset();
  return turn_outcome::acknowledged;
}

/// Adds what goes on from the branch's end, which can only be the turn of unknown outcome; from the beginning others go
/// on too. The version of it.
std::uint32_t session_writer::add_behind(std::uint16_t port, std::vector<known_turn>& there) const {
  std::uint32_t last = end_;
  for (const std::uint32_t version : versions_behind(port, session_, end_)) {
    auto way = transcript(port, session_, version);
    if (end_ == 0 && way.back().prompt.find(session_ + branch_ + " says ") == std::string::npos) continue;
    there.push_back(std::move(way.back()));
    last = version;
  }
  return last;
}

std::string session_writer::compare(std::uint16_t port) {
  std::vector<known_turn> there = branch_.empty() ? transcript(port, session_) : transcript(port, session_, end_);
  const std::uint32_t end = branch_.empty() ? 0 : add_behind(port, there);
  const auto differs = [&](std::size_t i, const std::string& how) {
    return "turn " + std::to_string(i + 1) + " of session " + session_ + ' ' + how;
  };
  for (std::size_t i = 0; i < turns_.size(); ++i) {
    if (i >= there.size()) return differs(i, "was acknowledged and is lost");
    if (there[i].text() != turns_[i].text()) return differs(i, "reads: " + there[i].text());
  }
  if (there.size() > turns_.size() + (unknown_ ? 1 : 0)) return differs(turns_.size() + 1, "was never sent");
  if (unknown_ && there.size() > turns_.size()) {
    if (there.back().text() != unknown_->text()) return differs(turns_.size(), "is torn: " + there.back().text());
    turns_.push_back(*unknown_);
    end_ = end;
    ++found_;
  }
  unknown_.reset();
  return {};
}

}  // namespace skein::test
