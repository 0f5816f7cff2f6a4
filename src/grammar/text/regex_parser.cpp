// The expression is read from left to right, with a stack for its groups, and becomes an NFA at once: an instruction
// range for each atom, glued to what is before it. Quantifiers copy ranges. There is no syntax tree and no recursion
// but that of lookarounds, of which at most depth_max may be nested.
#include "grammar/text/regex_parser.hpp"

#include <algorithm>
#include <array>

namespace skein::grammar {
namespace {

constexpr std::uint32_t short_repetition_max = 8;  // it stays part of the automaton, which then combines with others
constexpr std::size_t followed_depth_max = 8;      // of groups whose ends are looked up

/// The offset of the parenthesis that closes the group whose content begins at `text`; npos: there is none.
std::size_t end_of_group(std::string_view text) {
  std::size_t depth = 1;
  bool in_class = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (in_class) {
      in_class = text[i] != ']';
    } else if (text[i] == '[') {
      in_class = true;
    } else if (text[i] == '(') {
      ++depth;
    } else if (text[i] == ')' && --depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

}  // namespace

result<nfa::fragment> regex_parser::run() {
  groups_.emplace_back().open_begin = how_.open_begin;
  groups_.back().open_end = how_.open_end;
  while (!in_.at_end()) {
    if (!work_.spend(8)) return too_much_work(work_);
    if (code.size() > work_.of().instructions_max) return size_error();
    if (const auto read = part(); !read) return read.error();
  }
  if (groups_.size() > 1) return in_.wrong("unterminated group");
  return end_group();
}

std::optional<regex_parser::simple_form> regex_parser::simple() const {
  if (complex_ || !begins_ || !ends_ || candidates_.empty()) return std::nullopt;
  simple_form made;
  std::uint64_t fixed = fixed_;
  std::size_t variable = 0;
  for (std::uint32_t i = 0; i < candidates_.size(); ++i) {
    const auto& [least, most] = candidates_[i];
    const auto& best = candidates_[made.repeated];
    variable += least != most;
    fixed += least;
    if (least != most || (best.least == best.most && most > best.most)) made.repeated = i;
  }
  if (variable > 1) return std::nullopt;
  const auto& [least, most] = candidates_[made.repeated];
  fixed -= least;
  if (fixed + std::max<std::uint64_t>(least, most == repetition::no_limit ? 0 : most) >= repetition::no_limit)
    return std::nullopt;
  const auto more = static_cast<std::uint32_t>(fixed);
  made.lengths = {least + more, most == repetition::no_limit ? most : most + more};
  return made;
}

/// Notes a set with a count for simple(). True if it becomes a star.
bool regex_parser::is_repeated_set(const repetition& count, bool is_set, bool is_last) {
  const auto limit = count.most == repetition::no_limit ? count.least : count.most;
  if (is_set && begins_ && !is_last && limit > short_repetition_max) {
    candidates_.push_back(count);
    return how_.starred == every || how_.starred == candidates_.size() - 1;
  }
  if (is_set && count.least == count.most)
    fixed_ += count.least;
  else
    complex_ = true;
  return false;
}

error regex_parser::size_error() const { return too_much("instructions of a pattern", work_.of().instructions_max); }

result<void> regex_parser::part() {
  switch (in_.peek()) {
    case '(': return open();
    case ')':
      if (groups_.size() == 1) return in_.wrong("unmatched )");
      in_.skip(1);
      {
        const bool has_choices = !groups_.back().choices.empty();
        const auto made = end_group();
        const auto ended = std::move(groups_.back());
        in_.flags = ended.outside;
        groups_.pop_back();
        if (ended.all_characters)
          fixed_ = ended.fixed_before;
        else
          complex_ = complex_ || has_choices;
        return quantified(made, ended.all_characters);
      }
    case '|':
      in_.skip(1);
      ++parts_;
      has_choices_ = has_choices_ || groups_.size() == 1;
      complex_ = complex_ || has_choices_;
      groups_.back().choices.push_back(take_sequence());
      return {};
    case '^': in_.skip(1); return text_bound(false, in_.flags.multiline);
    case '$': in_.skip(1); return text_bound(true, in_.flags.multiline);
    case '*':
    case '+':
    case '?': return in_.wrong("nothing to repeat");
    case '\\':
      if (in_.starts("\\b") || in_.starts("\\B")) return word_boundary();
      if (in_.starts("\\A") || in_.starts("\\Z")) {  // of other dialects
        const bool end = in_.starts("\\Z");
        in_.skip(2);
        return text_bound(end, false);
      }
      return atom();
    default: return atom();
  }
}

result<void> regex_parser::open() {
  const bool first = parts_ + assertions_ == 0 && groups_.size() == 1;
  const auto outside = in_.flags;
  in_.skip(1);
  if (in_.starts("?=") || in_.starts("?!") || in_.starts("?<=") || in_.starts("?<!")) return look();
  if (in_.peek() == '?') {
    in_.skip(1);
    const auto is_group = open_other();
    if (!is_group) return is_group.error();
    if (!*is_group) return first ? result<void>() : result<void>(in_.wrong("flags that are not at the beginning"));
  }
  ++parts_;
  if (groups_.size() > work_.of().instructions_max) return size_error();
  begin_group(outside);
  return {};
}

void regex_parser::begin_group(const regex_flags& outside) {
  group made;
  made.outside = outside;
  made.fixed_before = fixed_;
  const auto& parent = groups_.back();
  const bool is_first = parent.open_begin && !parent.sequence;
  if (follows_groups_ && groups_.size() <= followed_depth_max && (is_first || parent.open_end)) {
    const auto end = end_of_group(in_.rest());
    const auto after = end == std::string_view::npos ? std::string_view("*") : in_.rest().substr(end + 1);
    const bool repeated = !after.empty() && std::string_view("*+?{").find(after.front()) != std::string_view::npos;
    made.open_begin = is_first && !repeated;
    made.open_end = !repeated && may_be_last(after);
  }
  groups_.push_back(std::move(made));
}

/// Whether what comes before the rest of the expression may be the end of a match for which more does not matter.
bool regex_parser::may_be_last(std::string_view rest) const {
  if (!groups_.back().open_end) return false;
  return rest.empty() || rest.front() == '|' || (rest.front() == ')' && groups_.size() > 1);
}

/// What follows `(?`, apart from lookarounds. False if these are flags for the rest of the expression.
result<bool> regex_parser::open_other() {
  if (in_.peek() == ':') {
    in_.skip(1);
    return true;
  }
  if (in_.starts("<") || in_.starts("P<")) {
    const auto end = in_.rest().find('>');
    if (end == std::string_view::npos) return in_.wrong("bad group name");
    in_.skip(end + 1);
    return true;
  }
  for (const char* const end : {":", ")"}) {
    const auto flags = in_.read_flags(end, in_.flags);
    if (!flags) return flags.error();
    if (!*flags) continue;
    in_.flags = **flags;
    return *end == ':';
  }
  return in_.not_supported("a group modifier");
}

/// ^ and $; with the flag m, (?<=^|\n) and (?=\n|$).
result<void> regex_parser::text_bound(bool end, bool multiline) {
  if (multiline) {
    const auto at = lookaround_of(end ? "\\n|$" : "^|\\n", in_.offset(), !end, {});
    if (!at) return at.error();
    return assertion(code.look(*at, false));
  }
  if (end)
    ends_ = in_.at_end() && groups_.size() == 1;
  else
    begins_ = begins_ || parts_ + assertions_ == 0;
  return assertion(code.assertion(end ? nfa::op::text_end : nfa::op::text_begin));
}

result<void> regex_parser::look() {
  const bool behind = in_.starts("?<");
  in_.skip(behind ? 2 : 1);
  const bool negative = in_.peek() == '!';
  in_.skip(1);
  const auto end = end_of_group(in_.rest());
  if (end == std::string_view::npos) return in_.wrong("unterminated group");
  auto expression = in_.rest().substr(0, end);
  auto offset = in_.offset();
  in_.skip(end + 1);
  if (const auto count = in_.quantifier(); !count || *count) return in_.not_supported("a repeated lookaround");
  const bool is_first = parts_ + assertions_ == 0 && groups_.size() == 1 && !behind && !negative;
  if (is_first && expression.starts_with('^') && !in_.flags.multiline && expression.find('|') == expression.npos) {
    expression.remove_prefix(1);  // (?=^a) is ^(?=a)
    ++offset;
    ++assertions_;
    begins_ = true;
    append(code.assertion(nfa::op::text_begin));
  }
  ++assertions_;
  if (how_.split_leading && !behind && is_anchored() && parts_ == 0 && assertions_ == leading_.size() + 2) {
    leading_.push_back({expression, offset, negative, in_.flags});
    return {};
  }
  const auto index = lookaround_of(expression, offset, behind, in_.flags);
  if (!index) return index.error();
  append(code.look(*index, negative));
  return {};
}

result<std::uint32_t> regex_parser::lookaround_of(std::string_view expression, std::size_t offset, bool behind,
                                                  const regex_flags& flags) {
  std::string name(1, behind ? '<' : '=');
  for (const bool flag : {flags.ignore_case, flags.dot_all, flags.multiline}) name += flag ? '1' : '0';
  name += expression;
  if (const auto found = looks_.index.find(name); found != looks_.index.end()) return found->second;
  if (how_.depth == depth_max) return in_.not_supported("a lookaround within " + std::to_string(depth_max) + " others");
  regex_parser inner(
      expression, work_, looks_,
      {.open_begin = behind, .open_end = !behind, .offset = offset, .depth = how_.depth + 1, .flags = flags});
  const auto body = inner.run();
  if (!body) return body.error();
  if (behind) {
    inner.code.accept(*body);
    if (!inner.is_anchored()) inner.code.begin_at_any_character();
  } else {
    inner.code.accept_prefix(*body);
  }
  const auto made = static_cast<std::uint32_t>(looks_.all.size());
  if (made == lookarounds_max)
    return in_.not_supported("more than " + std::to_string(lookarounds_max) + " lookarounds");
  looks_.all.push_back({std::move(inner.code), behind});
  looks_.index.emplace(std::move(name), made);
  return made;
}

/// \b is (?<=\w)(?!\w)|(?<!\w)(?=\w), and \B is (?<=\w)(?=\w)|(?<!\w)(?!\w).
result<void> regex_parser::word_boundary() {
  const bool inside = in_.starts("\\B");
  in_.skip(2);
  const auto before = lookaround_of("\\w", in_.offset(), true, {}),
             after = lookaround_of("\\w", in_.offset(), false, {});
  if (!before) return before.error();
  if (!after) return after.error();
  std::array<nfa::fragment, 2> cases{};
  for (const bool is_word : {false, true}) {
    const auto first = code.look(*before, !is_word);
    cases[is_word] = code.concat(first, code.look(*after, is_word != inside));
  }
  return assertion(code.either(cases));
}

result<void> regex_parser::assertion(const nfa::fragment& made) {
  ++assertions_;
  if (const auto count = in_.quantifier(); !count || *count) return in_.wrong("nothing to repeat");
  append(made);
  return {};
}

result<void> regex_parser::atom() {
  code_set set;
  if (in_.peek() == '[') {
    in_.skip(1);
    auto read = in_.set();
    if (!read) return read.error();
    set = std::move(*read);
  } else if (in_.peek() == '\\') {
    in_.skip(1);
    auto read = in_.escape();
    if (!read) return read.error();
    set = std::move(*read);
  } else if (in_.peek() == '.') {
    in_.skip(1);
    set = in_.flags.dot_all ? any_set() : dot_set();
  } else {
    auto read = in_.literal();
    if (!read) return read.error();
    set = std::move(*read);
  }
  ++parts_;
  if (!work_.spend(16 * set.ranges().size())) return too_much_work(work_);
  return quantified(code.codes(set), true);
}

/// Appends an atom, with the quantifier that follows it.
result<void> regex_parser::quantified(nfa::fragment made, bool is_set) {
  auto count = in_.quantifier();
  if (!count) return count.error();
  if (*count) {
    const bool first = groups_.back().open_begin && !groups_.back().sequence;
    const bool last = may_be_last(in_.rest());
    if (first || last) (*count)->most = (*count)->least;
    bool fits = true;
    if (is_repeated_set(**count, is_set, last))
      made = code.star(made);
    else
      made = code.repeat(made, (*count)->least, (*count)->most, work_.of().instructions_max, fits);
    if (!fits) return size_error();
    if (!work_.spend(code.size() / 8)) return too_much_work(work_);
    if (const auto more = in_.quantifier(); !more || *more) return in_.wrong("nothing to repeat");
    if (first && (*count)->most == 0) return {};
  } else if (is_set) {
    ++fixed_;
  }
  append(made, is_set && !*count);
  return {};
}

void regex_parser::append(const nfa::fragment& made, bool is_character) {
  auto& group = groups_.back();
  group.sequence = group.sequence ? code.concat(*group.sequence, made) : made;
  group.is_character = is_character;
  ++group.parts;
}

nfa::fragment regex_parser::take_sequence() {
  auto& group = groups_.back();
  const auto made = group.sequence ? *group.sequence : code.empty();
  group.sequence.reset();
  group.all_characters = group.all_characters && group.parts == 1 && group.is_character;
  group.parts = 0;
  return made;
}

nfa::fragment regex_parser::end_group() {
  auto& choices = groups_.back().choices;
  choices.push_back(take_sequence());
  return code.either(choices);
}

}  // namespace skein::grammar
