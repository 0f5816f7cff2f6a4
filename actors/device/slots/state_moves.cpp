#include "actors/device/slots/state_moves.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace skein::device {

void state_moves::leave(std::vector<slot_command>& commands, slot_id slot, buffer to) {
  check(put_off_.empty(), "states leave in numerical order");
  leaving_.push_back(to);
  commands.push_back(park_slot{slot, std::move(to)});
}

void state_moves::leave_next(slot_id slot, buffer to) {
  leaving_.push_back(to);
  put_off_.push_back({slot, std::move(to)});
}

void state_moves::issue(std::vector<slot_command>& commands) {
  commands.insert(commands.end(), put_off_.begin(), put_off_.end());
  put_off_.clear();
}

void state_moves::promise(const state_key& key, bool optional) {
  check(!leaving_.empty(), "a promise needs a departure");
  promised_.push_back({key, moved_.departed + leaving_.size(), optional});
  if (optional) ++optional_;
}

std::uint64_t state_moves::come(std::shared_ptr<const void> from) {
  coming_.push_back(std::move(from));
  return moved_.arrived + coming_.size();
}

void state_moves::moved(const engine::moved_states& count, news_box& to) {
  check(count.departed <= moved_.departed + leaving_.size() - put_off_.size(), "a state left without a request");
  check(count.arrived <= moved_.arrived + coming_.size(), "a state arrived without a request");
  for (; moved_.departed < count.departed; ++moved_.departed) {
    const buffer& gone = leaving_.front();
    while (!promised_.empty() && promised_.front().number == moved_.departed + 1) {
      const promised_state& p = promised_.front();
      to.add(state_news::kind::state, p.key, gone->state.empty() ? nullptr : state_buffer(gone, &gone->state));
      if (p.optional) --optional_;
      promised_.pop_front();
    }
    leaving_.pop_front();
  }
  for (; moved_.arrived < count.arrived; ++moved_.arrived) coming_.pop_front();
}

void state_moves::refuse_all(news_box& to) {
  to.reserve(promised_.size());
  for (const promised_state& p : promised_) to.refuse(p.key);
  promised_.clear();
  put_off_.clear();
  leaving_.clear();
  coming_.clear();
  optional_ = 0;
}

bool state_moves::has_left(const buffer& b) const { return std::ranges::find(leaving_, b) == leaving_.end(); }

}  // namespace skein::device
