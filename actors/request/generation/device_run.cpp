#include "actors/request/generation/device_run.hpp"

#include <algorithm>
#include <utility>

#include "base/log/log.hpp"

namespace skein::request {

void device_run::begin() {
  runs_.resize(answer_.call().prompts.size());
  for (std::uint32_t prompt = 0; prompt < runs_.size(); ++prompt) to_run_.push_back(prompt);
}

bool device_run::submit_more(const byte_budget::lease& memory) {
  while (!paused_ && sent_back_ == 0 && !to_run_.empty() && waiting_ < order_.prompts_waiting_max) {
    if (!submit(to_run_.front(), memory)) return false;
    to_run_.pop_front();
  }
  return true;
}

device::submit device_run::message(std::uint32_t prompt) {
  const prepared_call& call = answer_.call();
  device::submit message;
  message.id = hub_.open(call_, prompt);
  message.reply_to = hub_.io_thread();
  message.tenant = order_.tenant;
  message.client = order_.client;
  message.prompt = answer_.give_prompt(prompt);
  if (order_.beginning) {
    message.from.state = order_.beginning->values;
    for (const auto& part : order_.beginning->mixture) message.mixture.push_back({{part.values, {}}, part.weight});
  }
  session_.apply(message, answer_);
  message.fed = {order_.entry, &order_.entry->fed_tokens};
  message.score_prompt = call.score_prompt;
  message.score_top = call.request.sampling.top_logprobs;
  for (std::uint32_t row = 0; row < call.rows_per_prompt(); ++row) {
    message.rows.push_back(call.row_params(prompt, row));
    message.rows.back().max_tokens += answer_.hidden_budget();
  }
  message.queue_deadline = message.total_deadline = order_.total_deadline;
  if (prompt == 0) message.queue_deadline = std::min(message.queue_deadline, order_.time->now() + order_.queue_timeout);
  return message;
}

bool device_run::submit(std::uint32_t prompt, const byte_budget::lease& memory) {
  device::submit message = this->message(prompt);
  message.memory = memory;
  const request_id id = message.id;
  std::vector<device::wanted_copy> copies = message.copies;
  const auto rows = static_cast<std::uint32_t>(message.rows.size());
  const auto sequences = std::max(rows, static_cast<std::uint32_t>(message.mixture.size()));
  device_place place = order_.model->devices.place(sequences, prompt == 0 ? session_.device() : std::nullopt);
  message.device = place.id();
  device::message box(std::move(message));
  if (order_.model->devices[place.id()].inbox->push(box)) {
    runs_[prompt] = {id, rows, std::move(place)};
    ++waiting_;
    ++running_;
    return true;
  }
  hub_.close(id);
  for (const auto& copy : copies) hub_.tell(persistence::state_kept{copy.key, nullptr});
  return false;
}

void device_run::on(std::uint32_t prompt, device::admitted&) {
  --waiting_;
  ++admitted_;
  answer_.on_admitted(prompt);
}

void device_run::on(std::uint32_t prompt, device::rejected&) {
  --waiting_;
  over(prompt);
}

void device_run::put_back(std::uint32_t prompt) {
  to_run_.push_front(prompt);
  ++sent_back_;
}

void device_run::over(std::uint32_t prompt) {
  hub_.close(std::exchange(runs_[prompt].id, 0));
  runs_[prompt].place = {};
  --running_;
}

void device_run::on(std::uint32_t prompt, device::prompt_scored& e) { answer_.on_prompt_scored(prompt, e.scores); }

void device_run::on(std::uint32_t prompt, device::token& e) {
  const bool over = answer_.on_token(prompt, e.row, e.id_of_token, e.logprobs.get());
  if (over && !session_.turn())
    tell(runs_[prompt].place.id(), device::cancel_row{e.id, e.row});  // a session's row ends with settle
}

void device_run::on(std::uint32_t prompt, device::row_finished& e) {
  if (e.cause == device::finish_cause::device_lost)
    failure_ = error{error_kind::internal, "the device failed while it processed this request", ""};
  if (e.cause == device::finish_cause::not_finite && !failure_) {
    failure_ = error{error_kind::internal, "the model computed a logit that is NaN or infinite for this request", ""};
    log::error("logits not finite", {{"request_id", order_.request_name}, {"model", order_.model->id()}});
  }
  if (e.cause == device::finish_cause::shutdown && order_.model->cut_off) failure_ = cut_off_by_force();
  answer_.on_row_finished(prompt, e.row, e.cause);
  if (!session_.turn() && --runs_[prompt].rows == 0) over(prompt);  // a session's prompt ends with settle
}

void device_run::pause() {
  if (std::exchange(paused_, true)) return;
  for (const auto& run : runs_)
    if (run.id != 0) tell(run.place.id(), device::pause{run.id});
}

void device_run::resume() {
  if (!std::exchange(paused_, false)) return;
  for (const auto& run : runs_)
    if (run.id != 0) tell(run.place.id(), device::resume{run.id});
}

void device_run::settle(std::uint32_t sampled, std::vector<token_id> more) {
  const request_id id = runs_.front().id;
  const device_id device = runs_.front().place.id();
  over(0);
  tell(device, device::settle{id, sampled, std::move(more)});
}

void device_run::cancel() {
  for (auto& run : runs_) {
    if (run.id == 0) continue;
    hub_.close(run.id);
    tell(run.place.id(), device::cancel{run.id});
    run.id = 0;
    run.place = {};
  }
}

}  // namespace skein::request
