// Times of compiling schemas, and of masks and forced tokens along valid instances, over a folder of files
// NAME.schema.json with instances NAME.*.json. Each repetition compiles again, so no mask is cached from the one
// before; of each mask and each schema the shortest time counts.
//   mask_bench VOCABULARY FOLDER [REPETITIONS] [-v] [-g]
// `digest` is a hash of all masks: equal before and after a change that must not change them. -v: a line per schema.
// -g: the grammars that rows generate from, which are stricter and reject some valid instances.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/matcher.hpp"

namespace {

namespace fs = std::filesystem;
using namespace skein;

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Of this thread: a compilation is long enough to be interrupted by others on a busy machine.
double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto place = std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())));
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(place));
  return values[place];
}

void report(const char* what, const std::vector<double>& values) {
  std::printf("%-24s %6zu  p50 %8.2f  p95 %8.2f  p99 %8.2f  max %9.2f us\n", what, values.size(),
              percentile(values, 0.5), percentile(values, 0.95), percentile(values, 0.99), percentile(values, 1));
}

std::uint64_t digest = 14695981039346656037u;

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return std::fprintf(stderr, "usage: mask_bench VOCABULARY FOLDER [REPETITIONS] [-v]\n"), 64;
  const int repetitions = count > 3 ? std::max(1, std::atoi(arguments[3])) : 5;
  const auto has = [&](std::string_view flag) {
    return std::find(arguments + 3, arguments + count, flag) != arguments + count;
  };
  const bool verbose = has("-v");
  grammar::options how;
  if (has("-g")) how.bounds = grammar::limits_to_generate();
  auto vocabulary = tokenizer::vocabulary::load(arguments[1]);
  if (!vocabulary) return std::fprintf(stderr, "%s\n", vocabulary.error().message.c_str()), 1;
  double begin = now_us();
  const auto index = grammar::vocabulary_index::build(*vocabulary);
  std::printf("index built in %.0f us\n", now_us() - begin);

  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(arguments[2])) files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<double> compile_us, mask_us, forced_us, schema_p50, schema_p99;
  std::size_t refused = 0, wrong = 0, forced = 0;
  std::vector<std::uint32_t> allowed(index->words());
  for (const auto& file : files) {
    if (!file.string().ends_with(".schema.json")) continue;
    const auto schema = content_of(file);
    const std::string name = file.filename().string().substr(0, file.filename().string().find('.')) + ".";
    std::vector<std::vector<token_id>> texts;
    for (const auto& other : files) {
      if (other == file || !other.filename().string().starts_with(name)) continue;
      const bool ok = (*vocabulary)->encode(content_of(other), texts.emplace_back()).has_value();
      if (!ok) return 1;
    }
    std::vector<double> masks, searches;
    double compile = 1e300;
    for (int i = 0; i < repetitions; ++i) {
      begin = cpu_us();
      const auto compiled = grammar::grammar::from_json_schema(schema, how);
      compile = std::min(compile, cpu_us() - begin);
      if (!compiled) {
        ++refused;
        std::printf("%s: refused: %s\n", file.filename().c_str(), compiled.error().message.c_str());
        break;
      }
      std::size_t at = 0;
      for (const auto& text : texts) {
        grammar::matcher matcher(*compiled, index);
        bool right = true;
        for (const auto& token : text) {
          begin = now_us();
          matcher.fill_mask(allowed);
          const double took = now_us() - begin;
          begin = now_us();
          const bool is_forced = matcher.forced() != no_token;
          const double searched = now_us() - begin;
          if (at == masks.size()) {
            masks.push_back(took);
            searches.push_back(searched);
            forced += is_forced;
          }
          masks[at] = std::min(masks[at], took);
          searches[at] = std::min(searches[at], searched);
          ++at;
          if (i == 0)
            for (const auto word : allowed) digest = (digest ^ word) * 1099511628211u;
          right = (allowed[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0 &&
                  matcher.accept((*vocabulary)->text(token));
          if (!right) break;
        }
        if (i == 0 && (!right || !matcher.is_complete())) {
          ++wrong;
          std::printf("%s: rejects a valid instance\n", file.filename().c_str());
        }
      }
    }
    compile_us.push_back(compile);
    if (verbose)
      std::printf("%s compile %.0f us, masks: p50 %.1f p95 %.1f p99 %.1f max %.1f us\n", file.filename().c_str(),
                  compile, percentile(masks, 0.5), percentile(masks, 0.95), percentile(masks, 0.99),
                  percentile(masks, 1));
    if (masks.empty()) continue;
    mask_us.insert(mask_us.end(), masks.begin(), masks.end());
    forced_us.insert(forced_us.end(), searches.begin(), searches.end());
    schema_p50.push_back(percentile(masks, 0.5));
    schema_p99.push_back(percentile(masks, 0.99));
  }
  report("compile (CPU time)", compile_us);
  report("mask", mask_us);
  report("forced token", forced_us);
  report("median mask of a schema", schema_p50);
  report("99 % mask of a schema", schema_p99);
  std::printf("%zu refused, %zu wrong, %zu tokens forced, digest %016llx\n", refused, wrong, forced,
              static_cast<unsigned long long>(digest));
  return wrong == 0 ? 0 : 1;
}
