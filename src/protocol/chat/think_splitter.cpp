#include "protocol/chat/think_splitter.hpp"

#include "protocol/chat/chat_template.hpp"

namespace skein::protocol {
namespace {

constexpr std::string_view thoughts_end = "</think>";

char lead_of(answer_form form) {
  if (form == answer_form::raw) return '\0';
  return form == answer_form::direct ? ' ' : '>';
}

}  // namespace

answer_form form_of(const generation_request& request) {
  return request.reasoning_raw ? answer_form::raw : opening_of(request);
}

answer_form opening_of(const generation_request& request) {
  if (!request.chat || !request.style.opens_answer || continues_answer(request.messages)) return answer_form::raw;
  if (request.think != think_mode::off) return answer_form::thinking;
  return request.style.no_think_opening.ends_with("</think") ? answer_form::closing : answer_form::direct;
}

answer_form form_after(std::string_view prompt) {
  if (prompt.ends_with("</think")) return answer_form::closing;
  if (prompt.ends_with("<think") || prompt.ends_with("<think>嗯")) return answer_form::thinking;
  return answer_form::direct;
}

think_splitter::think_splitter(answer_form form, first_newlines of)
    : in_thoughts_(form == answer_form::thinking), newlines_(of), lead_(form, of) {}

void think_splitter::push(std::string_view text, parts& out) {
  text = lead_.cut(text);
  if (in_thoughts_)
    push_thoughts(text, out);
  else
    out.content += text;
}

void think_splitter::finish(parts& out) {
  if (in_thoughts_) out.reasoning += thoughts_end.substr(0, matched_);
  matched_ = 0;
}

/// Those before thoughts are never content.
answer_lead::answer_lead(answer_form form, first_newlines of)
    : lead_(lead_of(form)),
      skips_newlines_(form == answer_form::thinking || (form != answer_form::raw && of == first_newlines::lead)) {}

std::string_view answer_lead::cut(std::string_view text) {
  if (lead_ != '\0' && !text.empty()) {
    if (text.front() == lead_) text.remove_prefix(1);
    lead_ = '\0';
  }
  while (skips_newlines_ && !text.empty()) {
    if (text.front() == '\n')
      text.remove_prefix(1);
    else
      skips_newlines_ = false;
  }
  return text;
}

void think_splitter::push_thoughts(std::string_view text, parts& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    // '<' occurs in the tag only at its start, so after a failed match a new one can begin only at this byte.
    if (text[i] != thoughts_end[matched_]) {
      out.reasoning += thoughts_end.substr(0, matched_);
      matched_ = 0;
    }
    if (text[i] != thoughts_end[matched_]) {
      out.reasoning += text[i];
    } else if (++matched_ == thoughts_end.size()) {
      in_thoughts_ = false;
      matched_ = 0;
      if (newlines_ == first_newlines::lead) lead_.skip_newlines();
      out.content += lead_.cut(text.substr(i + 1));
      return;
    }
  }
}

}  // namespace skein::protocol
