#include "grammar/schema/language_pool.hpp"

#include <algorithm>
#include <array>
#include <mutex>

namespace skein::grammar {
namespace {

constexpr const char* date_pattern =
    "(\\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2[0-8]))|"
    "(\\d\\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)";
constexpr const char* clock_pattern = "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d+)?";
constexpr const char* offset_pattern = "([zZ]|[+-]([01]\\d|2[0-3]):[0-5]\\d)";

std::string two_digits(int number) {
  return {static_cast<char>('0' + number / 10), static_cast<char>('0' + number % 10)};
}

/// A time with an offset. 23:59:60 UTC is a leap second; in other zones it has another hour and minute.
/// Zones differ from UTC by quarters of an hour; leap seconds in others are not accepted.
std::string time_pattern() {
  std::string leap = "23:59:60(\\.\\d+)?([zZ]|[+-]00:00)";
  for (int minutes = 14; minutes < 24 * 60; minutes += 15) {
    const int behind = (23 * 60 + 59 - minutes) % (24 * 60), ahead = (minutes + 1) % (24 * 60);
    if (behind == 0) continue;
    leap += "|" + two_digits(minutes / 60) + ":" + two_digits(minutes % 60) + ":60(\\.\\d+)?(-" +
            two_digits(behind / 60) + ":" + two_digits(behind % 60) + "|\\+" + two_digits(ahead / 60) + ":" +
            two_digits(ahead % 60) + ")";
  }
  return "(" + std::string(clock_pattern) + offset_pattern + "|" + leap + ")";
}

constexpr std::uint32_t host_characters_max = 253;
constexpr const char* octet = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
constexpr const char* label = "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";

std::string ipv4_pattern() {
  const std::string part = octet;
  return part + "\\." + part + "\\." + part + "\\." + part;
}

/// RFC 4291, section 2.2.
std::string ipv6_pattern() {
  const std::string h = "[0-9a-fA-F]{1,4}", tail = "(" + h + ":" + h + "|" + ipv4_pattern() + ")";
  std::string all = "(" + h + ":){6}" + tail + "|::(" + h + ":){5}" + tail;
  const auto with_left = [&](int left) {
    const std::string before = left == 0 ? "(" + h + ")?" : "((" + h + ":){0," + std::to_string(left) + "}" + h + ")?";
    return "|" + before + "::(" + h + ":){" + std::to_string(4 - left) + "}" + tail;
  };
  for (int left = 0; left < 5; ++left) all += with_left(left);
  all += "|((" + h + ":){0,5}" + h + ")?::" + h + "|((" + h + ":){0,6}" + h + ")?::";
  return "(" + all + ")";
}

/// Code points beyond ASCII in an IRI (RFC 3987, section 2.2): `ucschar`, and `iprivate` for queries.
constexpr const char* iri_characters =
    "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U0001fffd\U00020000-\U0002fffd\U00030000-\U0003fffd"
    "\U00040000-\U0004fffd\U00050000-\U0005fffd\U00060000-\U0006fffd\U00070000-\U0007fffd\U00080000-\U0008fffd"
    "\U00090000-\U0009fffd\U000a0000-\U000afffd\U000b0000-\U000bfffd\U000c0000-\U000cfffd\U000d0000-\U000dfffd"
    "\U000e1000-\U000efffd";
constexpr const char* private_characters = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd";

/// RFC 3986, appendix A; `more` and `in_query` are further characters, as in an IRI.
std::string uri_pattern(bool reference, const std::string& more = "", const std::string& in_query = "") {
  const std::string escaped = "%[0-9a-fA-F]{2}", plain = more + "A-Za-z0-9._~!$&'()*+,;=";
  const std::string character = "([" + plain + ":@-]|" + escaped + ")";
  const std::string host = "(\\[(" + ipv6_pattern() + "|[vV][0-9a-fA-F]+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\\]|([" +
                           plain + "-]|" + escaped + ")*)";
  const std::string authority = "(([" + plain + ":-]|" + escaped + ")*@)?" + host + "(:\\d*)?";
  const std::string rest = "(/" + character + "*)*";
  const std::string absolute = "/(" + character + "+" + rest + ")?";
  const std::string tail = "(\\?([" + plain + in_query + ":@/?-]|" + escaped + ")*)?(#(" + character + "|[/?])*)?";
  std::string full =
      "[A-Za-z][A-Za-z0-9+.-]*:(//" + authority + rest + "|" + absolute + "|" + character + "+" + rest + ")?" + tail;
  if (!reference) return full;
  const std::string no_colon = "([" + plain + "@-]|" + escaped + ")";
  return "(" + full + "|(//" + authority + rest + "|" + absolute + "|" + no_colon + "+" + rest + ")?" + tail + ")";
}

/// RFC 6570, section 2, with its erratum 6937: an apostrophe is a literal.
std::string uri_template_pattern() {
  const std::string escaped = "%[0-9a-fA-F]{2}";
  const std::string literal =
      "([!#$&-;=?-\\[\\]_a-z~" + std::string(iri_characters) + private_characters + "]|" + escaped + ")";
  const std::string character = "([A-Za-z0-9_]|" + escaped + ")";
  const std::string variable = character + "(\\.?" + character + ")*(:[1-9]\\d{0,3}|\\*)?";
  return "(" + literal + "|\\{[+#./;?&=,!@|]?" + variable + "(," + variable + ")*\\})*";
}

/// RFC 1123, without labels that have hyphens in the third and fourth place: Punycode, of which the valid ones depend
/// on tables of Unicode.
std::string plain_host_pattern() {
  const std::string a = "[a-zA-Z0-9]", c = "[a-zA-Z0-9-]";
  const std::string part =
      a + "(" + a + "|" + c + a + "|" + c + c + a + "|" + c + "(" + a + c + "|-" + a + ")" + c + "{0,58}" + a + ")?";
  return part + "(\\." + part + ")*";
}

std::string email_pattern() {
  const std::string word = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
  const std::string quoted = "\"([ !#-\\[\\]-~]|\\\\[ -~])*\"";
  return "(" + word + "(\\." + word + ")*|" + quoted + ")@(" + label + "(\\." + label + ")*|\\[(" + ipv4_pattern() +
         "|IPv6:" + ipv6_pattern() + ")\\])";
}

constexpr const char* duration_pattern =
    "P(\\d+W|(\\d+Y(\\d+M(\\d+D)?)?|\\d+M(\\d+D)?|\\d+D)(T(\\d+H(\\d+M(\\d+S)?)?|\\d+M(\\d+S)?|\\d+S))?|"
    "T(\\d+H(\\d+M(\\d+S)?)?|\\d+M(\\d+S)?|\\d+S))";

std::string choice_of(const std::vector<std::string>& all) {
  std::string made = "(";
  for (const auto& each : all) made.append(made.size() > 1 ? "|" : "").append(each);
  return made + ")";
}

/// A class in brackets that every dialect reads alike: no bracket in it, hyphens at its ends, and common ranges.
std::string class_pattern() {
  std::vector<std::string> members{"[^\\[\\]\\\\^-]", "\\\\[dDwWsStnrfv!-\\/:-@\\[-`{-~]", "a-[a-z]", "A-[A-Za-z]",
                                   "[ !]-~"};
  for (char low = '0'; low <= '9'; ++low) members.push_back(std::string(1, low) + "-[" + low + "-9]");
  return "\\[\\^?-?" + choice_of(members) + "+-?\\]";
}

/// Regular expressions that ECMA-262 and other dialects read alike, with groups at most three levels deep.
std::string regex_pattern() {
  const std::string number = "(0|[1-9]\\d{0,2})";
  std::vector<std::string> counts{number + ",?", "\\d,[1-9]\\d{1,2}"};
  for (char low = '0'; low <= '9'; ++low) counts.push_back(std::string(1, low) + ",[" + low + "-9]");
  const std::string repeated = "([*+?]|\\{" + choice_of(counts) + "\\})\\??";
  const std::string simple = "[^\\\\()\\[\\]{}*+?|^$]|\\\\[dDwWsStnrfv!-\\/:-@\\[-`{-~]|" + class_pattern();
  const auto terms = [&](const std::string& look, const std::string& group) {
    return "([\\^$|]|\\\\[bB]" + look + "|(" + simple + group + ")(" + repeated + ")?)*";
  };
  const std::string flat = terms("", "");
  std::string all = flat;
  for (int level = 1; level < 4; ++level) {
    const std::string group = "|\\((\\?:)?" + all + "\\)";
    all = terms("|\\(\\?[=!]" + flat + "\\)", group);
  }
  return all;
}

constexpr std::array narrowed{"hostname", "idn-hostname", "idn-email", "regex"};

/// An expression for the texts of a narrowed format and more; empty: all texts.
std::string widened_pattern(std::string_view name) {
  if (name == "hostname") return "[a-zA-Z0-9-]+(\\.[a-zA-Z0-9-]+)*\\.?";
  if (name == "idn-email") return "[^]*@[^]*";
  return {};
}

/// The expression of a format for the whole text, a part of it for the narrowed ones: which labels of internationalised
/// host names are valid depends on tables of Unicode.
std::string format_pattern(std::string_view name) {
  if (name == "date") return date_pattern;
  if (name == "time") return time_pattern();
  if (name == "date-time") return std::string(date_pattern) + "[tT]" + time_pattern();
  if (name == "duration") return duration_pattern;
  if (name == "uuid") return "[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}";
  if (name == "email") return email_pattern();
  if (name == "ipv4") return ipv4_pattern();
  if (name == "ipv6") return ipv6_pattern();
  if (name == "uri") return uri_pattern(false);
  if (name == "uri-reference") return uri_pattern(true);
  if (name == "iri") return uri_pattern(false, iri_characters, private_characters);
  if (name == "iri-reference") return uri_pattern(true, iri_characters, private_characters);
  if (name == "uri-template") return uri_template_pattern();
  if (name == "hostname") return plain_host_pattern();
  if (name == "json-pointer") return "(/([^/~]|~[01])*)*";
  if (name == "idn-hostname") return plain_host_pattern();
  if (name == "idn-email") return email_pattern();
  if (name == "regex") return regex_pattern();
  if (name == "relative-json-pointer") return "(0|[1-9]\\d*)(#|(/([^/~]|~[01])*)*)";
  return {};
}

constexpr auto standard =
    std::to_array<std::string_view>({"date", "time", "date-time", "duration", "uuid", "email", "ipv4", "ipv6", "uri",
                                     "uri-reference", "hostname", "idn-hostname", "idn-email", "iri", "regex",
                                     "iri-reference", "json-pointer", "uri-template", "relative-json-pointer"});

/// Formats are the same for all schemas, so the process compiles each once.
result<std::shared_ptr<const dfa>> format_automaton(const std::string& name, bool widened) {
  static std::mutex guard;
  static std::map<std::string, std::shared_ptr<const dfa>> known;
  const std::lock_guard lock(guard);
  auto& place = known[(widened ? "!" : "=") + name];
  if (place) return place;
  const limits of;
  budget work(of);
  const auto expression = widened ? widened_pattern(name) : format_pattern(name);
  auto made = widened && expression.empty() ? result<dfa>(any_text()) : compile_whole(expression, work);
  if (!made) return made.error();
  place = std::make_shared<const dfa>(std::move(*made));
  return place;
}

}  // namespace

std::span<const std::string_view> standard_formats() { return standard; }

bool is_standard_format(std::string_view name) { return std::ranges::find(standard, name) != standard.end(); }

dialect first_draft_of(std::string_view format) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, format) != names.end();
  };
  if (is_one_of({"uuid", "duration"})) return dialect::draft2019;
  if (is_one_of({"json-pointer", "uri-reference", "uri-template"})) return dialect::draft6;
  return is_one_of({"date-time", "email", "hostname", "ipv4", "ipv6", "uri"}) ? dialect::draft4 : dialect::draft7;
}

