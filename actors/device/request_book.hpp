#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "actors/device/event_box.hpp"
#include "actors/device/fair_queue.hpp"
#include "actors/device/scheduler_options.hpp"
#include "actors/device/sequence.hpp"
#include "actors/device/slot_table.hpp"

namespace skein::device {

/// The requests from their arrival to their end: their records, the queue of sequences that wait for a slot, and the
/// accounts of the clients. It reports the ends of rows and requests, answers their keys, and lets the sequences leave
/// their places.
class request_book {
 public:
  /// The arguments outlive it.
  request_book(const scheduler_options& options, slot_table& slots, news_box& news, event_box& events);
  ~request_book();
  request_book(const request_book&) = delete;  // sequences point to their requests
  request_book& operator=(const request_book&) = delete;

  /// Null: unknown or ended.
  [[nodiscard]] request_record* find(request_id id);
  [[nodiscard]] bool empty() const { return requests_.empty(); }
  [[nodiscard]] bool contains(request_id id) const { return requests_.contains(id); }
  /// Calls visit(request&) for each request; the visit must not end any.
  template <typename Visit>
  void for_each(Visit visit) {
    for (auto& [id, r] : requests_) visit(*r);
  }

  // ---- arrival ----
  /// Why the queue has no room for a new request.
  [[nodiscard]] std::optional<error> no_room(const submit& message) const;
  /// Takes a new request into the queue. If it throws, the message was not taken.
  request_record& enter(submit&& message, steady_time now);
  /// Its sequences have their slots.
  void admit(request_record& r, steady_time now);
  void pause(request_record& r);
  void resume(request_record& r);

  // ---- the queue of sequences that wait for a slot ----
  [[nodiscard]] bool none_waits() const { return queue_.empty(); }
  void enqueue(sequence& s);
  /// The sequence that gets the next slot. It still counts as waiting: call put_back() unless it changes its place.
  [[nodiscard]] sequence& pop();
  /// Reverts a pop(), the latest one first.
  void put_back(const sequence& s);
  /// Clients that have requests.
  [[nodiscard]] std::uint32_t clients() const { return queue_.clients(); }
  /// Charges tokens to the client.
  void charge(const request_record& r, std::uint64_t tokens) { queue_.charge(*r.payer, tokens); }

  // ---- ends ----
  /// Reports the end of a row. If its state is to be settled, the state stays in place until the text is decided.
  void end_row(sequence& s, finish_cause cause);
  /// Ends the row; it leaves, unless its state is to be settled.
  void finish(sequence& s, finish_cause cause);
  /// The row releases everything that it holds. The last row of a request erases the request.
  void leave(sequence& s);
  /// Ends all rows that run, wait or settle.
  void drop(request_record& r, finish_cause cause);
  /// Rejects a request that was queued and not admitted.
  void reject(request_record& r, error why);
  /// Rejects a request that was not queued, or whose keys were answered already.
  void reject(const submit& message, error why);
  /// The settled state was handed over, and its row has left.
  void erase_settled(request_record& r);
  /// Answers the remaining keys without a state.
  void refuse_rest(request_record& r);
  /// Ends every request of a lost device. Does not rely on anything that an exception may have left incomplete.
  void end_lost(const error& why);
  /// Records of requests that ended before the last plan are released: no command points into them any more.
  void release_ended() { ended_.clear(); }
  /// Requests that ran and have ended.
  [[nodiscard]] std::uint64_t finished() const { return finished_; }

  void emit(const request_record& r, event e) { events_.add(r.message.reply_to, std::move(e)); }

  void add_to(scheduler_counts& counts) const;
  /// Rows that were planned and not absorbed.
  [[nodiscard]] std::size_t rows_in_flight() const;
  void self_check() const;

 private:
  using account = fair_queue<row_reference>::account;
  void dequeue(const sequence& s);
  void erase(request_record& r);

  const scheduler_options& options_;
  slot_table& slots_;
  news_box& news_;
  event_box& events_;
  std::unordered_map<request_id, std::unique_ptr<request_record>> requests_;
  fair_queue<row_reference> queue_;
  std::vector<std::unique_ptr<request_record>> ended_;  // kept alive because commands of this plan may point into them
  std::uint32_t waiting_ = 0;                           // requests not admitted yet
  std::uint32_t paused_ = 0;
  std::uint64_t prompt_tokens_ = 0, finished_ = 0, rejected_ = 0;
};

}  // namespace skein::device
