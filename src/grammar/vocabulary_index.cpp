#include "grammar/vocabulary_index.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/utf8.hpp"
#include "grammar/machine/string_machine.hpp"

namespace skein::grammar {
namespace {

using entry = token_trie::entry;

constexpr std::size_t few_of_groups = 256;

void set_bit(token_id token, std::vector<std::uint32_t>& in) {
  in[static_cast<std::size_t>(token) / 32] |= 1u << (token % 32);
}

bool is_plain(std::string_view text) {
  if (!is_utf8(text)) return false;
  return std::ranges::none_of(text,
                              [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\'; });
}

/// What a token does after the opening quotation mark of a JSON string, by the rules of the machine itself.
class string_reader {
 public:
  string_reader() : machine_(program_, frames_) {
    for (std::uint32_t most = 0; most <= token_trie::bytes_max; ++most)
      program_.strings.push_back({.literals = {}, .automaton = {}, .most = most, .lengths = {}});
  }

  struct outcome {
    bool possible = false;
    bool closes = false;
    std::size_t quote = 0;         ///< where it closes
    std::uint32_t characters = 0;  ///< the fewest of a string that has these
  };
  [[nodiscard]] outcome read(std::string_view text) const {
    if (!read_within(text, token_trie::bytes_max).possible) return {};
    for (std::uint32_t most = 0; most < token_trie::bytes_max; ++most)
      if (const auto found = read_within(text, most); found.possible) return found;
    return read_within(text, token_trie::bytes_max);
  }

 private:
  [[nodiscard]] outcome read_within(std::string_view text, std::uint32_t most) const {
    thread t;
    if (!machine_.begin_string(t, most)) return {};
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '"' && t.escape == 0) return {true, true, i, most};
      if (!machine_.read(t, static_cast<unsigned char>(text[i]))) return {};
    }
    return {true, false, text.size(), most};
  }

  program program_;
  frame_store frames_;
  string_machine machine_;
};

/// True if this may follow blanks between two tokens of JSON.
bool may_begin_token(std::string_view text) {
  if (text.empty()) return true;
  for (const std::string_view word : {"true", "false", "null"})
    if (text.front() == word.front()) return text.substr(0, word.size()) == word.substr(0, text.size());
  return std::string_view("\"{}[],:-0123456789").find(text.front()) != std::string_view::npos;
}

std::uint8_t groups_of(std::string_view text) {
  std::uint8_t groups = 0;
  for (const char c : text)
    groups = static_cast<std::uint8_t>(groups | token_trie::group_of(static_cast<unsigned char>(c)));
  return groups;
}

}  // namespace

std::shared_ptr<const vocabulary_index> vocabulary_index::build(std::shared_ptr<const tokenizer::vocabulary> of) {
  auto made = std::shared_ptr<vocabulary_index>(new vocabulary_index);
  made->vocabulary_ = std::move(of);
  std::vector<entry> all, plain, raw, closing, special, tails;
  const string_reader strings;
  std::map<std::string_view, std::uint32_t> tail_numbers;
  all.reserve(made->vocabulary_->size());
  for (std::uint32_t id = 0; id < made->vocabulary_->size(); ++id) {
    const auto text = made->vocabulary_->text(static_cast<token_id>(id));
    if (text.empty() || text.size() > token_trie::bytes_max) continue;  // longer ones are never allowed
    all.push_back({text, static_cast<token_id>(id)});
  }
  std::ranges::sort(all, {}, &entry::text);
  plain.reserve(all.size());
  raw.reserve(all.size());
  for (const auto& [text, token] : all) {
    if (is_plain(text)) {
      plain.push_back({text, token});
      raw.push_back({text, token});
      continue;
    }
    const auto outcome = strings.read(text);
    if (!outcome.possible) continue;
    if (!outcome.closes) {
      const bool is_raw = text.find('\\') == std::string_view::npos;
      made->inner_.push_back({token, outcome.characters, groups_of(text), is_raw});
      (is_raw ? raw : special).push_back({text, token});
      continue;
    }
    const auto tail = text.substr(outcome.quote + 1);
    const auto [place, added] = tail_numbers.emplace(tail, static_cast<std::uint32_t>(tail_numbers.size()));
    if (added) tails.push_back({tail, static_cast<token_id>(place->second)});
    made->closing_.push_back({token, outcome.characters, place->second});
    closing.push_back({text, token});
    special.push_back({text, token});
  }
  made->add_masks(plain);
  made->add_starts(all);
  made->all_ = token_trie(std::move(all));
  made->raw_ = token_trie(std::move(raw));
  made->closing_trie_ = token_trie(std::move(closing));
  made->special_ = token_trie(std::move(special));
  made->tails_ = token_trie(std::move(tails));
  return made;
}

void vocabulary_index::add_masks(const std::vector<entry>& plain) {
  std::size_t longest = 0;
  for (const auto& [text, token] : plain) longest = std::max(longest, utf8_length(text));
  plain_masks_.assign(longest + 1, std::vector<std::uint32_t>(words()));
  std::map<std::uint8_t, std::vector<token_id>> by_groups;
  for (const auto& [text, token] : plain) {
    set_bit(token, plain_masks_[utf8_length(text)]);
    by_groups[groups_of(text)].push_back(token);
  }
  for (std::size_t n = 1; n <= longest; ++n)
    for (std::size_t i = 0; i < words(); ++i) plain_masks_[n][i] |= plain_masks_[n - 1][i];
  characters_max_ = longest;
  for (const auto& each : inner_) characters_max_ = std::max<std::size_t>(characters_max_, each.characters);
  for (const auto& each : closing_) characters_max_ = std::max<std::size_t>(characters_max_, each.characters);
  text_mask_ = plain_masks_.back();
  for (const auto& each : inner_) set_bit(each.token, text_mask_);
  for (auto& [groups, tokens] : by_groups) {
    auto& made = by_groups_.emplace_back();
    made.groups = groups;
    if (tokens.size() < few_of_groups) {
      made.few = std::move(tokens);
      continue;
    }
    made.mask.resize(words());
    for (const auto token : tokens) set_bit(token, made.mask);
  }
}

void vocabulary_index::add_starts(const std::vector<entry>& all) {
  struct blank_entry {
    std::string_view start;
    blank_token token;
  };
  std::vector<blank_entry> found;
  for (const auto& [text, token] : all) {
    const auto blanks = std::min(text.find_first_not_of(" \t\n\r"), text.size());
    const auto start = text.substr(blanks);
    if (may_begin_token(start)) found.push_back({start, {token, static_cast<std::uint32_t>(blanks)}});
  }
  std::ranges::sort(found, {}, &blank_entry::start);
  std::vector<entry> starts;
  for (const auto& [start, token] : found) {
    if (starts.empty() || starts.back().text != start) {
      starts.push_back({start, static_cast<token_id>(start_from_.size())});
      start_from_.push_back(static_cast<std::uint32_t>(by_start_.size()));
    }
    by_start_.push_back(token);
  }
  start_from_.push_back(static_cast<std::uint32_t>(by_start_.size()));
  starts_ = token_trie(std::move(starts));
}

std::span<const std::uint32_t> vocabulary_index::plain_mask(std::uint64_t characters) const {
  return plain_masks_[std::min<std::uint64_t>(characters, longest())];
}

}  // namespace skein::grammar
