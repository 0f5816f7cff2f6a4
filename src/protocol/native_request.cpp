#include "protocol/generation_request.hpp"
#include "protocol/shared_fields.hpp"

/// Bodies of the older servers' own routes: raw prompts in `contents`, no template, their own defaults.
namespace skein::protocol {
namespace {

constexpr sampling_defaults native_defaults{1.0f, 0.6f, 50, 2.0f, 0.2f, 0.996f, 8192, true};
constexpr std::uint32_t native_chunk_size = 4;

void read_contents(const object_reader& body, generation_request& out) {
  const auto contents = body.array("contents");
  if (!contents) return;
  for (const auto element : contents->elements()) {
    const auto text = element.text();
    if (!text) return body.refuse("contents", "must be a list of strings");
    out.prompts.push_back({std::string(*text), {}, false});
  }
}

/// In words that old clients may compare with.
void refuse(const object_reader& body, error_kind kind, std::string_view field, std::string message) {
  body.fault().report(kind, std::string(field), std::move(message));
}

void read_branch(const object_reader& body, generation_request& out) {
  const bool named = body.value("dialogue_idx") || body.value("parent");
  if (!out.session) return refuse(body, error_kind::invalid_argument, "session_id", "Missing session_id parameter");
  if (!named) return refuse(body, error_kind::invalid_argument, "dialogue_idx", "Missing dialogue_idx parameter");
  constexpr std::int64_t version_max = 0xffffffff;
  const auto index = body.integer("dialogue_idx", 0, version_max);
  const auto parent = body.integer("parent", 0, version_max);
  out.session->from_version = static_cast<std::uint32_t>(parent.value_or(index.value_or(0)));
  out.session->branches = true;
}

}  // namespace

result<generation_request> parse_state_request(std::string_view text, bool branches, const request_limits& limits) {
  return read_body(text, limits, [&](const object_reader& body) {
    generation_request request;
    request.shape = api::native;
    request.answer_name = branches ? "rwkv7-multi-state" : "rwkv7-batch";
    const bool nothing_new = goes_on(body, "contents");
    if (!nothing_new) read_contents(body, request);
    // What the older servers say of several prompts, status and misspelling included: clients may compare.
    if (request.prompts.size() > 1)
      refuse(body, error_kind::internal, "contents", "Server Error: Requst must be single prompt !");
    if (request.prompts.empty() && !nothing_new)
      refuse(body, error_kind::invalid_argument, "contents", "Request must contain exactly one prompt");
    read_delivery(body, limits, request);
    if (!body.value("chunk_size")) request.chunk_size = native_chunk_size;
    if (request.model.empty()) request.model = "rwkv7";
    read_sampling(body, native_defaults, limits, request.sampling);
    read_stops(body, {"\nUser:"}, limits, request);
    read_session(body, limits, request);
    if (request.n > 1) body.refuse("n", "must be 1 on this route");
    if (branches) read_branch(body, request);
    if (request.prompts.empty()) request.prompts.emplace_back();
    return request;
  });
}

}  // namespace skein::protocol
