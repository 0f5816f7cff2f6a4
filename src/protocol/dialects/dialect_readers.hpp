#pragma once
#include "protocol/requests/dialect.hpp"

/// The functions in the table of dialects: dialect::read_prompts and dialect::read_more.
namespace skein::protocol {

// OpenAI: messages; prompt
void read_conversation(const object_reader& body, const reading& by, generation_request& out);
void read_spoken_conversation(const object_reader& body, const reading& by,
                              generation_request& out);  ///< must have a text
void read_chat_options(const object_reader& body, const reading& by, generation_request& out);
void read_prompt(const object_reader& body, const reading& by, generation_request& out);
void read_text_options(const object_reader& body, const reading& by, generation_request& out);

// OpenAI's Responses API: input, instructions
void read_input(const object_reader& body, const reading& by, generation_request& out);
void read_response_options(const object_reader& body, const reading& by, generation_request& out);
void read_streamed_response(const object_reader& body, const reading& by, generation_request& out);

// ai00: choices after an input
void read_choices(const object_reader& body, const reading& by, generation_request& out);
void read_scoring(const object_reader& body, const reading& by, generation_request& out);

// rwkv_lightning: contents, one or many; prefix and suffix; questions for a template
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

// RWKV-Infer: messages, with names for the speakers
void read_named_conversation(const object_reader& body, const reading& by, generation_request& out);

}  // namespace skein::protocol
