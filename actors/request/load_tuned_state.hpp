#pragma once
#include <string>

#include "actors/request/service_context.hpp"
#include "protocol/session_request.hpp"

namespace skein::request {

/// Reads the file of a tuned state, or those of a mixture, below `states_dir`. Takes as long as the files are. Errors:
/// those of path_below and of the files, naming state_filename or state_filenames[i].
[[nodiscard]] result<tuned_state> load_tuned_state(const protocol::load_state_request& wanted,
                                                   const served_model& model, const std::string& states_dir);

}  // namespace skein::request
