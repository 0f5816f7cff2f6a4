#include "actors/request/service/page_route.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "web/page_files.hpp"

namespace skein::request {
namespace {

/// The page loads only its own files, talks only to its own server, and cannot be framed. No text becomes HTML.
constexpr std::string_view policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'";

const web::page_file* find_file(std::string_view path) {
  constexpr std::string_view folder = "/web/";
  if (path == "/") path = "/web/index.html";
  if (!path.starts_with(folder)) return nullptr;
  const auto files = web::page_files();
  const auto file = std::ranges::find(files, path.substr(folder.size()), &web::page_file::path);
  return file == files.end() ? nullptr : &*file;
}

/// Whether the client has this content: `tags` is a list of them, or *.
bool has_it(std::string_view tags, std::string_view etag) {
  return tags == "*" || tags.find(etag) != std::string_view::npos;
}

}  // namespace

bool answer_page(const connection::request_head& head, connection::response_writer& out) {
  const web::page_file* file = find_file(head.path);
  if (!file) return false;
  connection::header_list headers{{"ETag", std::string(file->etag)},
                                  {"Cache-Control", "no-cache"},
                                  {"Content-Security-Policy", std::string(policy)},
                                  {"X-Content-Type-Options", "nosniff"},
                                  {"Referrer-Policy", "no-referrer"},
                                  {"Cross-Origin-Opener-Policy", "same-origin"}};
  const bool known = has_it(head.field("if-none-match"), file->etag);
  if (!known) headers.emplace_back("Content-Type", std::string(file->type));
  out.respond(known ? 304 : 200, std::move(headers), std::string(known ? "" : file->bytes));
  return true;
}

void answer_openapi(const connection::request_head& head, connection::header_list headers,
                    connection::response_writer& out) {
  const web::page_file& file = web::api_files().front();
  std::erase_if(headers, [](const auto& field) { return field.first == "Cache-Control"; });
  headers.emplace_back("ETag", std::string(file.etag));
  headers.emplace_back("Cache-Control", "no-cache");
  const bool known = has_it(head.field("if-none-match"), file.etag);
  if (!known) headers.emplace_back("Content-Type", std::string(file.type));
  out.respond(known ? 304 : 200, std::move(headers), std::string(known ? "" : file.bytes));
}

}  // namespace skein::request
