#pragma once
#include <span>
#include <string_view>

/// Files that are part of the program: the chat page, whose files lie in this folder, and the description of the API.
namespace skein::web {

struct page_file {
  std::string_view path;  ///< below /web, e.g. "js/app.js"
  std::string_view type;  ///< Content-Type
  std::string_view etag;  ///< with its quotes; another content has another one
  std::string_view bytes;
};

/// All of them, the page itself ("index.html") among them.
[[nodiscard]] std::span<const page_file> page_files();

/// docs/openapi.json, alone.
[[nodiscard]] std::span<const page_file> api_files();

}  // namespace skein::web
