#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "protocol/responses/answer_writer.hpp"

namespace skein::request {

/// What other clients may learn of a response that runs. Refers to the data of its call, so it is used at once, on the
/// call's io thread.
struct answer_so_far {
  const protocol::answer_writer* writer = nullptr;  ///< null: nothing is known yet
  const protocol::answer_head* head = nullptr;
  bool begun = false;  ///< a prompt had a slot

  /// answer_writer::told_again, told_again_bytes and early_body.
  [[nodiscard]] std::string told_again(std::optional<std::uint64_t> after) const {
    return writer ? writer->told_again(*head, after) : std::string();
  }
  [[nodiscard]] std::size_t told_again_bytes(std::optional<std::uint64_t> after) const {
    return writer ? writer->told_again_bytes(after) : 0;
  }
  [[nodiscard]] std::string early_body() const { return writer ? writer->early_body(*head, begun) : std::string(); }
};

}  // namespace skein::request
