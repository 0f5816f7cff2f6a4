// Writes the expressions that the fuzzer of regular expressions starts from: make_regex_corpus FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace {

const char* const files[] = {"^(a|b)*c+?d{2,3}$",
                             "[^a-z\\d_]+.|x?",
                             "^(?!ab)(?=.*c)[a-c\\u00e9]{2,9}$",
                             "(?:\\x41\\cA|(?<n>\\u{1f600}))\\s\\S*",
                             "((a{3}){4}|)*",
                             "(?im)^a(?s-i:.)\\Z|\\A(?P<n>b{,3})[]x]"};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_regex_corpus FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const char* const file : files) std::ofstream(folder / std::to_string(number++), std::ios::binary) << file;
}
