// Speed of the tokenizer: encoding of English-like text and of all tokens in random order, and loading. Needs a World
// vocabulary: $SKEIN_VOCAB, else ../shared/oracle/rwkv_vocab_v20230424.txt, relative to the current folder. Compare
// `bytes_per_second`, and only of release builds.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tokenizer/vocabulary.hpp"

namespace {

using skein::token_id;
using skein::tokenizer::vocabulary;

std::filesystem::path vocabulary_file() {
  if (const char* given = std::getenv("SKEIN_VOCAB")) return given;
  return "../shared/oracle/rwkv_vocab_v20230424.txt";
}

const vocabulary& world() {
  static const auto loaded = vocabulary::load(vocabulary_file()).value();
  return *loaded;
}

bool is_word(std::string_view text) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return text.size() >= 2 && text.front() == ' ' && std::all_of(text.begin() + 1, text.end(), lower);
}

/// Words of the vocabulary, short ones more often, in sentences and paragraphs; about a tenth are two words joined,
/// because not every word of a real text is a token.
std::string english_like(std::size_t bytes) {
  std::vector<std::string_view> words;
  for (token_id id = 0; id < static_cast<token_id>(world().size()); ++id)
    if (is_word(world().text(id))) words.push_back(world().text(id));
  std::sort(words.begin(), words.end(),
            [](auto a, auto b) { return a.size() != b.size() ? a.size() < b.size() : a < b; });

  std::mt19937 random(1);
  std::exponential_distribution<double> rank(6.0 / static_cast<double>(words.size()));
  const auto word = [&] { return words[std::min(static_cast<std::size_t>(rank(random)), words.size() - 1)]; };
  std::string text;
  while (text.size() < bytes) {
    text += word();
    switch (random() % 40) {
      case 0:
      case 1:
      case 2:
      case 3: text += word().substr(1); break;
      case 4:
      case 5: text += ','; break;
      case 6: text += ".\n\n"; break;
      case 7:
      case 8: text += '.'; break;
      default: break;
    }
  }
  return text;
}

void encode(benchmark::State& state, const std::string& text) {
  std::vector<token_id> ids;
  for (auto step : state) {
    ids.clear();
    benchmark::DoNotOptimize(world().encode(text, ids));
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
  state.counters["bytes_per_token"] = static_cast<double>(text.size()) / static_cast<double>(ids.size());
}

void encode_english(benchmark::State& state) { encode(state, english_like(static_cast<std::size_t>(state.range(0)))); }
BENCHMARK(encode_english)->Arg(4 << 10)->Arg(1 << 20)->Arg(8 << 20);

/// All tokens in random order: many scripts, and nearly every node of the trie is a cache miss.
void encode_shuffled_tokens(benchmark::State& state) {
  std::vector<token_id> ids(world().size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<token_id>(i);
  std::shuffle(ids.begin(), ids.end(), std::mt19937(1));
  std::string text;
  for (const token_id id : ids) text += world().text(id);
  encode(state, text);
}
BENCHMARK(encode_shuffled_tokens);

void load(benchmark::State& state) {
  for (auto step : state) benchmark::DoNotOptimize(vocabulary::load(vocabulary_file()));
}
BENCHMARK(load)->Unit(benchmark::kMillisecond);

}  // namespace
