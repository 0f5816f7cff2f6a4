#include "actors/request/shared/grammar_store.hpp"

#include <utility>
#include <vector>

#include "grammar/call_grammar.hpp"
#include "protocol/json/json.hpp"

namespace skein::request {
namespace {

using constraint_kind = protocol::text_constraint::kind;
using compiled_result = result<std::shared_ptr<const grammar::grammar>>;

constexpr std::size_t vocabularies_max = 4;
static_assert(grammar::limits{}.depth_max <= protocol::written_json.depth_max, "arguments can be read again");

std::string grammar_key(const protocol::text_constraint& wanted, const tokenizer::vocabulary& words) {
  std::string key = words.hash();
  key += static_cast<char>('0' + static_cast<int>(wanted.what));
  key += static_cast<char>('0' + static_cast<int>(wanted.after));
  const auto add = [&](const std::string& text) { (key += text) += '\0'; };
  for (const auto& mark : wanted.marks) add(mark);
  const auto add_schema = [&](const protocol::schema_text& of) {
    add(of.field);  // notes name it
    add(of.relaxed);
    add(std::to_string(of.text.size()));
    key += of.text;
  };
  add(std::to_string(wanted.calls.calls_max));
  for (const auto& [name, arguments] : wanted.calls.functions) {
    add(name);
    add_schema(arguments);
  }
  add("");
  if (wanted.calls.answer) add_schema(*wanted.calls.answer);
  add(wanted.relaxed);
  return key += wanted.text;
}

grammar::schema_part part_of(const protocol::schema_text& of) { return {of.text, of.relaxed, of.field}; }

grammar::call_schemas schemas_of(const protocol::call_constraint& calls) {
  grammar::call_schemas made;
  for (const auto& [name, arguments] : calls.functions) made.functions.push_back({name, part_of(arguments)});
  made.calls_max = calls.calls_max;
  if (calls.answer) made.answer = part_of(*calls.answer);
  return made;
}

std::vector<std::string> choices_in(std::string_view json) {
  std::vector<std::string> texts;
  const auto list = protocol::json_document::parse(json, protocol::known_json);
  if (list && list->root().is(protocol::json_kind::array))
    for (const auto element : list->root().elements()) texts.emplace_back(element.text().value_or(""));
  return texts;
}

compiled_result compile_grammar(const protocol::text_constraint& wanted, const grammar::options& how) {
  switch (wanted.what) {
    case constraint_kind::json_object: return grammar::grammar::json_object(how);
    case constraint_kind::json_schema: return grammar::grammar::from_json_schema(wanted.text, how);
    case constraint_kind::regex: return grammar::grammar::from_regex(wanted.text, how);
    case constraint_kind::choices: return grammar::grammar::from_choices(choices_in(wanted.text), how);
    case constraint_kind::gbnf: return grammar::grammar::from_gbnf(wanted.text, how);
    case constraint_kind::kbnf: return grammar::grammar::from_kbnf(wanted.text, how);
    case constraint_kind::calls: return grammar::compile_calls(schemas_of(wanted.calls), how);
  }
  return error{error_kind::internal, "an unknown kind of grammar", {}};
}

/// Newlines after a tag are skipped, unless they may be the beginning of the grammar's text. Before JSON they have no
/// meaning.
grammar::answer_lead::newlines newlines_before(const protocol::text_constraint& wanted, grammar::matcher begin) {
  using newlines = grammar::answer_lead::newlines;
  const bool json = wanted.what == constraint_kind::json_object || wanted.what == constraint_kind::json_schema ||
                    wanted.what == constraint_kind::calls;
  return !json && begin.would_accept("\n") ? newlines::none : newlines::some;
}

grammar::answer_lead lead_of(const protocol::text_constraint& wanted, grammar::answer_lead::newlines after) {
  grammar::answer_lead lead;
  switch (wanted.after) {
    case protocol::answer_form::raw: break;
    case protocol::answer_form::direct: lead = grammar::answer_lead::after_tag(' ', false, after); break;
    case protocol::answer_form::closing: lead = grammar::answer_lead::after_tag('>', true, after); break;
    case protocol::answer_form::thinking: lead = grammar::answer_lead::after_thoughts('>', after); break;
  }
  if (!wanted.marks.empty()) lead.allow_text_before({wanted.marks.begin(), wanted.marks.end()});
  return lead;
}

/// An error of a compiler, in the terms of the request. Grammars that are too large are bad requests, too.
error in_terms_of(error why, const std::string& field) {
  if (why.kind != error_kind::unsupported) why.kind = error_kind::invalid_argument;
  why.message = field + ": " + why.message;
  why.field = field;
  return why;
}

/// Of the schemas of calls, each has its own field.
const std::string& field_of(const error& why, const protocol::text_constraint& wanted) {
  return wanted.what == constraint_kind::calls && !why.field.empty() ? why.field : wanted.field;
}

}  // namespace

bool grammar_store::has(const protocol::text_constraint& wanted, const tokenizer::vocabulary& words) const {
  const std::string key = grammar_key(wanted, words);
  const std::lock_guard lock(mutex_);
  return by_key_.contains(key);
}

grammar_store::rule grammar_store::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto known = by_key_.find(key);
  if (known == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, known->second);
  return known->second->made;
}

