#include "protocol/server/session_request.hpp"

#include "protocol/requests/lenient_fields.hpp"
#include "protocol/requests/object_reader.hpp"
#include "protocol/requests/shared_fields.hpp"

namespace skein::protocol {
namespace {

/// Reads the fields that all bodies about tuned states share.
load_state_request read_view(const object_reader& body) {
  load_state_request view;
  view.name = required_text(body, "state_viewname");
  view.temperature = lenient_number(body, "default_temperature", 0, 1000);
  view.top_p = lenient_number(body, "default_top_p", 0, 1);
  return view;
}

std::vector<std::string> read_files(const object_reader& body, std::size_t files_max) {
  std::vector<std::string> files;
  const auto list = body.array("state_filenames");
  if (!list || list->is_empty_array()) {
    body.refuse("state_filenames", "must be a non-empty list of names");
    return files;
  }
  for (const auto element : list->elements()) {
    const auto name = element.text();
    if (!name || name->empty()) body.refuse(element_path("state_filenames", files.size()), "must be a file's name");
    files.emplace_back(name.value_or(""));
    if (files.size() <= files_max) continue;
    body.refuse("state_filenames", "must have at most " + std::to_string(files_max) + " names");
    break;
  }
  return files;
}

}  // namespace

result<void> check_session_id(std::string_view id, const std::string& field) {
  if (!id.empty() && id.size() <= session_id_bytes_max) return {};
  return error{error_kind::invalid_argument,
               field + " must have 1 to " + std::to_string(session_id_bytes_max) + " bytes", field};
}

result<fork_request> parse_fork(std::string_view text, const request_limits& limits) {
  auto request = read_body(or_empty_object(text), limits, [](const object_reader& body) {
    return fork_request{std::string(body.text("to").value_or("")), read_version(body, "version")};
  });
  if (!request) return request;
  if (auto ok = check_session_id(request->to, "to"); !ok) return ok.error();
  if (!fits_in_path(request->to)) return error{error_kind::invalid_argument, std::string("to ") + no_path, "to"};
  return request;
}

result<std::uint32_t> parse_rollback(std::string_view text, const request_limits& limits) {
  return read_body(or_empty_object(text), limits, [](const object_reader& body) {
    const auto version = read_version(body, "version");
    if (!version) body.refuse("version", "must be the number of a version");
    return version.value_or(0);
  });
}

result<label_request> parse_labels(std::string_view text, const request_limits& limits) {
  return read_body(or_empty_object(text), limits, [](const object_reader& body) {
    label_request request;
    if (const auto title = body.text("title")) {
      if (title->empty() || title->size() > session_title_bytes_max)
        body.refuse("title", "must have 1 to " + std::to_string(session_title_bytes_max) + " bytes");
      request.title = *title;
    }
    request.metadata = read_metadata(body);
    if (!request.title && !request.metadata) body.refuse("title", "or metadata must be given");
    return request;
  });
}

result<state_delete_request> parse_state_delete(std::string_view text, const request_limits& limits) {
  return read_body(or_empty_object(text), limits, [](const object_reader& body) {
    state_delete_request request;
    request.session_id = body.text("session_id").value_or("");
    request.with_prefix = body.boolean("delete_prefix").value_or(false);
    if (request.session_id.empty())  // legacy text that clients of the older servers may compare
      body.fault().report(error_kind::invalid_argument, "session_id", "Missing session_id parameter");
    return request;
  });
}

result<void> parse_nothing(std::string_view text, const request_limits& limits) {
  const auto document = parse_object(or_empty_object(text), limits);
  if (!document) return document.error();
  return {};
}

result<load_state_request> parse_load_state(std::string_view text, const request_limits& limits) {
  return read_body(or_empty_object(text), limits, [](const object_reader& body) {
    load_state_request request = read_view(body);
    request.files.push_back(required_text(body, "state_filename"));
    return request;
  });
}

result<load_state_request> parse_load_mixture(std::string_view text, const request_limits& limits) {
  return read_body(or_empty_object(text), limits, [&](const object_reader& body) {
    load_state_request request = read_view(body);
    request.mixture = true;
    request.with_original = lenient_flag(body, "contain_originalstate").value_or(false);
    request.files = read_files(body, limits.mixture_max - (request.with_original ? 1 : 0));
    const std::size_t states = request.files.size() + (request.with_original ? 1 : 0);
    request.weights = read_weights(body, "state_gatingweight", states).value_or(std::vector(states, 1.0f));
    return request;
  });
}

result<load_state_request> parse_set_weights(std::string_view text, const request_limits& limits) {
  return read_body(or_empty_object(text), limits, [&](const object_reader& body) {
    load_state_request request = read_view(body);
    const auto weights = read_weights(body, "state_gatingweight", limits.mixture_max);
    if (!weights) body.refuse("state_gatingweight", "must be a non-empty list of numbers");
    request.weights = weights.value_or(std::vector<float>());
    return request;
  });
}

result<std::string> parse_remove_state(std::string_view text, const request_limits& limits) {
  return read_body(or_empty_object(text), limits,
                   [](const object_reader& body) { return std::string(body.text("state_viewname").value_or("")); });
}

}  // namespace skein::protocol
