#pragma once
#include <optional>
#include <string_view>

#include "protocol/dialect.hpp"

/// The readers that the table of dialects is made of: dialect::read_prompts and dialect::read_more.
namespace skein::protocol {

// OpenAI: messages; prompt
void read_conversation(const object_reader& body, const reading& by, generation_request& out);
void read_spoken_conversation(const object_reader& body, const reading& by,
                              generation_request& out);  ///< it has a text
void read_chat_options(const object_reader& body, const reading& by, generation_request& out);
void read_prompt(const object_reader& body, const reading& by, generation_request& out);
void read_text_options(const object_reader& body, const reading& by, generation_request& out);

/// How an answer thinks, by the words of reasoning_effort at `field`; nothing where it is absent.
[[nodiscard]] std::optional<think_mode> read_effort(const object_reader& body, std::string_view field);

// OpenAI's Responses API: input, instructions
void read_input(const object_reader& body, const reading& by, generation_request& out);
void read_response_options(const object_reader& body, const reading& by, generation_request& out);
void read_streamed_response(const object_reader& body, const reading& by, generation_request& out);

// ai00: choices behind an input
void read_choices(const object_reader& body, const reading& by, generation_request& out);
void read_scoring(const object_reader& body, const reading& by, generation_request& out);

// rwkv_lightning: contents, of which there is one or are many; prefix and suffix; questions to be put into a template
void read_one_turn(const object_reader& body, const reading& by, generation_request& out);
void read_one_row(const object_reader& body, const reading& by, generation_request& out);
void read_branch(const object_reader& body, const reading& by, generation_request& out);
void read_contents(const object_reader& body, const reading& by, generation_request& out);
void read_padding(const object_reader& body, const reading& by, generation_request& out);
void read_questions(const object_reader& body, const reading& by, generation_request& out);
void read_pairs(const object_reader& body, const reading& by, generation_request& out);

// llama-server: input_prefix and input_suffix
void read_infill(const object_reader& body, const reading& by, generation_request& out);
void read_infill_options(const object_reader& body, const reading& by, generation_request& out);

// Translation: text_list, source_lang, target_lang; never streamed
void read_texts_to_translate(const object_reader& body, const reading& by, generation_request& out);
void read_whole_answer(const object_reader& body, const reading& by, generation_request& out);

// RWKV-Infer: messages, with names for who speaks
void read_named_conversation(const object_reader& body, const reading& by, generation_request& out);

}  // namespace skein::protocol
