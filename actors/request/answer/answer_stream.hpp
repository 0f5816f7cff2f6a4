#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/request/answer/row_text.hpp"
#include "protocol/responses/answer_writer.hpp"

namespace skein::request {

/// The events of a streamed answer that its client has not got yet: text that is written, then deltas since (at most
/// one per row), then ends of rows.
class answer_stream {
 public:
  explicit answer_stream(std::size_t rows) : rows_(rows), round_of_(rows) {}

  /// Appends text as it is.
  void append(std::string_view events) { text_ += events; }
  /// Whether write() must come before the row's next delta.
  [[nodiscard]] bool has_delta(std::size_t row) const { return round_of_[row] == round_; }
  /// `index`: of the row's choice.
  void add(std::size_t row, std::uint32_t index, row_text::piece piece, std::vector<protocol::logprob_entry> scores);
  void add_end(std::uint32_t index, protocol::answer_end end) { ended_.emplace_back(index, std::move(end)); }

  /// Writes the deltas in order of index, then the ends. True: the last row has ended, and the last events are due.
  [[nodiscard]] bool write(const protocol::answer_writer& writer, const protocol::answer_head& head,
                           const protocol::session_note* note);
  [[nodiscard]] std::string take() { return std::exchange(text_, {}); }

 private:
  struct delta {
    std::uint32_t index;
    row_text::piece piece;
    std::vector<protocol::logprob_entry> scores;
  };

  const std::size_t rows_;
  std::string text_;
  std::vector<delta> deltas_;
  std::vector<std::pair<std::uint32_t, protocol::answer_end>> ended_;
  std::size_t ends_told_ = 0;            // of rows
  std::uint64_t round_ = 1;              // of writing
  std::vector<std::uint64_t> round_of_;  // of each row's last delta
};

}  // namespace skein::request
