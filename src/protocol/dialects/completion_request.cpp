#include <algorithm>

#include "protocol/dialects/dialect_readers.hpp"
#include "protocol/requests/shared_fields.hpp"

namespace skein::protocol {
namespace {

constexpr std::uint32_t completion_logprobs_max = 5;

/// Reads the four forms of `prompt`: a text, texts, token ids, lists of token ids.
class prompt_reader {
 public:
  prompt_reader(const object_reader& body, const request_limits& limits)
      : fault_(body.fault()), limits_(limits), path_(body.path_of("prompt")) {}

  void read(json_value value, generation_request& out) {
    if (const auto text = value.text()) {
      out.prompts.push_back({std::string(*text), {}, false});
    } else if (!value.is(json_kind::array) || value.is_empty_array()) {
      refuse(path_);
    } else if ((*value.elements().begin()).is(json_kind::number)) {
      out.prompts.push_back({"", read_tokens(value, path_), true});
    } else {
      for (const auto element : value.elements()) {
        if (fault_.found()) break;
        const bool left_out = has_all_prompts(out, limits_);
        add_prompt(left_out ? prompt_input() : read_one(element, element_path(path_, out.prompts.size())), limits_,
                   out);
      }
    }
  }

 private:
  prompt_input read_one(json_value value, const std::string& path) {
    if (const auto text = value.text()) return {std::string(*text), {}, false};
    if (value.is(json_kind::array) && !value.is_empty_array()) return {"", read_tokens(value, path), true};
    refuse(path);
    return {};
  }

  std::vector<token_id> read_tokens(json_value list, const std::string& path) {
    return read_token_list(list, path, limits_.prompt_tokens_max, fault_);
  }

  void refuse(const std::string& path) {
    fault_.report(error_kind::invalid_argument, path,
                  path + " is invalid: prompt must be a string, strings, token ids, or lists of token ids");
  }

  first_fault& fault_;
  const request_limits& limits_;
  std::string path_;
};

/// Every prompt runs best_of rows, of which the answer shows n. A stream cannot choose, so there best_of must equal n.
void read_rows(const object_reader& body, const request_limits& limits, generation_request& out) {
  const auto best_of = body.integer("best_of", 1, limits.n_max);
  out.best_of = static_cast<std::uint32_t>(best_of.value_or(out.n));
  if (out.best_of < out.n) body.refuse("best_of", "must not be less than n");
  if (out.best_of > out.n && out.stream) body.refuse("best_of", "must equal n in a stream");
}

void read_completion_logprobs(const object_reader& body, sampling::sampling_params& out) {
  const auto top = body.integer("logprobs", 0, completion_logprobs_max);
  out.logprobs = top.has_value();
  out.top_logprobs = static_cast<std::uint32_t>(top.value_or(0));
}

}  // namespace

void read_prompt(const object_reader& body, const reading& by, generation_request& out) {
  out.chat = false;
  if (goes_on(body, "prompt")) {
    out.prompts.emplace_back();
    return;
  }
  const auto prompt = body.value("prompt");
  if (!prompt) return body.refuse("prompt", "is missing");
  prompt_reader(body, by.limits).read(*prompt, out);

  if (const auto suffix = body.text("suffix"); suffix && !suffix->empty()) {
    out.suffix = std::string(*suffix);
    if (std::any_of(out.prompts.begin(), out.prompts.end(), [](const prompt_input& p) { return p.is_tokens; }))
      body.refuse("suffix", "requires text prompts, not tokens");
  }
}

void read_text_options(const object_reader& body, const reading& by, generation_request& out) {
  refuse_unsupported_fields(body);
  refuse_tool_use(body);
  read_rows(body, by.limits, out);
  read_completion_logprobs(body, out.sampling);
  out.echo = body.boolean("echo").value_or(false);
}

}  // namespace skein::protocol
