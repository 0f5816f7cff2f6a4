#pragma once
#include <span>
#include <string_view>

/// Files compiled into the program: the chat page (from this folder) and the API description.
namespace skein::web {

struct page_file {
  std::string_view path;  ///< below /web, e.g. "js/app.js"
  std::string_view type;  ///< Content-Type
  std::string_view etag;  ///< with its quotes; made of the hash of the content
  std::string_view bytes;
};

/// All files of the page, including "index.html".
[[nodiscard]] std::span<const page_file> page_files();

/// Only docs/openapi.json.
[[nodiscard]] std::span<const page_file> api_files();

}  // namespace skein::web
