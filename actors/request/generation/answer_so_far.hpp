#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "protocol/responses/answer_writer.hpp"

namespace skein::request {

/// A copy of a response that runs, for any thread.
struct answer_copy {
  std::shared_ptr<const protocol::answer_writer> writer;  ///< null: nothing was known yet
  protocol::answer_head head;
  bool begun = false;

  /// answer_writer::told_again and early_body.
  [[nodiscard]] std::string told_again(std::optional<std::uint64_t> after) const {
    return writer ? writer->told_again(head, after) : std::string();
  }
  [[nodiscard]] std::string early_body() const { return writer ? writer->early_body(head, begun) : std::string(); }
};

/// What other clients may learn of a response that runs. Refers to the data of its call, so it is used at once, on the
/// call's io thread.
struct answer_so_far {
  const protocol::answer_writer* writer = nullptr;  ///< null: nothing is known yet
  const protocol::answer_head* head = nullptr;
  bool begun = false;  ///< a prompt had a slot

  /// answer_writer::told_again_bytes and copied_bytes.
  [[nodiscard]] std::size_t told_again_bytes(std::optional<std::uint64_t> after) const {
    return writer ? writer->told_again_bytes(after) : 0;
  }
  [[nodiscard]] std::size_t copied_bytes() const { return writer ? writer->copied_bytes() : 0; }
  [[nodiscard]] answer_copy copy() const { return writer ? answer_copy{writer->copy(), *head, begun} : answer_copy(); }
};

}  // namespace skein::request
