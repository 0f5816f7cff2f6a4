#include "protocol/responses_api/response_writer.hpp"

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

#include "protocol/chat/tool_list.hpp"
#include "protocol/responses/sse.hpp"
#include "protocol/responses_api/response_id.hpp"

namespace skein::protocol {
namespace {

/// Replaces the metadata of this name, or adds it if there is room.
void add_note(metadata_fields& metadata, std::string_view name, const std::string& note) {
  if (note.empty()) return;
  std::erase_if(metadata, [&](const auto& each) { return each.first == name; });
  if (metadata.size() < metadata_members_max) metadata.emplace_back(name, note);
}

response_facts named(response_facts facts, const answer_head& head) {
  facts.id = head.id;
  facts.model = head.model;
  facts.created = head.created;
  add_note(facts.metadata, constraint_notes_key, head.constraint_notes);
  add_note(facts.metadata, tool_notes_key, head.tool_notes);
  return facts;
}

/// Counts tokens sampled before an interruption as answer, not as prompt.
token_usage in_all(token_usage usage, const response_facts& facts) {
  usage.prompt_tokens -= std::min(usage.prompt_tokens, facts.sampled_before);
  usage.cached_tokens = std::min(usage.cached_tokens, usage.prompt_tokens);
  usage.completion_tokens += facts.sampled_before - facts.hidden_before;
  usage.reasoning_tokens += facts.reasoned_before;
  return usage;
}

/// The deltas in these steps with numbers above `after`, a few more at most. `number`: of the first.
std::size_t deltas_after(const std::vector<std::uint32_t>& steps, std::uint64_t after, std::uint64_t& number) {
  std::size_t deltas = 0;
  for (const std::uint32_t step : steps) deltas += number++ >= after && step > 0 ? 1 : 0;
  return deltas;
}

/// JSON of the request's fields.
std::size_t fact_bytes(const response_facts& f) {
  std::size_t bytes = json_bytes(f.instructions.value_or("")) + f.text_format.size() + f.tools.size() +
                      f.tool_choice.size() + json_bytes(f.user);
  for (const auto& [name, value] : f.metadata) bytes += json_bytes(name) + json_bytes(value);
  return bytes;
}

}  // namespace

/// The pending events, and the text so far.
struct response_writer::telling {
  response_text known;
  std::optional<std::uint64_t> after;
  response_facts facts;
  response_text text;
  std::uint64_t next = 0;                              // number of the next event
  bool reasons = false, speaks = false, said = false;  // said: the text is over
  answer_end end;
  std::string events;

  [[nodiscard]] std::string take() { return std::exchange(events, {}); }

  template <typename Write>
  void event(std::string_view type, Write write) {
    const std::uint64_t number = next++;
    if (after && number <= *after) return;
    std::string json;
    json_writer out(json);
    out.begin_object().key("type").value(type).key("sequence_number").value(number);
    write(out);
    out.end_object();
    events.append("event: ").append(type).append("\n").append(sse_event(json));
  }

  void response(std::string_view type, const response_outcome& outcome, const token_usage* usage = nullptr,
                const session_note* session = nullptr) {
    event(type, [&](json_writer& out) { write_response(out.key("response"), facts, text, outcome, usage, session); });
  }

  /// Members that all events of the current item have.
  void place(json_writer& out, bool of_part = true) const {
    out.key("output_index").value(speaks && !text.reasoning.empty() ? 1 : 0);
    if (!of_part) return;
    out.key("item_id").value(item_id(speaks ? "msg_" : "rs_", facts.id));
    out.key(summarises() ? "summary_index" : "content_index").value(0);
  }
  /// The current item is thoughts, which are streamed as a summary.
  [[nodiscard]] bool summarises() const { return !speaks && !facts.summary.empty(); }

