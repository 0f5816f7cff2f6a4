#pragma once
#include <cstdint>
#include <string_view>

namespace skein::model {

/// What the chat template of a model writes: turns by name ("User: ..."), as RWKV-LM describes them; those, and
/// conversations with tools below headings ("### User"); or a form of another kind of model, which is not used.
enum class chat_form : std::uint8_t { none, names, headings, unknown };

/// Recognises a template, Jinja or the name of one in llama.cpp, by its text. It is never run. No text: none.
[[nodiscard]] chat_form recognise_chat_template(std::string_view text);

/// Whether a model was trained on conversations whose answers begin with "Bot✿", by its name, as in
/// rwkv7-g1k-7.2b-20260930-ctx25600: those of generation g1h and newer, or without one, of RWKV-7 since July 2026.
[[nodiscard]] bool answers_as_bot(std::string_view name);

/// "list", "headings", ... as the setting `tool_template` names the forms.
[[nodiscard]] std::string_view to_string(chat_form form);
/// The form that to_string() names so; none for other texts.
[[nodiscard]] chat_form chat_form_named(std::string_view name);

}  // namespace skein::model
