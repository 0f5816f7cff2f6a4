#include "cli/help/roff.hpp"

#include <algorithm>
#include <cctype>

namespace skein::cli {
namespace {

/// Escapes hyphens, backslashes, and roff commands at the beginning of a line.
std::string escaped(std::string_view text) {
  std::string made;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (made.empty() || made.back() == '\n')) made += "\\&";
    if (c == '\\')
      made += "\\e";
    else if (c == '-')
      made += "\\-";
    else
      made += c;
  }
  return made;
}

std::string upper(std::string_view text) {
  std::string made(text);
  std::ranges::transform(made, made.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return made;
}

}  // namespace

roff_page::roff_page(std::string_view name, std::string_view section, std::string_view of) {
  line(".TH \"" + upper(name) + "\" " + std::string(section) + " \"\" \"" + std::string(of) + "\" \"Skein\"");
}

void roff_page::line(std::string_view content) { text_.append(content) += '\n'; }

void roff_page::heading(std::string_view text) { line(".SH " + upper(escaped(text))); }

void roff_page::sub_heading(std::string_view text) { line(".SS \"" + escaped(text) + '"'); }

void roff_page::paragraph(std::string_view text) {
  line(".PP");
  line(escaped(text));
}

void roff_page::item(std::string_view term, std::string_view filled_in, std::string_view text) {
  line(".TP");
  line("\\fB" + escaped(term) + "\\fR" + (filled_in.empty() ? "" : " \\fI" + escaped(filled_in) + "\\fR"));
  line(text.empty() ? "\\&" : escaped(text));
}

void roff_page::example(std::string_view lines) {
  for (const auto mark : {".PP", ".RS 4", ".nf"}) line(mark);
  line(escaped(lines));
  for (const auto mark : {".fi", ".RE"}) line(mark);
}

}  // namespace skein::cli
