#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tests/actors/generation_bench.hpp"
#include "tests/actors/memory_sessions.hpp"

namespace skein::test {

/// A generation_bench with sessions and a device that generates: the next token depends on every token before it, so
/// that the text shows whether a state was the right one. The text that the device is told to settle becomes a state.
struct session_bench : generation_bench {
  session_bench() { context->persistence = &questions; }

  using generator = std::function<token_id(const std::vector<token_id>& state)>;
  /// Letters, now and then a space, chosen by a hash of all that came before.
  static token_id letter(const std::vector<token_id>& state) {
    std::uint64_t hash = 14695981039346656037ull;
    for (const token_id t : state) hash = (hash ^ static_cast<std::uint64_t>(t)) * 1099511628211ull;
    const auto choice = (hash >> 20) % 27;
    return choice == 26 ? ' ' : static_cast<token_id>('a' + choice);
  }

  /// Sends a body and plays persistence actor and device until nothing more happens.
  std::string ask(const std::string& body, const protocol::dialect& as = protocol::dialects::chat) {
    call_origin origin;
    origin.dialect = &as;
    return ask(body, std::move(origin));
  }
  std::string ask(const std::string& body, call_origin origin) {
    begin(body, std::move(origin));
    finish_device_work();
    return out->text;
  }
  /// Up to where the device would begin.
  void begin(const std::string& body, call_origin origin = {}) {
    send(body, std::move(origin));
    pump();
  }
  void pump() {
    while (sessions.pump(hub)) read_mailbox();
    read_mailbox();
  }

  /// The device runs the last submit to its end.
  void finish_device_work() {
    if (ran == submitted.size()) return;
    ran = submitted.size();
    start_device();
    const auto& params = submitted.back().rows.front();
    for (std::uint32_t i = 0; i < params.max_tokens && !over(); ++i) sample();
    if (!over()) tell(device::row_finished{submitted.back().id, 0, device::finish_cause::budget});
    settle();
  }
  void start_device() {
    const auto& s = submitted.back();
    state.clear();
    if (s.from.state) state = memory_sessions::tokens_of(s.from.state);
    state.insert(state.end(), s.prompt.begin(), s.prompt.end());
    prompt_end = state.size();
    tell(device::admitted{s.id, 5us});
  }
  void sample() {
    const token_id t = next(state);
    state.push_back(t);
    const auto sampled = static_cast<std::uint32_t>(state.size() - prompt_end);
    tell(device::token{submitted.back().id, 0, sampled - 1, t, nullptr});
    pump();
  }
  [[nodiscard]] bool over() const { return out->ended || !settled.empty() || !cancelled.empty(); }
  /// What was told to settle becomes a state, as the device would make it.
  void settle() {
    for (const auto& s : std::exchange(settled, {})) {
      state.resize(prompt_end + s.sampled);
      state.insert(state.end(), s.more.begin(), s.more.end());
      sessions.states[submitted.back().settles_as] = memory_sessions::state_of(state);
    }
    cancelled.clear();
    pump();
  }

  /// The value of a string member of the answer.
  [[nodiscard]] std::string member(const std::string& name) const {
    const std::string mark = "\"" + name + "\":\"";
    const std::size_t at = out->text.find(mark);
    if (at == std::string::npos) return {};
    return out->text.substr(at + mark.size(), out->text.find('"', at + mark.size()) - at - mark.size());
  }
  [[nodiscard]] std::string text_of(const std::vector<token_id>& tokens) const {
    std::string text;
    for (const token_id t : tokens) text += model->served.vocabulary->text(t);
    return text;
  }

  memory_sessions sessions{questions};
  generator next = letter;
  std::vector<token_id> state;  ///< of the sequence that runs
  std::size_t prompt_end = 0;
  std::size_t ran = 0;
};

}  // namespace skein::test
