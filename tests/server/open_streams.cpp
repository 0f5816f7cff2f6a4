#include "tests/server/open_streams.hpp"

namespace skein::test {

void open_streams::add(std::size_t count, std::uint32_t max_tokens) {
  for (std::size_t i = 0; i < count; ++i) {
    wishes_.push_back(make_wish(wishes_.size(), 16, max_tokens));
    client_.start({.request = wishes_.back().request()});
  }
}

void open_streams::run_until_events(std::size_t each) {
  std::size_t behind = 0;  // streams before it have had theirs
  client_.run_until([&] {
    while (behind < size() && (answer(behind).events() >= each || !client_.open(behind))) ++behind;
    return behind == size();
  });
}

std::size_t open_streams::wrong_texts() const {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < size(); ++i)
    if (const std::string& text = answer(i).text(); text != wishes_[i].text(text.size())) ++wrong;
  return wrong;
}

std::size_t open_streams::whole() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    const streamed_answer& a = answer(i);
    if (a.complete() && a.done() && a.finish_reason() == "length" && a.stop_reason().empty() &&
        a.text().size() == wishes_[i].sampling.max_tokens)
      ++count;
  }
  return count;
}

}  // namespace skein::test
