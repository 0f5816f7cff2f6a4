#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "base/result.hpp"

/// The items of the Responses API: the messages and answers in the log.
namespace skein::request {

/// The requested page of a list.
struct item_page {
  std::uint32_t limit = 20;
  bool ascending = false;
  std::string after;                              ///< the item before the page; empty: from the list's beginning
  std::size_t bytes_max = std::size_t{32} << 20;  ///< the page is cut to this size
};

/// The client's items of one turn. Errors: invalid_argument if `after` is none of them; too_large for an item that is
/// longer than a page.
[[nodiscard]] result<std::string> input_item_list(const persistence::version_record& turn, const item_page& page);

/// All items of a conversation, whose turns are in order. Errors as above.
[[nodiscard]] result<std::string> conversation_item_list(std::span<const persistence::shared_version> turns,
                                                         const item_page& page);

/// The item with that id; nothing if there is none.
[[nodiscard]] std::optional<std::string> conversation_item(std::span<const persistence::shared_version> turns,
                                                           const std::string& id);

}  // namespace skein::request
