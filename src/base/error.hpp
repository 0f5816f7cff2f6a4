#pragma once
#include <string>
#include <string_view>

namespace skein {

/// What went wrong, as far as a caller can act on it. Each kind has one HTTP status (protocol/http_error) and one
/// exit code (cli/exit_code).
enum class error_kind {
  invalid_argument,  ///< a value of a request, flag or call is wrong; `field` names it
  unsupported,       ///< well formed, but not something this program does
  unauthorized,      ///< no or wrong credentials
  forbidden,         ///< known, but not allowed
  not_found,         ///< no such model, route, file or session
  conflict,          ///< the thing is busy or belongs to another model
  in_use,            ///< another process has it; free again when that one ends
  too_large,         ///< above a configured limit
  overloaded,        ///< a queue is full; try again soon
  unavailable,       ///< the server, device or model cannot serve now (loading, draining, gone)
  timeout,           ///< a configured time ran out
  cancelled,         ///< the client left or asked to stop
  bad_file,          ///< a model, state or vocabulary file is damaged or hostile; the text names file and offset
  missing_file,      ///< no file at that path
  damaged,           ///< a stored session or state fails its checks; it was set aside
  no_space,          ///< the disk is full
  no_memory,         ///< the model does not fit into memory
  io,                ///< the system refused to read or write
  bad_config,        ///< the configuration is wrong; the text names file, line and key
  internal,          ///< our own mistake
};

/// The name of a kind as it is written in logs, e.g. "invalid_argument".
[[nodiscard]] std::string_view to_string(error_kind kind);

/// Expected trouble, passed as a value. `message` is a sentence for a person and holds no secret and no prompt text.
struct error {
  error_kind kind = error_kind::internal;
  std::string message;
  std::string field;  ///< the request field, flag or configuration key at fault; may be empty
};

}  // namespace skein
