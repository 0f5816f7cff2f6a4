#include "tests/server/fake_wish.hpp"

#include <random>

#include "engine/fake/fake_model.hpp"

namespace skein::test {

std::string fake_wish::request() const {
  std::string body = R"({"stream":true,"max_tokens":)" + std::to_string(sampling.max_tokens);
  body += R"(,"seed":)" + std::to_string(sampling.seed);
  body += R"(,"temperature":)" + std::to_string(sampling.temperature);
  body += R"(,"prompt":[)";
  for (const token_id token : prompt) body += std::to_string(token) + ',';
  body.back() = ']';
  body += '}';
  return "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string fake_wish::text(std::size_t tokens) const {
  sampling::sampling_params cut = sampling;
  cut.max_tokens = static_cast<std::uint32_t>(tokens);
  std::string bytes;
  for (const token_id token : engine::fake_text(engine::fake_model{}, prompt, cut)) bytes += static_cast<char>(token);
  return bytes;
}

fake_wish make_wish(std::uint64_t number, std::uint32_t prompt_tokens, std::uint32_t max_tokens) {
  std::mt19937_64 random(number);
  fake_wish wish;
  for (std::uint32_t i = 0; i < prompt_tokens; ++i) wish.prompt.push_back(static_cast<token_id>(random() % 256));
  wish.sampling.temperature = number % 2 == 0 ? 0.0f : 0.75f;
  wish.sampling.seed = number;
  wish.sampling.max_tokens = max_tokens;
  return wish;
}

}  // namespace skein::test
