#pragma once
#include <string>
#include <string_view>

namespace skein {

/// What went wrong, as far as a caller can act on it. Each kind has one HTTP status (protocol/http_error) and one
/// exit code (cli/exit_code).
enum class error_kind {
  invalid_argument,  ///< a value of a request, flag or call is wrong; `field` names it
  unsupported,       ///< well formed, but this program does not support it
  unauthorized,      ///< no or wrong credentials
  forbidden,         ///< known, but not allowed
  not_found,         ///< no such model, route, file or session
  conflict,          ///< the resource is busy or belongs to another model
  in_use,            ///< another process holds it; free again when that process ends
  too_large,         ///< above a configured limit
  overloaded,        ///< a queue is full; try again soon
  unavailable,       ///< the server, device or model cannot serve now (loading, draining, gone)
  timeout,           ///< a configured time ran out
  cancelled,         ///< the client disconnected or asked to stop
  bad_file,          ///< a model, state or vocabulary file is damaged or hostile; the text names file and offset
  missing_file,      ///< no file at that path
  damaged,           ///< a stored session or state fails its checks; it was set aside
  no_space,          ///< the disk is full
  no_memory,         ///< the model does not fit into memory
  io,                ///< the system refused to read or write
  bad_config,        ///< the configuration is wrong; the text names file, line and key
  internal,          ///< a bug in this program
};

/// The name of a kind as it is written in logs, e.g. "invalid_argument".
[[nodiscard]] std::string_view to_string(error_kind kind);

/// An expected failure, passed as a value. `message` is a sentence for a person and contains neither secrets nor prompt
/// text.
struct error {
  error_kind kind = error_kind::internal;
  std::string message;
  std::string field;  ///< the request field, flag or configuration key at fault; may be empty
};

}  // namespace skein
