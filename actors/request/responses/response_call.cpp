#include "actors/request/responses/response_call.hpp"

#include <charconv>
#include <utility>

#include "actors/request/call/awaited_model.hpp"
#include "actors/request/call/long_work.hpp"
#include "actors/request/call/memory.hpp"
#include "actors/request/call/route.hpp"
#include "actors/request/generation/replay.hpp"
#include "actors/request/responses/response_items.hpp"
#include "protocol/responses_api/response_id.hpp"
#include "protocol/responses_api/response_writer.hpp"

namespace skein::request {
namespace {

using task = response_question::task;

error no_response(const std::string& id) { return {error_kind::not_found, "there is no response '" + id + "'", ""}; }

/// For a client that would continue a response which another one has asked for.
error not_begun(const std::string& id) {
  return {error_kind::conflict, "the response '" + id + "' is being prepared for another client; try again soon", ""};
}

error not_in_background() {
  return {error_kind::invalid_argument,
          "the response has ended and was not created with background: true; only responses in the background can be "
          "cancelled then",
          ""};
}

connection::header_list stream_headers(connection::header_list headers) {
  headers.emplace_back("Content-Type", "text/event-stream; charset=utf-8");
  headers.emplace_back("X-Accel-Buffering", "no");
  return headers;
}

error too_many_followers(const std::string& id, std::uint32_t most) {
  return {error_kind::overloaded,
          "the response '" + id + "' has " + std::to_string(most) +
              " followers, the most that are allowed (limits.response_followers_max); try again soon",
          ""};
}

/// The parts of a question that a run needs.
struct run_question {
  response_question question;
  run_output::follower reader;
  byte_share share;
  std::uint32_t followers_max;
};

/// The answer so far. An order was carried out already, so its answer is not refused for lack of memory.
told_by_run tell_whole(const answer_so_far& known, const byte_share& share, bool obeyed) {
  if (!known.writer) return {};
  const std::size_t copied = known.copied_bytes(), bytes = 2 * copied;
  auto memory = obeyed ? result<byte_budget::lease>(share.lease_anyway(bytes)) : hold_memory(share, bytes);
  if (!memory) return {{}, memory.error()};
  return {known.copy(), {}, false, copied, std::move(*memory)};
}

/// Runs on the run's io thread. A caller that may not see the run gets the same reply as if there were none.
told_by_run ask(response_run* run, const run_question& q) {
  if (!run || !q.reader.who->sees(run->call->tenant())) return {};
  generation_call& call = *run->call;
  if (q.question.what == task::cancel) {
    call.obey(order::stop);
    return call.will_obey() ? tell_whole(call.so_far(), q.share, true) : told_by_run();
  }
  if (q.reader.gone.stop_requested()) return {};
  if (q.question.what == task::tell) return tell_whole(call.so_far(), q.share, false);
  if (!call.runs_on()) {
    call.obey(order::park);
    return call.will_obey() ? told_by_run{{}, not_begun(q.question.id)} : told_by_run();
  }
  if (run->out->followers() >= q.followers_max) return {{}, too_many_followers(q.question.id, q.followers_max)};
  const answer_so_far known = call.so_far();
  const std::size_t copied = known.copied_bytes();
  auto memory = hold_memory(q.share, 2 * copied + known.told_again_bytes(q.question.how.after));
  if (!memory) return {{}, memory.error()};
  told_by_run told{known.copy(), {}, true, copied, std::move(*memory)};
  run->out->follow(q.reader);
  return told;
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
  const bool may_cancel = known->facts.background || end.parked || end.status == protocol::response_status::cancelled;
  if (question.what == task::cancel && !may_cancel) return not_in_background();
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

/// A run that this call follows drops it then.
response_call::~response_call() {
  plain_call::gone({}, connection::client_gone);
  if (follower_) follower_->drop();
  hub_.close_ticket(ticket_.number);
}

void response_call::writable() {
  if (continued_) continued_->writable();
  if (follower_) follower_->writable();
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
  follower_ = std::make_shared<follower_output>(out_, origin().share, context().settings.limits.outbound_bytes_max);
  run_question q{question_,
                 {follower_, post_, origin().who, over(), question_.how.after},
                 origin().share,
                 context().settings.limits.response_followers_max};
  run([q = std::move(q), self = std::weak_ptr(self_)](response_run* found) {
    q.reader.post([self, told = ask(found, q)]() mutable {
      const auto call = self.lock();
      if (call && !(*call)->ended()) (*call)->guarded([&] { (*call)->tell(std::move(told)); });
    });
  });
}

/// Later events may arrive before those of the copy are written; follower_output keeps them.
void response_call::tell(told_by_run told) {
  if (told.refusal) return refuse(*told.refusal);
  if (!told.known) return ask_log();
  memory_ = std::move(told.memory);
  const bool followed = told.followed;
  auto work = [known = std::move(*told.known), followed, after = question_.how.after,
               bytes_max = context().settings.limits.response_bytes_max]() -> result<std::string> {
    if (followed) return known.told_again(after);
    std::string body = known.early_body();
    if (body.size() > bytes_max) return answer_too_long(body.size(), bytes_max);
    return body;
  };
  write_text(told.copied_bytes, std::move(work), [followed](response_call& call, result<std::string> text) {
    call.memory_.reset();
    if (!text) return call.refuse(text.error());
    if (!followed) return call.answer(200, std::move(*text));
    if (const auto& why = call.follower_->lost()) return call.refuse(*why);
    call.follower_->begin(stream_headers(call.origin().headers), std::move(*text));
  });
}

/// Writes a text made from that many bytes, here or on the worker pool.
template <typename Work, typename Next>
void response_call::write_text(std::size_t bytes, Work work, Next next) {
  if (bytes <= context().settings.inline_text_bytes_max) return next(*this, work());
  auto back = [self = std::weak_ptr(self_), next = std::move(next)](auto outcome) {
    const auto call = self.lock();
    if (call && !(*call)->ended()) (*call)->guarded([&] { next(**call, std::move(outcome)); });
  };
  if (!run_long(context(), {post_, origin().request_name, over(), origin().share}, std::move(work), std::move(back)))
    refuse({error_kind::overloaded, "too many long answers are being written; try again soon", ""});
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
    if (const auto* a = std::get_if<persistence::answer>(&r)) {
      const auto& found = std::get<persistence::session_description>(a->body);
      began_with_ = found.session.record.initial_state;
      return tell(found.versions.front());
    }
    if (const auto* no = std::get_if<persistence::refused>(&r))
      refuse(no->why.kind == error_kind::not_found ? no_response(question_.id) : no->why);
  });
}

void response_call::tell(persistence::shared_version version) {
  const std::size_t bytes = version->answer.size() + version->reasoning.size() + version->sampling.size();
  auto work = [version = std::move(version), question = question_, share = origin().share,
               bytes_max = context().settings.limits.response_bytes_max] {
    return read_response(*version, question, bytes_max, share);
  };
  write_text(bytes, std::move(work),
             [](response_call& call, result<told_response> told) { call.told(std::move(told)); });
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
  request->state_identity = began_with_;
  origin_.who = origin().who;
  continued_ = runs_.go_on(std::move(origin_), out_, std::move(*request));
}

}  // namespace skein::request
