#pragma once
#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace skein::device {

/// Waiting items of many clients. Each client's items keep their order; clients take turns, so that one with a thousand
/// waiting items delays another's first by one turn only.
template <typename Item>
class fair_queue {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  /// Items of one client that wait.
  [[nodiscard]] std::size_t size_of(const std::string& client) const {
    for (const auto& l : lines_)
      if (l.client == client) return l.items.size();
    return 0;
  }

  void push_back(const std::string& client, Item item) {
    line_of(client).items.push_back(std::move(item));
    ++size_;
  }
  /// Takes back a pop(), the latest first: the item is the next again.
  void unpop(const std::string& client, Item item) {
    const auto at = std::ranges::find(lines_, client, &line::client);
    line first = at == lines_.end() ? line{client, {}} : std::move(*at);
    if (at != lines_.end()) lines_.erase(at);
    first.items.push_front(std::move(item));
    lines_.push_front(std::move(first));
    ++size_;
  }
  /// The next item by turns. Call on a non-empty queue only.
  Item pop() {
    line next = std::move(lines_.front());
    lines_.pop_front();
    Item item = std::move(next.items.front());
    next.items.pop_front();
    --size_;
    if (!next.items.empty()) lines_.push_back(std::move(next));
    return item;
  }

  /// Takes out every item for which `leaves` is true. Linear in the queue, whose size the configuration bounds.
  template <typename Predicate>
  void remove_if(Predicate leaves) {
    for (auto& l : lines_) size_ -= std::erase_if(l.items, leaves);
    std::erase_if(lines_, [](const line& l) { return l.items.empty(); });
  }

 private:
  struct line {
    std::string client;
    std::deque<Item> items;
  };

  line& line_of(const std::string& client) {
    for (auto& l : lines_)
      if (l.client == client) return l;
    lines_.push_back({client, {}});
    return lines_.back();
  }

  std::deque<line> lines_;  // non-empty lines, the one whose turn it is first
  std::size_t size_ = 0;
};

}  // namespace skein::device
