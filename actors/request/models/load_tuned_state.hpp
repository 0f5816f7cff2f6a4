#pragma once
#include <string>

#include "actors/request/shared/service_context.hpp"
#include "protocol/server/session_request.hpp"

namespace skein::request {

/// Reads the file of a tuned state, or the files of a mixture, below `states_dir`. May take long: run it on the worker
/// pool.
/// Errors: those of path_below and of the files, naming state_filename or state_filenames[i].
[[nodiscard]] result<tuned_state> load_tuned_state(const protocol::load_state_request& wanted,
                                                   const served_model& model, const std::string& states_dir);

}  // namespace skein::request
