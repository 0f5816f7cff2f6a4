#include "protocol/chat/chat_messages.hpp"
#include "protocol/dialects/dialect_readers.hpp"

/// Conversations in the format of RWKV-Infer and RWKV-Runner, with names for the speakers.
namespace skein::protocol {
namespace {

void read_name(const object_reader& body, std::string_view field, std::string& out) {
  constexpr std::size_t bytes_max = 256;
  const auto name = body.text(field);
  if (!name || name->empty()) return;
  if (name->size() > bytes_max || name->find('\n') != std::string_view::npos)
    return body.refuse(field, "must be a line of at most " + std::to_string(bytes_max) + " bytes");
  out = *name;
}

/// RWKV-Runner's presystem: begins a conversation with an example exchange.
void read_presystem(const object_reader& body, generation_request& out) {
  if (!body.boolean("presystem").value_or(false) || out.messages.empty() || body.value("session_id")) return;
  if (out.messages.front().role == "system") return;
  out.messages.insert(out.messages.begin(),
                      {{"user", "hi", ""}, {"assistant", "Hi. I am your assistant. Ask me.", ""}});
}

}  // namespace

void read_named_conversation(const object_reader& body, const reading& by, generation_request& out) {
  read_conversation(body, by, out);
  read_presystem(body, out);
  read_name(body, "system_name", out.style.system);
  read_name(body, "user_name", out.style.user);
  read_name(body, "assistant_name", out.style.assistant);
  const auto names = body.object("names");  // of ai00
  if (!names) return;
  for (const auto system : {"system", "System"}) read_name(*names, system, out.style.system);
  for (const auto user : {"user", "User"}) read_name(*names, user, out.style.user);
  for (const auto assistant : {"assistant", "Assistant"}) read_name(*names, assistant, out.style.assistant);
}

}  // namespace skein::protocol
