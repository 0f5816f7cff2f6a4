#include <algorithm>
#include <numeric>

#include "protocol/dialects/dialect_readers.hpp"
#include "protocol/requests/shared_fields.hpp"
#include "protocol/responses/answer_parts.hpp"
#include "protocol/responses/whole_writer.hpp"

/// Ranks texts by how well they continue the input, for clients of ai00. Each is scored after the input; no token is
/// sampled.
namespace skein::protocol {
namespace {

/// The cost of a text: the mean of -log p over its tokens, which are the last ones of the row.
float cost_of(std::string_view text, const whole_row& row) {
  std::size_t bytes = 0, tokens = 0;
  float sum = 0;
  const auto& scored = *row.logprobs;
  for (auto entry = scored.rbegin(); entry != scored.rend() && bytes < text.size(); ++entry) {
    bytes += entry->text.size();
    if (!entry->logprob) continue;
    sum -= finite_logprob(*entry->logprob);
    ++tokens;
  }
  return tokens > 0 ? sum / static_cast<float>(tokens) : 0;
}

class ranking_writer final : public whole_writer {
 public:
  /// One row each; with calibration, as many more rows give the cost of each without the input.
  std::vector<std::string> choices;

  std::size_t kept_bytes() const override {
    std::size_t bytes = 0;
    for (const auto& choice : choices) bytes += sizeof choice + choice.size();
    return bytes;
  }
  std::string body(const answer_head& head, std::vector<whole_row> rows, const token_usage& usage,
                   const session_note*) const override {
    std::vector<float> costs(choices.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t which = i % choices.size();
      const float cost = cost_of(choices[which], rows[i]);
      costs[which] += i < choices.size() ? cost : -cost;
    }
    std::vector<std::size_t> order(choices.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return costs[i]; });
    std::string json;
    json_writer out(json);
    out.begin_object().key("object").value("list").key("model").value(head.model).key("data").begin_array();
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
      const std::size_t i = order[rank];
      out.begin_object().key("object").value("choice").key("index").value(i).key("rank").value(rank);
      out.key("choice").value(choices[i]).key("perplexity").value(costs[i]).end_object();
    }
    out.end_array();
    write_usage(out, usage);
    out.end_object();
    return json;
  }
};

/// Reads one text, or several that are joined.
std::string read_joined(const object_reader& body, std::string_view name) {
  const auto found = body.value(name);
  if (!found) return {};
  if (const auto text = found->text()) return std::string(*text);
  std::string joined;
  if (found->is(json_kind::array))
    for (const auto part : found->elements()) {
      const auto text = part.text();
      if (!text) body.refuse(name, "must be a string or strings");
      joined += text.value_or("");
    }
  else
    body.refuse(name, "must be a string or strings");
  return joined;
}

}  // namespace

void read_choices(const object_reader& body, const reading& by, generation_request& out) {
  out.chat = false;
  out.lead = read_joined(body, "input");
  const auto list = body.array("choices");
  if (!list || list->is_empty_array()) return body.refuse("choices", "must be a non-empty list of strings");
  const auto writer = std::make_shared<ranking_writer>();
  for (const auto element : list->elements()) {
    const auto text = element.text();
    if (!text || text->empty()) return body.refuse("choices", "must be a list of non-empty strings");
    if (!has_all_prompts(out, by.limits)) writer->choices.emplace_back(*text);
    add_prompt({std::string(*text), {}, false, true}, by.limits, out);
  }
  const bool calibrate = body.boolean("calibrate").value_or(false);
  if (calibrate) {
    out.prompts_left_out *= 2;
    for (const auto& choice : writer->choices) add_prompt({choice, {}, false}, by.limits, out);
  }
  out.pad_zero = calibrate || out.lead.empty();  // the first token of the text is scored too
  out.writer = writer;
}

void read_scoring(const object_reader& body, const reading& by, generation_request& out) {
  read_whole_answer(body, by, out);
  out.echo = out.sampling.logprobs = true;
  out.sampling.max_tokens = 0;
}

}  // namespace skein::protocol
