#include "tests/server/hang_ups.hpp"

#include <chrono>
#include <random>
#include <utility>
#include <vector>

#include "tests/server/fake_wish.hpp"
#include "tests/server/stream_client.hpp"

namespace skein::test {
namespace {

constexpr std::size_t at_once = 100;
constexpr std::uint32_t prompt_tokens_max = 2000;
constexpr std::uint32_t answer_tokens_max = 100;
/// Bytes of a stream of that many tokens, roughly: an event has some 250.
constexpr std::size_t stream_bytes = answer_tokens_max * 250;

/// Draws who does what.
class guest_book {
 public:
  explicit guest_book(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }
  [[nodiscard]] fake_wish wish() {
    return make_wish(random_(), static_cast<std::uint32_t>(1 + below(prompt_tokens_max)),
                     static_cast<std::uint32_t>(1 + below(answer_tokens_max)));
  }
  [[nodiscard]] visit leave_at(moment when, const fake_wish& wish) {
    visit v;
    v.request = wish.request();
    v.leaves = static_cast<departure>(below(3));
    const std::size_t header = v.request.find("\r\n\r\n") + 4;
    switch (when) {
      case moment::before_request: v.send_bytes = 0; break;
      case moment::in_header: v.send_bytes = 1 + below(header - 1); break;
      case moment::in_body: v.send_bytes = header + below(v.request.size() - header); break;
      case moment::in_queue_or_prefill: v.read_bytes = 0; break;
      case moment::in_stream: v.read_bytes = 1 + below(stream_bytes); break;
      case moment::at_end: break;
    }
    const bool waits = when <= moment::in_queue_or_prefill && below(2) == 0;
    if (waits) v.patience = std::chrono::microseconds(below(20'000));
    return v;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace

hang_up_report hang_up(std::uint16_t port, std::size_t count, std::uint64_t seed) {
  guest_book book(seed);
  hang_up_report report;
  stream_client client(port);
  std::vector<fake_wish> wishes;
  while (wishes.size() < count) {
    const auto when = static_cast<moment>(book.below(moment_names.size()));
    wishes.push_back(book.wish());
    visit v = book.leave_at(when, wishes.back());
    ++report.by_moment[static_cast<std::size_t>(when)];
    ++report.by_departure[static_cast<std::size_t>(v.leaves)];
    client.start(std::move(v));
    client.run_until([&] { return client.open() < at_once; });
  }
  client.run();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& text = client.answer(i).text();
    if (text.empty()) continue;
    ++report.with_text;
    if (text != wishes[i].text(text.size())) ++report.wrong_texts;
  }
  return report;
}

}  // namespace skein::test
