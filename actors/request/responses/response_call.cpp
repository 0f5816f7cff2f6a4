#include "actors/request/responses/response_call.hpp"

#include <charconv>
#include <utility>

#include "actors/request/call/awaited_model.hpp"
#include "actors/request/call/long_work.hpp"
#include "actors/request/call/memory.hpp"
#include "actors/request/call/route.hpp"
#include "actors/request/responses/response_items.hpp"
#include "protocol/responses_api/response_id.hpp"
#include "protocol/responses_api/response_writer.hpp"
#include "storage/records/stop_reasons.hpp"

namespace skein::request {
namespace {

using task = response_question::task;

error no_response(const std::string& id) { return {error_kind::not_found, "there is no response '" + id + "'", ""}; }

/// For a client that would continue a response which another one has asked for.
error not_begun(const std::string& id) {
  return {error_kind::conflict, "the response '" + id + "' is being prepared for another client; try again soon", ""};
}

connection::header_list stream_headers(connection::header_list headers) {
  headers.emplace_back("Content-Type", "text/event-stream; charset=utf-8");
  headers.emplace_back("X-Accel-Buffering", "no");
  return headers;
}

/// The reply of a run to a question.
struct told_by_run {
  bool there = false;     ///< else the response is in the log, or will be soon
  bool followed = false;  ///< the run itself sends the answer
  std::string body;
  std::optional<error> refusal = std::nullopt;  ///< instead of a body
};

/// Runs on the run's io thread. A caller that may not see the run gets the same reply as if there were none.
told_by_run ask(response_run* run, const caller& who, const response_question& question,
                const run_output::follower& reader, const connection::header_list& headers, const byte_share& share) {
  if (!run || !who.sees(run->call->tenant())) return {};
  generation_call& call = *run->call;
  if (question.what == task::cancel) {
    call.obey(order::stop);
    return call.will_obey() ? told_by_run{true, false, call.so_far().early_body()} : told_by_run();
  }
  if (question.what == task::tell) return {true, false, call.so_far().early_body()};
  if (!call.runs_on()) {
    call.obey(order::park);
    return call.will_obey() ? told_by_run{true, false, "", not_begun(question.id)} : told_by_run();
  }
  const answer_so_far known = call.so_far();
  const auto memory = hold_memory(share, known.told_again_bytes(question.how.after));
  if (!memory) return {true, false, "", memory.error()};
  reader.post([out = reader.out, headers, so_far = known.told_again(question.how.after), memory = *memory]() mutable {
    out->begin_stream(200, stream_headers(headers));
    if (!so_far.empty()) out->write(std::move(so_far));
    memory.reset();
  });
  run->out->follow(reader);
  return {true, true, ""};
}

/// Reads a response from its version in the log, on any thread. Errors: those of read_logged and hold_memory, and too
/// long. An imported version may make many more events of its text than a model does.
result<told_response> read_response(const persistence::version_record& version, const response_question& question,
                                    std::size_t bytes_max, const byte_share& share) {
  auto logged = logged_response_of(version);
  std::size_t bytes = protocol::reading_bytes(logged);
  auto memory = hold_memory(share, bytes);
  if (!memory) return memory.error();
  const auto known = protocol::read_logged(logged);
  if (!known) return known.error();
  const protocol::response_outcome& end = known->outcome;
  const bool goes_on = question.what == task::go_on, streams = question.what == task::stream || goes_on;
  if (streams) {
    bytes += protocol::event_bytes(known->facts, known->text, question.how.after);
    memory->reset();
    memory = hold_memory(share, bytes);
    if (!memory) return memory.error();
  }
  if (streams && (end.parked || (goes_on && end.reason == protocol::cut_at_limit)))
    return told_response{{}, std::move(logged), known->facts.model, std::move(*memory)};
  if (streams)
    return told_response{protocol::response_events(*known, question.how.after, nullptr), {}, {}, std::move(*memory)};
  std::string body;
  protocol::json_writer out(body);
  protocol::write_response(out, known->facts, known->text, known->outcome, &known->usage, nullptr);
  if (body.size() > bytes_max) return answer_too_long(body.size(), bytes_max);
  return told_response{std::move(body), {}, {}, {}};
}

}  // namespace

result<response_question> response_question_of(task what, const std::string& id, std::string_view query) {
  response_question q{what, id, {}};
  if (what != task::tell) return q;
  const auto stream = query_field(query, "stream");
  if (stream && *stream != "true" && *stream != "false")
    return error{error_kind::invalid_argument, "stream must be true or false", "stream"};
  if (stream == "true") q.what = task::stream;
  if (const auto text = query_field(query, "starting_after")) {
    std::uint64_t number = 0;
    const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), number);
    if (code != std::errc() || end != text->data() + text->size())
      return error{error_kind::invalid_argument, "starting_after must be an event number", "starting_after"};
    if (q.what != task::stream)
      return error{error_kind::invalid_argument, "starting_after needs stream=true", "starting_after"};
    q.how.after = number;
  }
  return q;
}

