// The expression is read from left to right, with a stack for its groups, and becomes an NFA at once: an instruction
// range for each atom, glued to what is before it. Quantifiers copy ranges. There is no syntax tree and no recursion
// but that of lookarounds, of which at most depth_max may be nested.
#include "grammar/text/regex_parser.hpp"

#include <array>

namespace skein::grammar {
namespace {

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
  groups_.emplace_back();
  while (!in_.at_end()) {
    if (!work_.spend(8)) return too_much_work(work_);
    if (code.size() > work_.of().instructions_max) return size_error();
    if (const auto read = part(); !read) return read.error();
  }
  if (groups_.size() > 1) return in_.wrong("unterminated group");
  return end_group();
}

std::optional<repetition> regex_parser::simple() const {
  return parts_ == 1 && begins_ && ends_ ? counted_ : std::nullopt;
}

error regex_parser::size_error() const { return too_much("instructions of a pattern", work_.of().instructions_max); }

result<void> regex_parser::part() {
  switch (in_.peek()) {
    case '(': return open();
    case ')':
      if (groups_.size() == 1) return in_.wrong("unmatched )");
      in_.skip(1);
      {
        const auto made = end_group();
        in_.flags = groups_.back().outside;
        groups_.pop_back();
        return quantified(made, false);
      }
    case '|':
      in_.skip(1);
      ++parts_;
      has_choices_ = has_choices_ || groups_.size() == 1;
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
  groups_.emplace_back().outside = outside;
  return {};
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
  const auto expression = in_.rest().substr(0, end);
  const auto offset = in_.offset();
  in_.skip(end + 1);
  if (const auto count = in_.quantifier(); !count || *count) return in_.not_supported("a repeated lookaround");
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
    const bool outside = groups_.size() == 1;
    const bool first = how_.open_begin && outside && !groups_.back().sequence;
    const bool last = how_.open_end && outside && (in_.at_end() || in_.peek() == '|');
    if (first || last) (*count)->most = (*count)->least;
    const bool is_simple = is_set && begins_ && groups_.size() == 1 && parts_ == 1;
    if (is_simple) counted_ = **count;
    bool fits = true;
    if (is_simple && how_.keep_simple)
      made = code.star(made);
    else
      made = code.repeat(made, (*count)->least, (*count)->most, work_.of().instructions_max, fits);
    if (!fits) return size_error();
    if (!work_.spend(code.size() / 8)) return too_much_work(work_);
    if (const auto more = in_.quantifier(); !more || *more) return in_.wrong("nothing to repeat");
  }
  append(made);
  return {};
}

void regex_parser::append(const nfa::fragment& made) {
  auto& sequence = groups_.back().sequence;
  sequence = sequence ? code.concat(*sequence, made) : made;
}

nfa::fragment regex_parser::take_sequence() {
  auto& sequence = groups_.back().sequence;
  const auto made = sequence ? *sequence : code.empty();
  sequence.reset();
  return made;
}

nfa::fragment regex_parser::end_group() {
  auto& choices = groups_.back().choices;
  choices.push_back(take_sequence());
  return code.either(choices);
}

}  // namespace skein::grammar
