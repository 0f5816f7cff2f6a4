#pragma once
#include <span>
#include <string_view>

/// The chat page. Its files lie in this folder and are part of the program.
namespace skein::web {

struct page_file {
  std::string_view path;  ///< below /web, e.g. "js/app.js"
  std::string_view type;  ///< Content-Type
  std::string_view etag;  ///< with its quotes; another content has another one
  std::string_view bytes;
};

/// All of them, the page itself ("index.html") among them.
[[nodiscard]] std::span<const page_file> page_files();

}  // namespace skein::web
