#pragma once
#include <string>
#include <string_view>

namespace skein::cli {

/// Writes a manual page for man(1) from top to bottom. Texts are plain; roff commands in them are escaped here.
class roff_page {
 public:
  roff_page(std::string_view name, std::string_view section, std::string_view of);

  void heading(std::string_view text);
  void sub_heading(std::string_view text);
  void paragraph(std::string_view text);
  /// A term in bold, followed by its placeholder in italics, and its meaning below.
  void item(std::string_view term, std::string_view filled_in, std::string_view text);
  /// Preformatted lines.
  void example(std::string_view lines);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void line(std::string_view content);

  std::string text_;
};

}  // namespace skein::cli