  void item(std::string_view type, std::string_view said, response_status status) {
    event(type, [&](json_writer& out) {
      place(out, false);
      out.key("item");
      speaks ? write_message_item(out, facts.id, said, status)
             : write_reasoning_item(out, facts.id, said, status, summarises());
    });
  }
  void part(std::string_view type, std::string_view said) {
    event(type, [&](json_writer& out) {
      place(out);
      out.key("part");
      speaks ? write_text_part(out, said) : write_reasoning_part(out, said, summarises());
    });
  }
  void begin_item() {
    item("response.output_item.added", "", response_status::in_progress);
    part(summarises() ? "response.reasoning_summary_part.added" : "response.content_part.added", "");
  }
  void end_item(response_status status) {
    const std::string& said = speaks ? text.content : text.reasoning;
    const auto thought = summarises() ? "response.reasoning_summary_text.done" : "response.reasoning_text.done";
    event(speaks ? "response.output_text.done" : thought, [&](json_writer& out) {
      place(out);
      out.key("text").value(said);
      if (speaks) out.key("logprobs").begin_array().end_array();
    });
    part(summarises() ? "response.reasoning_summary_part.done" : "response.content_part.done", said);
    item("response.output_item.done", said, status);
  }

  void reason(std::string_view more) {
    if (!std::exchange(reasons, true)) begin_item();
    text.reasoning += more;
    text.reasoning_steps.push_back(static_cast<std::uint32_t>(more.size()));
    event(summarises() ? "response.reasoning_summary_text.delta" : "response.reasoning_text.delta",
          [&](json_writer& out) {
            place(out);
            out.key("delta").value(more);
          });
  }
  void begin_speaking() {
    if (speaks) return;
    if (reasons) end_item(response_status::completed);
    speaks = true;
    begin_item();
  }
  void speak(std::string_view more) {
    begin_speaking();
    text.content += more;
    text.content_steps.push_back(static_cast<std::uint32_t>(more.size()));
    event("response.output_text.delta", [&](json_writer& out) {
      place(out);
      out.key("delta").value(more).key("logprobs").begin_array().end_array();
    });
  }

  /// An event of the last call.
  template <typename Write>
  void call_event(std::string_view type, Write write) {
    const std::size_t number = text.calls.size() - 1;
    const std::size_t index = (text.reasoning.empty() ? 0 : 1) + (speaks ? 1 : 0) + number;
    event(type, [&](json_writer& out) {
      out.key("output_index").value(index);
      write(out, number);
    });
  }
  void call_item(std::string_view type, const tool_call& call, response_status status) {
    call_event(type, [&](json_writer& out, std::size_t number) {
      write_call_item(out.key("item"), facts.id, number, call, status);
    });
  }
  void call(const call_piece& piece) {
    if (!piece.name.empty()) {
      if (!std::exchange(said, true) && (speaks || reasons)) end_item(response_status::completed);
      end_open_call();
      text.calls.push_back({piece.id, piece.name, "", false});
      call_item("response.output_item.added", text.calls.back(), response_status::in_progress);
    }
    if (text.calls.empty()) return;
    tool_call& made = text.calls.back();
    if (!piece.arguments.empty()) {
      made.arguments += piece.arguments;
      text.call_steps.push_back(static_cast<std::uint32_t>(piece.arguments.size()));
      call_event("response.function_call_arguments.delta", [&](json_writer& out, std::size_t number) {
        out.key("item_id").value(call_item_id(facts.id, number)).key("delta").value(piece.arguments);
      });
    }
    if (!piece.ends) return;
    made.whole = true;
    call_event("response.function_call_arguments.done", [&](json_writer& out, std::size_t number) {
      out.key("item_id").value(call_item_id(facts.id, number)).key("name").value(parts_of(made.name).name);
      out.key("arguments").value(made.arguments);
    });
    call_item("response.output_item.done", made, response_status::completed);
  }
  /// A call that was cut ends without the event that its arguments are complete.
  void end_open_call() {
    if (!text.calls.empty() && !text.calls.back().whole)
      call_item("response.output_item.done", text.calls.back(), response_status::incomplete);
  }

