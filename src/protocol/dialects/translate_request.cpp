#include <algorithm>

#include "base/text.hpp"
#include "protocol/dialects/dialect_readers.hpp"
#include "protocol/dialects/languages.hpp"
#include "protocol/json/json_writer.hpp"
#include "protocol/requests/shared_fields.hpp"
#include "protocol/responses/whole_writer.hpp"

/// Translation for a browser extension. A text is split at its blank lines, because an answer ends with its paragraph;
/// the pieces are prompts of one batch, and the answer joins them again.
namespace skein::protocol {
namespace {

/// A piece to translate, and the blank lines before it.
struct piece {
  std::string_view gap, text;
};

/// Calls `visit` for each piece of a trimmed text; none if it is empty.
template <typename Visit>
void for_each_piece(std::string_view text, Visit visit) {
  std::size_t begin = 0, gap = 0;
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    const std::size_t next = text.find_first_not_of(blank, at);
    const auto between = text.substr(at, next - at);
    if (std::ranges::count(between, '\n') < 2) continue;
    visit(piece{text.substr(gap, begin - gap), text.substr(begin, at - begin)});
    gap = at;
    begin = next;
    at = next;
  }
  if (begin < text.size()) visit(piece{text.substr(gap, begin - gap), text.substr(begin)});
}

/// Joins the translations of one call; knows which rows belong to which text.
class translation_writer final : public whole_writer {
 public:
  struct text {
    std::string source_lang;
    std::vector<std::string> gaps;  ///< before each piece (row)
  };

  std::vector<text> texts;

  std::size_t kept_bytes() const override {
    std::size_t bytes = 0;
    for (const auto& t : texts) {
      bytes += sizeof t + t.source_lang.size();
      for (const auto& gap : t.gaps) bytes += sizeof gap + gap.size();
    }
    return bytes;
  }
  std::string body(const answer_head&, std::vector<whole_row> rows, const token_usage&,
                   const session_note*) const override {
    std::string json;
    json_writer out(json);
    out.begin_object().key("translations").begin_array();
    auto row = rows.begin();
    for (const auto& t : texts) {
      std::string joined;
      for (const auto& gap : t.gaps) joined.append(gap).append(trimmed((row++)->content));
      out.begin_object().key("detected_source_lang").value(t.source_lang);
      out.key("text").value(trimmed(joined)).end_object();
    }
    out.end_array().end_object();
    return json;
  }
};

std::string_view read_language(const object_reader& body, std::string_view field, std::string_view otherwise) {
  constexpr std::size_t bytes_max = 64;
  const auto named = body.text(field).value_or("");
  const auto language = named.empty() ? otherwise : named;
  if (language.empty()) body.refuse(field, "is missing");
  const bool known = language == "auto" ? field == "source_lang" : known_language(language).has_value();
  if (language.size() > bytes_max || language.find('\n') != std::string_view::npos || !known)
    body.refuse(field, "must be the code or the English name of a language, such as zh-CN or German");
  return language;
}

}  // namespace

void read_texts_to_translate(const object_reader& body, const reading& by, generation_request& out) {
  out.chat = false;
  const auto source = read_language(body, "source_lang", "auto");
  const auto target = language_name(read_language(body, "target_lang", ""));
  const auto list = body.array("text_list");
  if (!list) return body.refuse("text_list", "must be a list of strings");
  const auto writer = std::make_shared<translation_writer>();
  std::size_t told = 0;
  for (const auto element : list->elements()) {
    const auto text = element.text();
    if (!text) return body.refuse("text_list", "must be a list of strings");
    if (++told > by.limits.prompts_max) {
      for_each_piece(trimmed(*text), [&](const piece&) { ++out.prompts_left_out; });
      continue;
    }
    translation_writer::text plan;
    plan.source_lang = source == "auto" ? guess_language(*text) : source;
    const auto name = language_name(plan.source_lang);
    const auto next_pair = "\n\n" + name + ':';
    if (std::ranges::find(out.stop, next_pair) == out.stop.end()) out.stop.push_back(next_pair);
    for_each_piece(trimmed(*text), [&](const piece& p) {
      if (has_all_prompts(out, by.limits)) return add_prompt({}, by.limits, out);
      plan.gaps.emplace_back(p.gap);
      add_prompt({(name + ": ").append(p.text).append("\n\n" + target + ':'), {}, false}, by.limits, out);
    });
    writer->texts.push_back(std::move(plan));
  }
  if (told > by.limits.prompts_max)  // empty texts count, too: each takes memory in the answer
    out.prompts_left_out = std::max(out.prompts_left_out, told - out.prompts.size());
  out.writer = writer;
}

void read_whole_answer(const object_reader&, const reading&, generation_request& out) {
  out.stream = false;
  out.n = out.best_of = 1;
}

}  // namespace skein::protocol
