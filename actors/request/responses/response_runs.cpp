#include "actors/request/responses/response_runs.hpp"

#include <utility>

#include "protocol/responses_api/response_writer.hpp"

namespace skein::request {

// ---------------------------------------------------------------- readers

void run_output::respond(unsigned status, connection::header_list headers, std::string body) {
  if (first_) first_->respond(status, std::move(headers), std::move(body));
  first_.reset();
  finish();
}

void run_output::begin_stream(unsigned status, connection::header_list headers) {
  if (first_) first_->begin_stream(status, std::move(headers));
}

void run_output::write(std::string bytes) {
  drop_lost();
  for (auto& f : followers_) {
    std::string part(f.after ? protocol::events_after(bytes, *f.after) : bytes);
    if (part.empty()) continue;
    f.after.reset();
    f.post([out = f.out, part = std::move(part)] { out->write(part); });
  }
  if (first_) first_->write(std::move(bytes));
}

void run_output::end() {
  if (first_) first_->end();
  tell_followers(&follower_output::end);
  finish();
}

void run_output::abort() {
  if (first_) first_->abort();
  tell_followers(&follower_output::abort);
  finish();
}

/// A response may run for long, so no follower stays until its end.
void run_output::drop_lost() {
  std::erase_if(followers_, [](const follower& f) {
    if (f.gone.stop_requested()) return true;
    if (!f.who->revoked) return false;
    f.post([out = f.out] { out->abort(); });
    return true;
  });
}

/// Followers do not slow the response down: a follower that is too slow is cut off, and may ask again.
std::size_t run_output::queued_bytes() const { return first_ ? first_->queued_bytes() : 0; }

void run_output::tell_followers(void (follower_output::*what)()) {
  for (const auto& f : followers_) f.post([out = f.out, what] { (*out.*what)(); });
}

void run_output::finish() {
  over_ = true;
  if (on_over) on_over();
}

// ---------------------------------------------------------------- the table of responses

std::uint64_t response_table::enter(const std::string& id, visitor how) {
  const std::lock_guard lock(mutex_);
  running_[id] = {++last_, std::move(how)};
  return last_;
}

void response_table::leave(const std::string& id, std::uint64_t entry) {
  const std::lock_guard lock(mutex_);
  const auto it = running_.find(id);
  if (it != running_.end() && it->second.entry == entry) running_.erase(it);
}

response_table::visitor response_table::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto it = running_.find(id);
  return it == running_.end() ? visitor() : it->second.how;
}

// ---------------------------------------------------------------- ownership

/// The exchange that asked. When it ends, so does the response, unless it runs in the background.
class response_runs::exchange final : public connection::http_call {
 public:
  exchange(response_runs& home, std::uint64_t number) : home_(home), number_(number) {}
  ~exchange() override {
    if (response_run* run = home_.find(number_)) {
      run->owned = false;
      run->out->drop_first();
      home_.end_if_over(number_);
    }
  }

  [[nodiscard]] std::uint64_t body_bytes_max() const override { return call().body_bytes_max(); }
  [[nodiscard]] connection::header_list headers() const override { return call().headers(); }
  [[nodiscard]] std::string error_body(unsigned status, std::string_view message) const override {
    return call().error_body(status, message);
  }
  void body(std::string bytes) override { call().body(std::move(bytes)); }
  void writable() override { call().writable(); }
  void gone(std::string_view why, unsigned status) override {
    if (!call().runs_on()) call().gone(why, status);
  }

 private:
  [[nodiscard]] generation_call& call() const { return *home_.find(number_)->call; }

  response_runs& home_;
  const std::uint64_t number_;
};

response_runs::~response_runs() {
  for (const auto& [number, run] : runs_)
    if (!run.id.empty()) context_->responses->leave(run.id, run.entry);
}

std::unique_ptr<connection::http_call> response_runs::start(call_origin origin,
                                                            std::shared_ptr<connection::response_writer> out) {
  const std::uint64_t number = ++last_;
  response_run& run = runs_[number];
  run.out = std::make_shared<run_output>(std::move(out));
  run.out->on_over = [this, number] { post_([this, number] { end_if_over(number); }); };
  origin.named = [this, number](const std::string& id) {
    response_run& of = *find(number);
    of.id = id;
    of.entry = context_->responses->enter(id, [this, number](response_table::visit look) {
      post_([this, number, look = std::move(look)] { look(find(number)); });
    });
  };
  run.call = std::make_unique<generation_call>(std::move(origin), context_, hub_, post_, run.out);
  return std::make_unique<exchange>(*this, number);
}

std::unique_ptr<connection::http_call> response_runs::go_on(call_origin origin,
                                                            std::shared_ptr<connection::response_writer> out,
                                                            protocol::generation_request request) {
  auto call = start(std::move(origin), std::move(out));
  find(last_)->call->begin(std::move(request));
  return call;
}

response_run* response_runs::find(std::uint64_t number) {
  const auto it = runs_.find(number);
  return it == runs_.end() ? nullptr : &it->second;
}

void response_runs::end_if_over(std::uint64_t number) {
  response_run* run = find(number);
  if (!run) return;
  const bool over = (run->out->over() || !run->owned) && !run->call->runs_on();
  if (over && !run->id.empty()) context_->responses->leave(std::exchange(run->id, ""), run->entry);
  if (over && !run->owned) runs_.erase(number);
}

}  // namespace skein::request
