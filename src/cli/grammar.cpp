#include <algorithm>
#include <cstdio>
#include <optional>

#include "app/open_model.hpp"
#include "app/small_file.hpp"
#include "base/clock.hpp"
#include "cli/commands.hpp"
#include "grammar/matcher.hpp"
#include "protocol/json/json_writer.hpp"

namespace skein::cli {
namespace {

using compiled_grammar = std::shared_ptr<const grammar::grammar>;

double microseconds(duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

result<compiled_grammar> grammar_of(const grammar_command& what) {
  if (!what.regex.empty()) return grammar::grammar::from_regex(what.regex);
  if (!what.choices.empty()) return grammar::grammar::from_choices(what.choices);
  const bool schema = !what.schema.empty(), kbnf = !what.kbnf.empty();
  const auto text = read_small_file(schema ? what.schema : kbnf ? what.kbnf : what.gbnf);
  if (!text) return text.error();
  if (kbnf) return grammar::grammar::from_kbnf(*text);
  return schema ? grammar::grammar::from_json_schema(*text) : grammar::grammar::from_gbnf(*text);
}

/// The given vocabulary; by default that of the demo model, or the one in the data folders.
result<std::shared_ptr<const tokenizer::vocabulary>> vocabulary_of(const std::string& given) {
  if (!given.empty()) return open_vocabulary(given);
  const auto demo = open_model({});
  return demo ? open_vocabulary(given, *demo) : open_vocabulary(given);
}

struct instance_report {
  std::string file;
  bool accepted = false;
  std::string stopped_at;  ///< the first token that is not allowed
};

/// Feeds an instance token by token, as generation would: each token must be in the mask before it.
result<instance_report> follow(const std::filesystem::path& file, const compiled_grammar& grammar,
                               const std::shared_ptr<const grammar::vocabulary_index>& index,
                               std::vector<double>& mask_us) {
  const auto text = read_small_file(file);
  if (!text) return text.error();
  std::vector<token_id> tokens;
  if (const auto encoded = index->vocabulary().encode(*text, tokens); !encoded) return encoded.error();
  instance_report report{file.string(), false, {}};
  grammar::matcher matcher(grammar, index);
  std::vector<std::uint32_t> allowed(index->words());
  for (const auto token : tokens) {
    const auto before = real_clock().now();
    matcher.fill_mask(allowed);
    mask_us.push_back(microseconds(real_clock().now() - before));
    const bool in_mask = (allowed[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0;
    if (in_mask && matcher.accept(index->vocabulary().text(token))) continue;
    report.stopped_at = index->vocabulary().text(token);
    return report;
  }
  report.accepted = matcher.is_complete();
  return report;
}

double percentile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const auto place = std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())));
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(place));
  return values[place];
}

void report_as_json(const grammar::grammar& made, double compile_us, std::vector<double>& mask_us,
                    const std::vector<instance_report>& instances) {
  std::string text;
  protocol::json_writer out(text);
  out.begin_object().key("compiled").value(true).key("compile_us").value(compile_us);
  out.key("mask_us").begin_object();
  out.key("p50").value(percentile(mask_us, 0.5)).key("p95").value(percentile(mask_us, 0.95));
  out.key("p99").value(percentile(mask_us, 0.99)).end_object();
  out.key("instances").begin_array();
  for (const auto& each : instances)
    out.begin_object().key("file").value(each.file).key("accepted").value(each.accepted).end_object();
  out.end_array();
  if (!made.notes().empty()) {
    out.key("notes").begin_array();
    for (const auto& note : made.notes()) out.value(note);
    out.end_array();
  }
  out.end_object();
  std::printf("%s\n", text.c_str());
}

void report_as_text(const grammar::grammar& made, double compile_us, std::vector<double>& mask_us,
                    const std::vector<instance_report>& instances) {
  for (const auto& note : made.notes()) std::printf("note: %s\n", note.c_str());
  for (const auto& each : instances) {
    std::string line = each.file + ": " + (each.accepted ? "accepted" : "rejected");
    if (!each.stopped_at.empty()) protocol::json_writer(line += ", not allowed: ").value(each.stopped_at);
    std::printf("%s\n", line.c_str());
  }
  std::printf("compile %.0f us", compile_us);
  if (!mask_us.empty())
    std::printf(", mask %.1f us (median), %.1f us (95 %%), %.1f us (99 %%), %zu tokens", percentile(mask_us, 0.5),
                percentile(mask_us, 0.95), percentile(mask_us, 0.99), mask_us.size());
  std::printf("\n");
}

}  // namespace

result<void> check_grammar(const grammar_command& what) {
  const auto vocabulary = vocabulary_of(what.vocab);
  if (!vocabulary) return vocabulary.error();
  const auto index = grammar::vocabulary_index::build(*vocabulary);
  if (const auto ready = grammar::grammar::prepare(); !ready) return ready.error();
  const auto before = real_clock().now();
  const auto compiled = grammar_of(what);
  const double compile_us = microseconds(real_clock().now() - before);
  if (!compiled) {
    const auto kind = compiled.error().kind;
    const bool refused =
        kind == error_kind::unsupported || kind == error_kind::invalid_argument || kind == error_kind::too_large;
    if (!what.json || !refused) return compiled.error();
    std::string text;
    protocol::json_writer(text)
        .begin_object()
        .key("compiled")
        .value(false)
        .key("reason")
        .value(compiled.error().message)
        .end_object();
    std::printf("%s\n", text.c_str());
    return {};
  }
  std::vector<double> mask_us;
  std::vector<instance_report> instances;
  for (const auto& file : what.instances) {
    auto report = follow(file, *compiled, index, mask_us);
    if (!report) return report.error();
    instances.push_back(std::move(*report));
  }
  (what.json ? report_as_json : report_as_text)(**compiled, compile_us, mask_us, instances);
  return {};
}

}  // namespace skein::cli
