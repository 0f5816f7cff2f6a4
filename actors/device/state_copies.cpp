#include "actors/device/state_copies.hpp"

#include "base/check.hpp"

namespace skein::device {

void state_copies::issue(std::vector<slot_command>& commands) {
  commands.insert(commands.end(), due_.begin(), due_.end());
  due_.clear();
}

void state_copies::hand_over(std::uint64_t absorbed, news_box& to) {
  while (!promised_.empty() && promised_.front().tick <= absorbed) hand_over_first(to);
}

void state_copies::hand_over_all(news_box& to) {
  check(due_.empty(), "a copy that was never asked for");
  while (!promised_.empty()) hand_over_first(to);
}

void state_copies::refuse_all(news_box& to) {
  to.reserve(promised_.size());
  for (const promised_copy& c : promised_) to.refuse(c.key);
  promised_.clear();
  due_.clear();
  optional_ = 0;
}

void state_copies::hand_over_first(news_box& to) {
  const promised_copy& c = promised_.front();
  to.add(state_news::kind::state, c.key, state_buffer(c.of, &c.of->state));
  if (c.optional) --optional_;
  promised_.pop_front();
}

}  // namespace skein::device
