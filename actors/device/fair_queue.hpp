#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

namespace skein::device {

/// Waiting items of many clients. Each client's items keep their order; the next item is that of the client that was
/// served the fewest tokens. So clients with constant demand get the same number of tokens, whether they request many
/// short answers or a few long ones. Clients that were served equally take turns.
///
/// The comparison does not use all tokens that a client ever got. A fair share grows by 1 / clients with each token of
/// any client. A client that arrives, new or again, starts at the fair share, or higher if it recently had more. So a
/// client cannot catch up on tokens that it did not request, cannot gain by leaving, and does not starve.
template <typename Item>
class fair_queue {
 public:
  struct account {
    double served = 0;          // tokens, starting at the fair share at its arrival
    std::uint32_t holders = 0;  // requests, plus 1 while it has a line; 0: the client left with more than its share
    std::uint32_t unbegun = 0;  // requests not yet admitted; counted by the caller
    std::uint32_t slots = 0;    // slots that its requests hold; counted by the caller
  };

  /// Counts one more request of the client. The account keeps its address until leave() was called as often.
  account& enter(const std::string& client) {
    account& a = accounts_[client];
    if (a.holders++ == 0) {
      a.served = std::max(a.served, share_);
      ++active_;
    }
    return a;
  }
  void leave(const std::string& client) {
    const auto found = accounts_.find(client);
    if (found == accounts_.end() || --found->second.holders > 0) return;
    --active_;
    if (accounts_.size() > 2 * active_ + 64)
      std::erase_if(accounts_, [&](const auto& one) { return one.second.holders == 0 && one.second.served <= share_; });
  }
  void charge(account& payer, std::uint64_t tokens) {
    payer.served += static_cast<double>(tokens);
    share_ += static_cast<double>(tokens) / std::max(1u, active_);
  }

  /// Clients that have requests.
  [[nodiscard]] std::uint32_t clients() const { return active_; }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  /// Requests of one client that were never admitted; parked ones do not count.
  [[nodiscard]] std::uint32_t unbegun(const std::string& client) const {
    const auto found = accounts_.find(client);
    return found == accounts_.end() ? 0 : found->second.unbegun;
  }

  void push_back(const std::string& client, Item item) {
    line_of(client).items.push_back(std::move(item));
    ++size_;
  }
  /// Reverts a pop(), the latest one first: the item is next again among clients that were served equally.
  void unpop(const std::string& client, Item item) {
    const auto at = std::ranges::find(lines_, client, &line::client);
    line first = at == lines_.end() ? line{client, {}, &enter(client)} : std::move(*at);
    if (at != lines_.end()) lines_.erase(at);
    first.items.push_front(std::move(item));
    lines_.push_front(std::move(first));
    ++size_;
  }
  /// The next item. Call on a non-empty queue only.
  Item pop() {
    const auto at = std::ranges::min_element(lines_, {}, [](const line& l) { return l.payer->served; });
    line next = std::move(*at);
    lines_.erase(at);
    Item item = std::move(next.items.front());
    next.items.pop_front();
    --size_;
    if (next.items.empty())
      leave(next.client);
    else
      lines_.push_back(std::move(next));
    return item;
  }

  /// Takes out every item for which `leaves` is true. Linear in the queue, whose size the configuration bounds.
  template <typename Predicate>
  void remove_if(Predicate leaves) {
    for (auto& l : lines_) {
      size_ -= std::erase_if(l.items, leaves);
      if (l.items.empty()) leave(l.client);
    }
    std::erase_if(lines_, [](const line& l) { return l.items.empty(); });
  }

 private:
  struct line {
    std::string client;
    std::deque<Item> items;
    account* payer;  // of this client
  };

  line& line_of(const std::string& client) {
    for (auto& l : lines_)
      if (l.client == client) return l;
    lines_.push_back({client, {}, &enter(client)});
    return lines_.back();
  }

  std::unordered_map<std::string, account> accounts_;
  double share_ = 0;
  std::uint32_t active_ = 0;  // accounts with holders
  std::deque<line> lines_;    // non-empty; among clients that were served equally, the first is next
  std::size_t size_ = 0;
};

}  // namespace skein::device
