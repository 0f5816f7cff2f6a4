#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "protocol/requests/generation_request.hpp"

/// Bodies of the routes that load and unload models. Errors: as read_request. Numbers and booleans may be strings.
namespace skein::protocol {

struct load_model_request {
  std::string file;                   ///< a path, or an id
  std::string name;                   ///< the new id; empty: that of the file
  std::string strategy;               ///< see model/strategy.hpp; empty: as configured
  std::vector<std::string> adapters;  ///< paths, in order
  std::optional<double> adapter_scale;
  client_defaults defaults;
  bool force = false;
};

/// POST /loadmodel: model_filename, model_viewname, model_strategy, adapter_filename (one or a list), adapter_mode (a
/// check only: the file says what it is), adapter_scaling (of LoRA), default_temperature, default_top_p, template,
/// endtoken (its backslash escapes are decoded), force. Other templates are rejected as unsupported.
[[nodiscard]] result<load_model_request> parse_load_model_file(std::string_view body, const request_limits& limits);

/// POST /v1/model/load: model, strategy, force.
[[nodiscard]] result<load_model_request> parse_load_model_id(std::string_view body, const request_limits& limits);

/// POST /switch-model: model, strategy, force; tokenizer, customCuda and deploy are ignored.
[[nodiscard]] result<load_model_request> parse_switch_model(std::string_view body, const request_limits& limits);

/// POST /removemodel: an empty body, or {"model"? (or model_viewname), "force"?}.
struct remove_model_request {
  std::string model;  ///< its id; empty: all
  bool force = false;
};
[[nodiscard]] result<remove_model_request> parse_remove_model(std::string_view body, const request_limits& limits);

/// POST /update-config of RWKV-Runner: temperature, top_p, top_k, presence_penalty, frequency_penalty, penalty_decay,
/// max_tokens.
[[nodiscard]] result<client_defaults> parse_defaults(std::string_view body, const request_limits& limits);

/// Decodes the escapes \n, \t, \r, \0, \\ and \xHH; other backslashes stay.
[[nodiscard]] std::string without_escapes(std::string_view text);

}  // namespace skein::protocol
