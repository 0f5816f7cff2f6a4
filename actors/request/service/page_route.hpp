#pragma once
#include "actors/connection/http/http.hpp"

namespace skein::request {

/// Answers "/" and "/web/..." with a file of the chat page, or with 304 if the client has it. False: there is no such
/// file, and no answer was sent.
[[nodiscard]] bool answer_page(const connection::request_head& head, connection::response_writer& out);

/// Answers /openapi.json with the description of the API, or with 304 if the client has it. `headers` are those of
/// every answer.
void answer_openapi(const connection::request_head& head, connection::header_list headers,
                    connection::response_writer& out);

}  // namespace skein::request
