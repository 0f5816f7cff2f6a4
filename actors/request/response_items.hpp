#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "actors/persistence/persistence_mailbox.hpp"
#include "base/result.hpp"

/// The items of the Responses API: what was said and answered, as the log has it.
namespace skein::request {

/// What a client asked for of a list.
struct item_page {
  std::uint32_t limit = 20;
  bool ascending = false;
  std::string after;                              ///< the item before it; empty: from the list's beginning
  std::size_t bytes_max = std::size_t{32} << 20;  ///< a longer page ends before
};

/// What the client said in one turn. Errors: invalid_argument for an `after` that is none of these; too_large for an
/// item that is longer than a page.
[[nodiscard]] result<std::string> input_item_list(const persistence::version_record& turn, const item_page& page);

/// All that a conversation has, in the turns from its beginning to its end. Errors as above.
[[nodiscard]] result<std::string> conversation_item_list(std::span<const persistence::shared_version> turns,
                                                         const item_page& page);

/// What a client is told in place of an answer that is longer than limits.response_bytes_max.
[[nodiscard]] error answer_too_long(std::size_t bytes, std::size_t bytes_max);

/// One of them; nothing where none has that id.
[[nodiscard]] std::optional<std::string> conversation_item(std::span<const persistence::shared_version> turns,
                                                           const std::string& id);

}  // namespace skein::request
