#include "model/files/gguf_model.hpp"

#include <string>
#include <utility>
#include <vector>

#include "model/files/checkpoint_limits.hpp"
#include "model/files/gguf.hpp"

namespace skein::model {
namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";
constexpr std::uint64_t control_type = 3, unused_type = 5;  // of tokenizer.ggml.token_type

/// The value of a hexadecimal digit, in either case; 16 for other characters.
unsigned hex_value(char c) {
  const std::size_t at = hex_digits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c + ('a' - 'A')) : c);
  return at == std::string_view::npos ? 16u : static_cast<unsigned>(at);
}

/// Appends the bytes of an escaped text; false if it ends inside an escape.
bool unescape(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return false;
    switch (text[i]) {
      case 't': out += '\t'; break;
      case 'n': out += '\n'; break;
      case 'r': out += '\r'; break;
      case 'x': {
        if (text.size() - i < 3) return false;
        const unsigned high = hex_value(text[i + 1]), low = hex_value(text[i + 2]);
        if (high > 15 || low > 15) return false;
        out += static_cast<char>(high << 4 | low);
        i += 2;
        break;
      }
      default: out += text[i];
    }
  }
  return true;
}

/// The tokens of a GGUF file whose `tokenizer.ggml.model` is "rwkv", as text of a vocabulary file; empty without
/// tokens. Texts of tokens are escaped: \t, \n, \r, \xNN, and a backslash before any other character means that
/// character. Control tokens (the end of text) and unused ones ("[PAD65530]") have no text. Errors: bad_file naming the
/// token.
result<std::string> world_text_of(const gguf_file& file) {
  constexpr std::size_t text_bytes_max = 32u << 20;  // as for vocabulary files; the World vocabulary needs 2 MiB
  const std::uint64_t position = file.position("tokenizer.ggml.tokens");
  const auto tokens = file.texts("tokenizer.ggml.tokens", max_gguf_tokens);
  const auto types = file.numbers("tokenizer.ggml.token_type", max_gguf_tokens);
  std::string text, bytes;
  for (std::size_t id = 1; id < tokens.size(); ++id) {  // id 0 is the end of text
    const bool typed = types.size() == tokens.size();
    if (typed ? types[id] == control_type || types[id] == unused_type : tokens[id] == "[PAD" + std::to_string(id) + ']')
      continue;
    bytes.clear();
    if (!unescape(tokens[id], bytes) || bytes.empty())
      return damaged(position, "token " + std::to_string(id) + " has no valid text: " + printable(tokens[id]));
    append_vocabulary_line(id, bytes, text);
    if (text.size() > text_bytes_max)
      return damaged(position, "the tokens have more than " + std::to_string(text_bytes_max) + " bytes");
  }
  return text;
}

error not_read(std::string what) { return {error_kind::unsupported, std::move(what), {}}; }

/// Refuses files that are no RWKV model of one file.
result<std::string> architecture_of(const gguf_file& file) {
  if (const auto kind = file.text("general.type"); kind && *kind != "model")
    return not_read("a GGUF file of the type " + printable(*kind) + " is not supported; accepted: model");
  if (const auto parts = file.number("split.count"); parts && *parts > 1)
    return not_read("a GGUF model in " + std::to_string(*parts) +
                    " files is not supported; merge them with llama-gguf-split --merge");
  const auto name = file.text("general.architecture");
  if (!name) return damaged(file.position("general.architecture"), "general.architecture is missing");
  if (*name == "arwkv7" || *name == "rwkv6qwen2")
    return not_read("architecture " + printable(*name) +
                    " (a Qwen model with RWKV attention) is not supported; accepted: rwkv6, rwkv7");
  if (*name != "rwkv6" && *name != "rwkv7")
    return not_read("architecture " + printable(*name) + " is not supported; accepted: rwkv6, rwkv7");
  return std::string(*name);
}

result<llama_cpp_facts> facts_of(const gguf_file& file) {
  auto name = architecture_of(file);
  if (!name) return name.error();
  const std::string prefix = *name + '.';
  const auto key = [&](std::string_view rest) { return prefix + std::string(rest); };
  if (const auto shifts = file.number(key("token_shift_count")); shifts && *shifts != 2)
    return not_read(key("token_shift_count") + ": " + std::to_string(*shifts) + " is not supported; accepted: 2");
  // The engines compute with the epsilon of the original models.
  const auto epsilon = file.real(key("attention.layer_norm_epsilon"));
  if (epsilon && !(*epsilon > 0.99e-5 && *epsilon < 1.01e-5))
    return not_read(key("attention.layer_norm_epsilon") + ": " + std::to_string(*epsilon) +
                    " is not supported; accepted: 0.00001");
  llama_cpp_facts facts;
  facts.layers = file.number(key("block_count"));
  facts.embd = file.number(key("embedding_length"));
  facts.ffn = file.number(key("feed_forward_length"));
  facts.head_size = file.number(key("wkv.head_size"));
  facts.rescale_every_n_layers = file.number(key("rescale_every_n_layers")).value_or(0);
  facts.architecture = std::move(*name);
  return facts;
}

}  // namespace

result<void> read_gguf(byte_span file, found_model& found) {
  const auto content = gguf_file::read(file);
  if (!content) return content.error();
  auto facts = facts_of(*content);
  if (!facts) return facts.error();
  if (const auto tokenizer = content->text("tokenizer.ggml.model"); tokenizer && *tokenizer == "rwkv") {
    auto text = world_text_of(*content);
    if (!text) return text.error();
    found.vocabulary = std::move(*text);
  } else if (tokenizer) {
    found.foreign_vocabulary = printable(*tokenizer);
  }
  if (const auto chat = content->text("tokenizer.chat_template")) {
    found.chat = recognise_chat_template(*chat);
    if (found.chat == chat_form::unknown)
      found.notes.emplace_back("left out: tokenizer.chat_template, which is not one of RWKV models");
  }
  found.format = "gguf";
  found.form = "llama.cpp, " + facts->architecture;
  found.llama_cpp = std::move(*facts);
  return take_tensors(content->tensors(), found);
}

}  // namespace skein::model
