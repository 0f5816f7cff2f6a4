#include "actors/request/responses/follower_output.hpp"

#include "actors/request/call/memory.hpp"

namespace skein::request {

void follower_output::begin(connection::header_list headers, std::string so_far) {
  if (aborted_) return;
  begun_ = true;
  out_->begin_stream(200, std::move(headers));
  if (!so_far.empty()) out_->write(std::move(so_far));
  for (auto& events : std::exchange(kept_, {})) {
    events.memory.reset();  // the connection counts them from here on
    out_->write(std::move(events.text));
  }
  if (over_) out_->end();
}

void follower_output::write(std::string events) {
  if (begun_) return out_->write(std::move(events));
  if (lost_ || aborted_) return;
  auto memory = hold_memory(share_, events.size());
  if (memory) return kept_.push_back({std::move(events), std::move(*memory)});
  lost_ = memory.error();
  kept_.clear();
}

void follower_output::end() {
  over_ = true;
  if (begun_) out_->end();
}

void follower_output::abort() {
  aborted_ = true;
  kept_.clear();
  out_->abort();
}

}  // namespace skein::request
