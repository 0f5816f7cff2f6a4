#include "grammar/text/unicode_properties.hpp"

#include <algorithm>

#include "grammar/text/unicode_tables.hpp"

namespace skein::grammar {
namespace {

struct category_group {
  std::string_view short_name, long_name, other_name;
  std::string_view categories;
};

constexpr category_group categories[] = {
    {"C", "Other", "", "Cc Cf Cn Co Cs"},
    {"Cc", "Control", "cntrl", "Cc"},
    {"Cf", "Format", "", "Cf"},
    {"Cn", "Unassigned", "", "Cn"},
    {"Co", "Private_Use", "", "Co"},
    {"Cs", "Surrogate", "", "Cs"},
    {"L", "Letter", "", "Ll Lm Lo Lt Lu"},
    {"LC", "Cased_Letter", "", "Ll Lt Lu"},
    {"Ll", "Lowercase_Letter", "", "Ll"},
    {"Lm", "Modifier_Letter", "", "Lm"},
    {"Lo", "Other_Letter", "", "Lo"},
    {"Lt", "Titlecase_Letter", "", "Lt"},
    {"Lu", "Uppercase_Letter", "", "Lu"},
    {"M", "Mark", "Combining_Mark", "Mc Me Mn"},
    {"Mc", "Spacing_Mark", "", "Mc"},
    {"Me", "Enclosing_Mark", "", "Me"},
    {"Mn", "Nonspacing_Mark", "", "Mn"},
    {"N", "Number", "", "Nd Nl No"},
    {"Nd", "Decimal_Number", "digit", "Nd"},
    {"Nl", "Letter_Number", "", "Nl"},
    {"No", "Other_Number", "", "No"},
    {"P", "Punctuation", "punct", "Pc Pd Pe Pf Pi Po Ps"},
    {"Pc", "Connector_Punctuation", "", "Pc"},
    {"Pd", "Dash_Punctuation", "", "Pd"},
    {"Pe", "Close_Punctuation", "", "Pe"},
    {"Pf", "Final_Punctuation", "", "Pf"},
    {"Pi", "Initial_Punctuation", "", "Pi"},
    {"Po", "Other_Punctuation", "", "Po"},
    {"Ps", "Open_Punctuation", "", "Ps"},
    {"S", "Symbol", "", "Sc Sk Sm So"},
    {"Sc", "Currency_Symbol", "", "Sc"},
    {"Sk", "Modifier_Symbol", "", "Sk"},
    {"Sm", "Math_Symbol", "", "Sm"},
    {"So", "Other_Symbol", "", "So"},
    {"Z", "Separator", "", "Zl Zp Zs"},
    {"Zl", "Line_Separator", "", "Zl"},
    {"Zp", "Paragraph_Separator", "", "Zp"},
    {"Zs", "Space_Separator", "", "Zs"},
};

/// True if a list of words with spaces between them has the word.
bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const auto end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

/// Adds the runs whose tag is among the words of `tags`. A tag of 4 letters in the table of categories means pairs.
void add_runs(std::string_view runs, std::string_view tags, bool has_pairs, code_set& into) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  char32_t code = 0;
  for (std::size_t i = 0; i < runs.size();) {
    char32_t count = 0;
    for (; is_digit(runs[i]); ++i) count = count * 10 + static_cast<char32_t>(runs[i] - '0');
    const auto begin = i;
    while (i < runs.size() && !is_digit(runs[i])) ++i;
    const auto tag = runs.substr(begin, i - begin);
    if (has_pairs && tag.size() == 4) {
      const bool first = has_word(tags, tag.substr(0, 2)), second = has_word(tags, tag.substr(2));
      if (first && second) into.add(code, code + 2 * count - 1);
      for (char32_t pair = 0; pair < count && first != second; ++pair) into.add(code + 2 * pair + (first ? 0 : 1));
      code += 2 * count;
    } else {
      if (has_word(tags, tag)) into.add(code, code + count - 1);
      code += count;
    }
  }
}

std::optional<code_set> category(std::string_view name) {
  const auto* const found = std::ranges::find_if(categories, [&](const category_group& each) {
    return each.short_name == name || each.long_name == name || (!each.other_name.empty() && each.other_name == name);
  });
  if (found == std::end(categories)) return std::nullopt;
  code_set made;
  add_runs(unicode_category_runs, found->categories, true, made);
  return made.normalised();
}

std::optional<code_set> script(std::string_view name) {
  std::string_view left = unicode_script_names;
  while (!left.empty()) {
    const auto end = std::min(left.find(';'), left.size());
    const auto names = left.substr(0, end);
    if (has_word(names, name)) {
      code_set made;
      add_runs(unicode_script_runs, names.substr(0, names.find(' ')), false, made);
      return made.normalised();
    }
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return std::nullopt;
}

std::optional<code_set> binary_property(std::string_view name) {
  for (std::size_t i = 0; i < unicode_binary_property_count; ++i) {
    const auto& each = unicode_binary_properties[i];
    if (name != each.name && name != each.short_name) continue;
    code_set kept, removed;
    add_runs(unicode_category_runs, each.categories, true, kept);
    add_runs(each.changes, "r", false, removed);
    removed.add(kept.inverted());
    auto made = removed.inverted();
    add_runs(each.changes, "a", false, made);
    return made.normalised();
  }
  code_set made;
  if (name == "Any") return any_set();
  if (name == "ASCII") {
    made.add(0, 0x7f);
    return made;
  }
  if (name == "Assigned") {
    add_runs(unicode_category_runs, "Cn", true, made);
    return made.inverted();
  }
  return std::nullopt;
}

}  // namespace

std::optional<code_set> unicode_property(std::string_view expression) {
  const auto equals = expression.find('=');
  if (equals == std::string_view::npos) {
    auto made = category(expression);
    return made ? made : binary_property(expression);
  }
  const auto name = expression.substr(0, equals), value = expression.substr(equals + 1);
  if (name == "gc" || name == "General_Category") return category(value);
  if (name == "sc" || name == "Script") return script(value);
  return std::nullopt;
}

}  // namespace skein::grammar
