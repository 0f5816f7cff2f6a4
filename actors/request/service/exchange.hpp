#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/request/call/auth.hpp"
#include "actors/request/service/api_service.hpp"
#include "actors/request/service/watched_response.hpp"
#include "protocol/json/http_error.hpp"

/// A request as the handlers of api_service see it.
namespace skein::request {

/// A path, its methods and their handler. Rows of one path are adjacent.
struct api_service::route {
  std::string_view pattern;  ///< see match_path
  std::string_view methods;  ///< as in Allow
  made_call (api_service::*handler)(exchange&);
  protocol::error_style errors = protocol::error_style::openai;
  bool open = false;                           ///< needs no password
  bool body_may_tell = false;                  ///< the password may be in the body
  const protocol::dialect* dialect = nullptr;  ///< of generating routes
  bool admin = false;                          ///< only on the admin socket
  bool needs_admin = false;                    ///< a key must have the admin right
  bool while_loading = false;                  ///< answers before the first model is loaded
};

/// One request on its way through accept().
struct api_service::exchange {
  const connection::request_head& head;
  std::shared_ptr<connection::response_writer> out;
  connection::header_list headers;  // for every answer
  std::string name;
  bool authenticated = false;
  caller_ref who = anybody();
  byte_share share = {};                                // its memory budget; once it is admitted
  std::shared_ptr<watched_response> watched = nullptr;  // is `out`
  const route* way = nullptr;                           // null: the path is unknown, or has other methods
  const route* near = nullptr;                          // the first row of this path, whatever its methods
  std::vector<std::string> path;                        // the parts that the route leaves open
  std::string allow;                                    // methods of the path

  [[nodiscard]] protocol::error_style errors() const {
    if (head.path.starts_with("/api/")) return protocol::error_style::flat;  // for clients of ai00 and Ollama
    return near ? near->errors : protocol::error_style::openai;
  }

  /// The form of errors for a request of which no more is known.
  [[nodiscard]] static protocol::error_style errors_of(std::string_view target) {
    connection::request_head head;
    head.raw_path = head.path = target.substr(0, target.find('?'));
    exchange x{.head = head, .out = {}, .headers = {}, .name = {}, .path = {}, .allow = {}};
    x.find_route();
    return x.errors();
  }

  /// Takes the first matching row of the table.
  void find_route();
  void answer(unsigned status, std::string body) {
    connection::header_list all = headers;
    all.emplace_back("Content-Type", "application/json");
    out->respond(status, std::move(all), std::move(body));
  }
  void refuse(const protocol::http_error& e) {
    connection::header_list all = headers;
    all.emplace_back("Content-Type", "application/json");
    all.insert(all.end(), e.headers.begin(), e.headers.end());
    out->respond(e.status, std::move(all), e.body);
  }
  void refuse(const error& e) { refuse(protocol::to_http(e, std::chrono::seconds(1), errors())); }
  [[nodiscard]] plain_origin plain() {
    return {name, head.remote_address, std::move(headers), authenticated, way->needs_admin, who, errors(), share};
  }
};

}  // namespace skein::request