void grammar_store::keep(const std::string& key, const rule& made, std::size_t count_max) {
  std::list<entry> dropped;  // destroyed outside of the lock
  const std::lock_guard lock(mutex_);
  if (by_key_.contains(key)) return;
  entries_.push_front({key, made});
  by_key_.emplace(entries_.front().key, entries_.begin());
  while (entries_.size() > count_max) {
    by_key_.erase(entries_.back().key);
    dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
  }
}

grammar_store::index_ref grammar_store::index_of(const std::shared_ptr<const tokenizer::vocabulary>& words) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = indexes_.find(words->hash()); known != indexes_.end()) return known->second;
  }
  auto made = grammar::vocabulary_index::build(words);
  const std::lock_guard lock(mutex_);
  if (indexes_.size() >= vocabularies_max) indexes_.clear();
  return indexes_.emplace(words->hash(), std::move(made)).first->second;
}

result<grammar_store::rule> grammar_store::get(const protocol::text_constraint& wanted,
                                               const std::shared_ptr<const tokenizer::vocabulary>& words,
                                               const config::limit_settings& limits) {
  const std::string key = grammar_key(wanted, *words);
  if (auto known = find(key)) return known;
  if (limits.grammar_bytes_max == 0)
    return error{error_kind::unsupported, wanted.field + " is not supported by this server", wanted.field};
  grammar::options how;
  how.bounds = grammar::limits_to_generate();
  how.bounds.source_bytes_max = limits.grammar_bytes_max;
  how.bounds.steps_max = limits.grammar_steps_max;
  auto of = wanted.text.size() > limits.grammar_bytes_max
                ? compiled_result(grammar::too_much("bytes", limits.grammar_bytes_max))
                : compile_grammar(wanted, how);
  if (!of && of.error().kind == error_kind::unsupported && !wanted.relaxed.empty()) {
    protocol::text_constraint relaxed = wanted;
    relaxed.text = wanted.relaxed;
    how.notes = {"the schema is not enforced: " + of.error().message};
    of = compile_grammar(relaxed, how);
  }
  if (!of) return in_terms_of(of.error(), field_of(of.error(), wanted));
  auto index = index_of(words);
  auto lead = lead_of(wanted, newlines_before(wanted, {*of, index}));
  auto made = grammar::answer_rule::make(std::move(*of), std::move(index), std::move(lead));
  if (!made) return in_terms_of(made.error(), wanted.field);
  keep(key, *made, limits.grammars_max);
  return std::move(*made);
}

}  // namespace skein::request