protocol::logged_response logged_response_of(const persistence::version_record& v) {
  return {.id = v.request_key,
          .settings = v.sampling,
          .reasoning = v.reasoning,
          .answer = v.answer,
          .finish_reason = v.finish_reason,
          .stop_reason = v.stop_reason,
          .unfinished = v.unfinished,
          .without_ending = v.stop_reason == storage::cut_by_crash,
          .tokens_sampled = v.tokens.size() - v.prompt_tokens};
}

response_call::response_call(response_question question, plain_origin plain, call_origin origin,
                             std::shared_ptr<const service_context> context, request_hub& hub, poster post,
                             response_runs& runs, std::shared_ptr<connection::response_writer> out)
    : plain_call(std::move(plain), std::move(context), out),
      question_(std::move(question)),
      origin_(std::move(origin)),
      hub_(hub),
      post_(std::move(post)),
      runs_(runs),
      out_(std::move(out)) {}

response_call::~response_call() { hub_.close_ticket(ticket_.number); }

void response_call::writable() {
  if (continued_) continued_->writable();
}

void response_call::gone(std::string_view why, unsigned status) {
  if (continued_) continued_->gone(why, status);
  plain_call::gone(why, status);
}

void response_call::read(std::string body) {
  if (!protocol::conversation_of(question_.id)) return refuse(no_response(question_.id));
  if (goes_on()) {
    const auto how = protocol::parse_continuation(body, context().settings.limits);
    if (!how) return refuse(how.error());
    question_.how = *how;
  }
  const auto run = context().responses->find(question_.id);
  run ? ask_run(run) : ask_log();
}

void response_call::ask_run(const response_table::visitor& run) {
  run([question = question_, who = origin().who,
       reader = run_output::follower{out_, post_, origin().who, question_.how.after}, headers = origin().headers,
       share = origin().share, self = std::weak_ptr(self_)](response_run* found) {
    auto told = ask(found, *who, question, reader, headers, share);
    reader.post([self, told = std::move(told)]() mutable {
      const auto call = self.lock();
      if (!call || told.followed || (*call)->ended()) return;
      (*call)->guarded([&] {
        if (told.refusal) return (*call)->refuse(*told.refusal);
        if (told.there && !told.body.empty()) return (*call)->answer(200, std::move(told.body));
        (*call)->ask_log();
      });
    });
  });
}

void response_call::ask_log() {
  if (!context().persistence) return refuse({error_kind::unsupported, "this server does not store responses", ""});
  if (ticket_.number == 0) ticket_ = hub_.open_ticket(*this);
  persistence::describe_session q;
  q.reply = ticket_;
  q.session = {origin().who->tenant, *protocol::conversation_of(question_.id)};
  q.turn = question_.id;
  if (!hub_.ask(std::move(q))) refuse(nobody_listens(context()));
}

void response_call::on_reply(persistence::reply& r) {
  if (ended()) return;
  guarded([&] {
    if (const auto* a = std::get_if<persistence::answer>(&r))
      return tell(std::get<persistence::session_description>(a->body).versions.front());
    if (const auto* no = std::get_if<persistence::refused>(&r))
      refuse(no->why.kind == error_kind::not_found ? no_response(question_.id) : no->why);
  });
}

/// Long responses are read on the worker pool, because they would block the io thread.
void response_call::tell(persistence::shared_version version) {
  const std::size_t bytes = version->answer.size() + version->reasoning.size() + version->sampling.size();
  auto work = [version = std::move(version), question = question_, share = origin().share,
               bytes_max = context().settings.limits.response_bytes_max] {
    return read_response(*version, question, bytes_max, share);
  };
  if (bytes <= context().settings.inline_text_bytes_max) return told(work());
  auto back = [self = std::weak_ptr(self_)](result<told_response> told) {
    const auto call = self.lock();
    if (call && !(*call)->ended()) (*call)->guarded([&] { (*call)->told(std::move(told)); });
  };
  if (!run_long(context(), {post_, origin().request_name, over(), origin().share}, std::move(work), std::move(back)))
    refuse({error_kind::overloaded, "too many long answers are being written; try again soon", ""});
}

void response_call::told(result<told_response> told) {
  if (!told) return refuse(told.error());
  memory_ = std::move(told->memory);
  if (told->parked) return go_on(*told->parked, told->model);
  streams() ? stream(std::move(told->text)) : answer(200, std::move(told->text));
}

void response_call::stream(std::string events) {
  out_->begin_stream(200, stream_headers(origin().headers));
  if (!events.empty()) out_->write(std::move(events));
  out_->end();
  memory_.reset();
  plain_call::gone("", 200);
}

/// The resumed response becomes the answer of this exchange.
void response_call::go_on(const protocol::logged_response& logged, std::string_view named) {
  if (context().draining) return refuse({error_kind::unavailable, "the server is shutting down", ""});
  auto model = model_at_hand(context(), *origin().who, named, origin().errors);
  if (!model) return refuse(model.error());
  origin_.model = std::move(*model);
  auto request = protocol::go_on_with(logged, *origin_.model->preset(), context().settings.limits, question_.how);
  if (!request) return refuse(request.error());
  origin_.who = origin().who;
  continued_ = runs_.go_on(std::move(origin_), out_, std::move(*request));
}

}  // namespace skein::request