  /// Writes calls in the given steps.
  void repeat_calls(const std::vector<tool_call>& calls, std::span<const std::uint32_t> steps) {
    const auto skip_used = [&] {
      for (; !steps.empty() && steps.front() == 0; steps = steps.subspan(1)) {
        ++next;
        text.call_steps.push_back(0);
      }
    };
    for (const auto& known_call : calls) {
      skip_used();
      call_piece piece{known_call.id, known_call.name};
      for (std::string_view rest = known_call.arguments; !rest.empty(); piece = {}) {
        const std::size_t step = steps.empty() ? rest.size() : std::min<std::size_t>(steps.front(), rest.size());
        if (!steps.empty()) steps = steps.subspan(1);
        piece.arguments = rest.substr(0, step);
        rest.remove_prefix(step);
        piece.ends = rest.empty() && known_call.whole;
        call(piece);
        if (!rest.empty()) skip_used();
      }
    }
    skip_used();
  }

  /// Writes a text in the given steps, and the rest of it in one more.
  template <typename Tell>
  void repeat(std::string_view all, const std::vector<std::uint32_t>& steps, std::vector<std::uint32_t>& told,
              Tell tell) {
    for (const std::uint32_t step : steps) {
      if (step == 0) {
        ++next;
        told.push_back(0);
      } else if (!all.empty()) {
        const std::string_view piece = all.substr(0, step);
        all.remove_prefix(piece.size());
        tell(piece);
      }
    }
    if (!all.empty()) tell(all);
  }
};

response_writer::response_writer(response_facts facts, response_text known, std::optional<std::uint64_t> after)
    : facts_(std::move(facts)), told_(std::make_unique<telling>()) {
  told_->known = std::move(known);
  told_->after = after;
}

response_writer::~response_writer() = default;

std::string response_writer::id(const answer_names& names) const {
  if (!names.turn.empty()) return std::string(names.turn);
  return response_id(conversation_id(names.random), names.random);  // of no conversation: cannot be retrieved
}

std::string response_writer::begin_event(const answer_head& head, std::uint32_t) const {
  telling& t = *told_;
  t.facts = named(facts_, head);
  const response_outcome runs;
  const response_outcome waits{response_status::queued, "", "", false};
  t.response("response.created", t.facts.background ? waits : runs);
  if (t.facts.background) t.response("response.queued", waits);
  t.response("response.in_progress", runs);
  t.repeat(t.known.reasoning, t.known.reasoning_steps, t.text.reasoning_steps, [&](auto piece) { t.reason(piece); });
  t.repeat(t.known.content, t.known.content_steps, t.text.content_steps, [&](auto piece) { t.speak(piece); });
  t.repeat_calls(t.known.calls, t.known.call_steps);
  return t.take();
}

std::string response_writer::delta_events(const answer_head&, std::span<const row_delta> rows) const {
  for (const auto& row : rows) {
    if (!row.reasoning.empty()) told_->reason(row.reasoning);
    if (!row.content.empty()) told_->speak(row.content);
    for (const auto& piece : row.calls) told_->call(piece);
  }
  return told_->take();
}

std::string response_writer::end_event(const answer_head&, std::uint32_t, const answer_end& end,
                                       const session_note*) const {
  told_->end = end;
  return {};
}

std::string response_writer::last_events(const answer_head&, const token_usage& usage,
                                         const session_note* session) const {
  return concluding_events(outcome_of(told_->end), usage, session);
}

std::string response_writer::concluding_events(const response_outcome& outcome, const token_usage& usage,
                                               const session_note* session) const {
  telling& t = *told_;
  if (!outcome.parked && t.said) t.end_open_call();
  if (!outcome.parked && !t.said) {  // otherwise its items continue when the answer does
    t.begin_speaking();
    t.end_item(outcome.status);
  }
  const bool whole = outcome.status == response_status::completed;
  const token_usage all = in_all(usage, facts_);
  t.response(whole ? "response.completed" : "response.incomplete", outcome, &all, session);
  return t.take();
}

std::string response_writer::failure_events(const answer_head& head, const error& why, std::string_view) const {
  told_->facts = named(facts_, head);
  told_->response("response.failed", {response_status::failed, "", why.message, false});
  return told_->take();
}

std::string response_writer::body(const answer_head& head, std::vector<whole_row> rows, const token_usage& usage,
                                  const session_note* session) const {
  std::string json;
  json_writer out(json);
  const whole_row& row = rows.front();
  const response_text text{row.reasoning, row.content, {}, {}, {}, row.tool_calls};
  write_response(out, named(facts_, head), text, outcome_of(row.end), &usage, session);
  return json;
}

std::string response_writer::remembered(const answer_head& head, const token_usage& usage) const {
  std::string json;
  json_writer out(json);
  write_remembered(out, {named(facts_, head), in_all(usage, facts_), told_->text.reasoning_steps,
                         told_->text.content_steps, told_->text.call_steps});
  return json;
}

std::string response_writer::told_again(const answer_head& head, std::optional<std::uint64_t> after) const {
  if (told_->next == 0) return {};
  return response_writer(facts_, told_->text, after).begin_event(head, 0);
}

std::size_t response_writer::told_again_bytes(std::optional<std::uint64_t> after) const {
  return told_->next == 0 ? 0 : event_bytes(facts_, told_->text, after);
}

std::shared_ptr<const answer_writer> response_writer::copy() const {
  auto other = std::make_shared<response_writer>(facts_);
  other->told_->text = told_->text;
  other->told_->next = told_->next;
  return other;
}

std::size_t response_writer::copied_bytes() const {
  const response_text& t = told_->text;
  std::size_t bytes = held_bytes(facts_) + t.reasoning.size() + t.content.size();
  for (const auto* const steps : {&t.reasoning_steps, &t.content_steps, &t.call_steps})
    bytes += steps->size() * sizeof(std::uint32_t);
  for (const auto& call : t.calls) bytes += call.name.size() + call.arguments.size();
  return bytes;
}

std::string response_writer::early_body(const answer_head& head, bool begun) const {
  std::string json;
  json_writer out(json);
  const response_outcome now{begun ? response_status::in_progress : response_status::queued, "", "", false};
  write_response(out, named(facts_, head), told_->text, now, nullptr, nullptr);
  return json;
}

std::size_t event_bytes(const response_facts& facts, const response_text& text, std::optional<std::uint64_t> after) {
  constexpr std::size_t frame = 288;                   // an event without its text: names, numbers, ids
  constexpr std::size_t others = 16, per_call = 4;     // events that are no deltas
  constexpr std::size_t responses = 4, object = 2048;  // events with the whole object, and its other fields
  constexpr std::size_t copies = 5;                    // of a text: in its deltas, and in each event at its end
  std::uint64_t number = 0;                            // too low, since other events have numbers, too
  std::size_t events = others + per_call * text.calls.size();
  for (const auto* const steps : {&text.reasoning_steps, &text.content_steps, &text.call_steps})
    events += deltas_after(*steps, after.value_or(0), number);
  std::size_t bytes = json_bytes(text.reasoning) + json_bytes(text.content);
  for (const auto& call : text.calls) bytes += json_bytes(call.name) + json_bytes(call.arguments);
  return events * frame + copies * bytes + responses * (object + fact_bytes(facts));
}

std::string_view events_after(std::string_view events, std::uint64_t after) {
  constexpr std::string_view mark = "\"sequence_number\":";
  while (!events.empty()) {
    const std::size_t end = std::min(events.find("\n\n"), events.size() - 1) + 1;
    const std::size_t at = events.find(mark);
    std::uint64_t number = 0;
    if (at < end) std::from_chars(events.data() + at + mark.size(), events.data() + end, number);
    if (at < end && number > after) break;
    events.remove_prefix(std::min(end + 1, events.size()));  // comments are removed too
  }
  return events;
}

void skip_ending(response_text& text, bool parked) {
  constexpr std::size_t last = 1, begins = 2, ends = 3;  // events: of the response; of an item
  const bool spoke = !text.content.empty(), reasoned = !text.reasoning.empty();
  if (!text.calls.empty()) {
    const bool cut = !parked && !text.calls.back().whole;  // its item has ended
    text.call_steps.insert(text.call_steps.end(), last + (cut ? 1 : 0), 0);
    return;
  }
  std::size_t events = last;
  if (!parked) events += ends + (spoke ? 0 : begins + (reasoned ? ends : 0));
  auto& steps = spoke ? text.content_steps : text.reasoning_steps;
  steps.insert(steps.end(), events, 0);
}

}  // namespace skein::protocol
