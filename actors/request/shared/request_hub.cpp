#include "actors/request/shared/request_hub.hpp"

#include <algorithm>

namespace skein::request {

namespace {
request_id id_of(const device::event& e) {
  return std::visit([](const auto& one) { return one.id; }, e);
}
}  // namespace

request_id request_hub::open(device_client& client, std::uint32_t prompt) {
  const request_id id = (static_cast<request_id>(io_thread_) << 48) | ++next_;
  by_id_[id] = {&client, prompt};
  return id;
}

void request_hub::close(request_id id) { by_id_.erase(id); }

std::uint64_t request_hub::enter(device_client& client) {
  by_serial_[++next_] = &client;
  return next_;
}

void request_hub::leave(std::uint64_t serial) {
  const auto it = by_serial_.find(serial);
  if (it == by_serial_.end()) return;
  std::ranges::replace(touched_, it->second, static_cast<device_client*>(nullptr));
  by_serial_.erase(it);
}

device_client* request_hub::find(std::uint64_t serial) const {
  const auto it = by_serial_.find(serial);
  return it == by_serial_.end() ? nullptr : it->second;
}

void request_hub::tell(std::shared_ptr<device::mailbox> to, device::message message) {
  auto queue = std::ranges::find(untold_, to, &untold::to);
  if (queue == untold_.end()) queue = untold_.emplace(queue, std::move(to), std::deque<device::message>{});
  queue->messages.push_back(std::move(message));
  send_untold();
}

void request_hub::send_untold() {
  for (auto& [to, messages] : untold_)
    while (!messages.empty() && (to->push_urgent(std::move(messages.front())) || to->closed())) messages.pop_front();
  std::erase_if(untold_, [](const untold& u) { return u.messages.empty(); });
  while (!untold_sessions_.empty() && persistence_->push_urgent(std::move(untold_sessions_.front())))
    untold_sessions_.pop_front();
}

persistence::return_address request_hub::open_ticket(persistence_client& client) {
  by_ticket_[++next_] = &client;
  return {io_thread_, next_};
}

void request_hub::close_ticket(persistence::ticket number) { by_ticket_.erase(number); }

bool request_hub::ask(persistence::message_in question) {
  send_untold();  // a waiting release precedes the next turn
  return persistence_ && untold_sessions_.empty() && persistence_->push(std::move(question));
}

void request_hub::tell(persistence::message_in message) {
  if (!persistence_) return;
  untold_sessions_.push_back(std::move(message));
  send_untold();
}

void request_hub::dispatch(std::vector<persistence::reply> replies) {
  send_untold();
  for (auto& r : replies) {
    const auto it = by_ticket_.find(std::visit([](const auto& one) { return one.reply.number; }, r));
    if (it != by_ticket_.end()) {
      it->second->on_reply(r);
    } else if (const auto* late = std::get_if<persistence::prefix_found>(&r)) {
      for (const auto& wanted : late->keep) tell(persistence::state_kept{wanted.key, nullptr});  // none is made
    }
  }
}

std::vector<device::event> request_hub::dispatch(std::vector<device::event> events) {
  send_untold();
  touched_.clear();
  for (auto& e : events) {
    const auto it = by_id_.find(id_of(e));
    if (it == by_id_.end()) continue;  // the call is gone
    const auto [client, prompt] = it->second;
    if (touched_.empty() || touched_.back() != client) touched_.push_back(client);
    client->on_event(prompt, e);
  }
  std::ranges::sort(touched_);
  touched_.erase(std::ranges::unique(touched_).begin(), touched_.end());
  // By index, since a client that leaves meanwhile sets its entry to null.
  for (std::size_t i = 0; i < touched_.size(); ++i)
    if (touched_[i]) touched_[i]->on_events_done();
  touched_.clear();
  return events;
}

void request_hub::tick(steady_time now) {
  send_untold();
  std::vector<std::uint64_t> serials;
  serials.reserve(by_serial_.size());
  for (const auto& [serial, client] : by_serial_) serials.push_back(serial);
  for (const auto serial : serials)
    if (device_client* client = find(serial)) client->on_tick(now);
}

}  // namespace skein::request