bool is_narrowed_format(std::string_view name) {
  return std::ranges::any_of(narrowed, [&](const char* each) { return name == each; });
}

result<std::uint32_t> language_pool::pattern(std::string_view text) {
  if (const auto found = patterns_.find(text); found != patterns_.end()) return found->second;
  auto made = compile_search(text, work_);
  if (!made) return made.error();
  const auto index = static_cast<std::uint32_t>(languages_.size());
  languages_.push_back({std::make_shared<const dfa>(std::move(made->automaton)), made->least, made->most});
  texts_.emplace_back(text);
  patterns_.emplace(text, index);
  return index;
}

result<std::uint32_t> language_pool::format(std::string_view name, bool in_part, bool negated) {
  const bool is_narrowed = is_narrowed_format(name), widened = is_narrowed && negated;
  if (is_narrowed && !in_part)
    return error{error_kind::unsupported, "the format " + std::string(name) + " is not supported", "format"};
  const auto key = (widened ? "!" : "=") + std::string(name);
  if (const auto found = formats_.find(key); found != formats_.end()) return found->second;
  auto made = format_automaton(std::string(name), widened);
  if (!made) return made.error();
  const auto index = static_cast<std::uint32_t>(languages_.size());
  const bool is_host = name.ends_with("hostname") && !widened;
  languages_.push_back({std::move(*made), 0, is_host ? host_characters_max : pattern_language::no_limit});
  texts_.emplace_back();
  formats_.emplace(key, index);
  return index;
}

result<std::shared_ptr<const dfa>> language_pool::whole(std::uint32_t index) {
  const auto& language = languages_[index];
  if (language.least == 0 && language.most == pattern_language::no_limit) return language.automaton;
  if (const auto found = whole_.find(index); found != whole_.end()) return found->second;
  if (texts_[index].empty())
    return error{error_kind::unsupported, "this format cannot be negated or apply to names", "format"};
  auto made = compile_search_automaton(texts_[index], work_);
  if (!made) return made.error();
  return whole_.emplace(index, std::make_shared<const dfa>(std::move(*made))).first->second;
}

}  // namespace skein::grammar
