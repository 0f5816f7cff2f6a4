#include "grammar/grammar.hpp"

#include "grammar/compiled_schema.hpp"
#include "grammar/machine/machine.hpp"
#include "grammar/schema/language_pool.hpp"
#include "grammar/text/gbnf.hpp"
#include "grammar/text/kbnf.hpp"

namespace skein::grammar {
namespace {

constexpr std::size_t cached_masks_max = 512;

result<std::shared_ptr<const grammar>> text_grammar(result<dfa> made, const options& how) {
  if (!made) return made.error();
  if (made->is_empty()) return error{error_kind::invalid_argument, "the grammar accepts no text", {}};
  program compiled;
  compiled.what = program::kind::text;
  compiled.bounds = how.bounds;
  compiled.text = std::make_shared<const dfa>(std::move(*made));
  return std::make_shared<const grammar>(std::move(compiled));
}

result<std::shared_ptr<const grammar>> rule_grammar(result<program> compiled, const options& how) {
  if (!compiled) return compiled.error();
  auto made = std::make_shared<const grammar>(std::move(*compiled));
  if (!machine(made->compiled()).can_begin())
    return too_much("alternatives at the beginning of the grammar", how.bounds.visits_max);
  return made;
}

}  // namespace

result<std::shared_ptr<const grammar>> grammar::from_json_schema(std::string_view schema, const options& how) {
  budget work(how.bounds);
  language_pool languages(work);
  auto compiled = compile_schema(schema, how, work, languages);
  if (!compiled) return compiled.error();
  auto notes = how.notes;
  notes.insert(notes.end(), compiled->notes.begin(), compiled->notes.end());
  return std::make_shared<const grammar>(std::move(compiled->made), std::move(notes));
}

result<void> grammar::prepare(const options& how) {
  std::string schema = R"({"type":"object","properties":{"":{"type":["integer","number"]},"i":{"type":"integer"},)"
                       R"("+":{"type":"integer","minimum":0},"-":{"type":"number","exclusiveMinimum":0})";
  for (const auto name : standard_formats())
    schema.append(",\"").append(name).append(R"(":{"type":"string","format":")").append(name).append("\"}");
  const auto made = from_json_schema(schema + R"(},"patternProperties":{"^[a-z]+$":{"enum":["a",1]}}})", how);
  if (!made) return made.error();
  return {};
}

result<std::shared_ptr<const grammar>> grammar::json_object(const options& how) {
  return from_json_schema(R"({"type":"object"})", how);
}

result<std::shared_ptr<const grammar>> grammar::from_regex(std::string_view pattern, const options& how) {
  if (pattern.size() > how.bounds.source_bytes_max) return too_much("bytes", how.bounds.source_bytes_max);
  budget work(how.bounds);
  return text_grammar(compile_whole(pattern, work), how);
}

result<std::shared_ptr<const grammar>> grammar::from_choices(std::span<const std::string> texts, const options& how) {
  std::size_t bytes = 0;
  for (const auto& text : texts) bytes += text.size();
  if (bytes > how.bounds.source_bytes_max) return too_much("bytes", how.bounds.source_bytes_max);
  budget work(how.bounds);
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return text_grammar(literals(views, work), how);
}

result<std::shared_ptr<const grammar>> grammar::from_gbnf(std::string_view rules, const options& how) {
  budget work(how.bounds);
  return rule_grammar(compile_gbnf(rules, work), how);
}

result<std::shared_ptr<const grammar>> grammar::from_kbnf(std::string_view rules, const options& how) {
  budget work(how.bounds);
  return rule_grammar(compile_kbnf(rules, work), how);
}

grammar::mask grammar::cached(std::uint64_t key) const {
  const std::lock_guard lock(guard_);
  const auto found = masks_.find(key);
  return found == masks_.end() ? nullptr : found->second;
}

void grammar::cache(std::uint64_t key, mask made) const {
  const std::lock_guard lock(guard_);
  if (masks_.size() >= cached_masks_max) masks_.clear();
  masks_.insert_or_assign(key, std::move(made));
}

}  // namespace skein::grammar
