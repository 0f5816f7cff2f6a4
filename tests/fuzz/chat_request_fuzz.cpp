// Any bytes as the body of /v1/chat/completions: refused with a reason, or a request that the template can render.
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "protocol/chat_template.hpp"
#include "protocol/dialect.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace skein;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const protocol::model_preset preset;
  const auto request = protocol::read_request(body, protocol::dialects::chat, preset, {}).request;
  if (!request) {
    check(!request.error().message.empty(), "a refusal has a reason");
    return 0;
  }
  check(!request->messages.empty());
  check(request->n >= 1 && request->n <= protocol::request_limits{}.n_max);
  const auto prompt = protocol::render_chat(request->messages, request->think, request->style);
  check(!prompt.empty() && prompt.back() != ' ', "a prompt never ends in a space");
  return 0;
}
