// Runs a libFuzzer entry point as an ordinary test, with any compiler:
//   fuzz_x [--runs N] [--seed S] CORPUS_FILE_OR_FOLDER...
// Each corpus file is tried as it is, then N mutations of them, all following from the seed. A crash prints the seed
// and the run, and --seed S repeats it. Built with clang and -fsanitize=fuzzer instead, the entry needs no driver.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t longest_input = 1u << 20;

struct arguments {
  std::uint64_t runs = 1000;
  std::uint64_t seed = std::random_device()();
  std::vector<std::string> corpus;
};

[[noreturn]] void usage(const std::string& what) {
  std::fprintf(stderr, "%s\nusage: fuzz [--runs N] [--seed S] CORPUS_FILE_OR_FOLDER...\n", what.c_str());
  std::exit(2);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) usage("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

arguments parse(int argc, char** argv) {
  arguments given;
  std::vector<std::filesystem::path> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--runs" || word == "--seed") {
      std::uint64_t& number = word == "--runs" ? given.runs : given.seed;
      const std::string_view digits = i + 1 < argc ? argv[++i] : "";
      const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
      if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size())
        usage(std::string(word) + " needs a number");
    } else if (std::filesystem::is_directory(word)) {
      for (const auto& entry : std::filesystem::directory_iterator(word)) paths.push_back(entry.path());
    } else {
      paths.emplace_back(word);
    }
  }
  std::ranges::sort(paths);  // folders list their files in any order; a seed must mean the same everywhere
  for (const auto& path : paths) given.corpus.push_back(read_file(path));
  if (given.corpus.empty()) usage("no corpus");
  return given;
}

/// Changes an input in a few places, as a fuzzer without knowledge of the format does.
class mutator {
 public:
  mutator(const std::vector<std::string>& corpus, std::uint64_t seed) : corpus_(corpus), random_(seed) {}

  std::string next() {
    std::string input = corpus_[below(corpus_.size())];
    for (std::size_t times = 1 + below(6); times-- > 0;) change(input);
    if (input.size() > longest_input) input.resize(longest_input);
    return input;
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  void change(std::string& input) {
    if (input.empty()) input = "x";
    const std::size_t at = below(input.size());
    const std::size_t length = std::min(input.size() - at, std::size_t{1} << below(8));
    switch (below(8)) {
      case 0: input[at] = static_cast<char>(random_()); break;
      case 1: input[at] = static_cast<char>(input[at] ^ (1 << below(8))); break;
      case 2: overwrite_number(input, at); break;
      case 3: input.erase(at, length); break;
      case 4: input.insert(at, input.substr(at, length)); break;
      case 5: input.replace(at, length, input.substr(below(input.size()), length)); break;
      case 6: splice(input, at); break;
      case 7: input.resize(at + 1); break;
    }
  }

  /// Lengths and offsets go wrong at these numbers first.
  void overwrite_number(std::string& input, std::size_t at) {
    constexpr std::uint64_t numbers[] = {0,
                                         1,
                                         0x7f,
                                         0x80,
                                         0xff,
                                         0x7fff,
                                         0xffff,
                                         0x7fffffff,
                                         0x80000000,
                                         0xffffffff,
                                         0x7fffffffffffffff,
                                         0x8000000000000000,
                                         0xffffffffffffffff};
    std::uint64_t number = numbers[below(std::size(numbers))];
    for (std::size_t bytes = std::size_t{1} << below(4); bytes-- > 0 && at < input.size(); number >>= 8)
      input[at++] = static_cast<char>(number);
  }

  void splice(std::string& input, std::size_t at) {
    const std::string& other = corpus_[below(corpus_.size())];
    if (!other.empty()) input.replace(at, std::string::npos, other.substr(below(other.size())));
  }

  const std::vector<std::string>& corpus_;
  std::mt19937_64 random_;
};

char crash_note[128];
int crash_note_length = 0;

void note(std::uint64_t seed, std::uint64_t run) {
  crash_note_length = std::snprintf(crash_note, sizeof crash_note, "\nfuzz: crash with --seed %llu in run %llu\n",
                                    static_cast<unsigned long long>(seed), static_cast<unsigned long long>(run));
}

void on_crash(int signal) {
  if (::write(2, crash_note, static_cast<std::size_t>(crash_note_length)) < 0) std::_Exit(1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void try_one(const std::string& input) {
  // A copy without slack, so that AddressSanitizer sees the first byte read beyond the end.
  const std::vector<std::uint8_t> exact(input.begin(), input.end());
  (void)LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

}  // namespace

int main(int argc, char** argv) {
  const arguments given = parse(argc, argv);
  std::printf("fuzz: %zu corpus files, %llu runs, --seed %llu\n", given.corpus.size(),
              static_cast<unsigned long long>(given.runs), static_cast<unsigned long long>(given.seed));
  std::fflush(stdout);
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) std::signal(signal, on_crash);
  note(given.seed, 0);
  for (const auto& input : given.corpus) try_one(input);
  mutator mutations(given.corpus, given.seed);
  for (std::uint64_t run = 1; run <= given.runs; ++run) {
    note(given.seed, run);
    try_one(mutations.next());
  }
  return 0;
}
