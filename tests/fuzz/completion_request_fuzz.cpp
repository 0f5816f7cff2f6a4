// Any bytes as the body of /v1/completions: refused with a reason, or a request within the limits.
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "protocol/dialect.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace skein;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const protocol::request_limits limits;
  const auto request = protocol::read_request(body, protocol::dialects::completions, {}, limits).request;
  if (!request) {
    check(!request.error().message.empty(), "a refusal has a reason");
    return 0;
  }
  check(!request->prompts.empty());
  check(request->best_of >= request->n);
  check(request->prompts.size() * request->best_of <= limits.prompts_max);
  check(request->sampling.max_tokens <= limits.max_tokens_max);
  return 0;
}
