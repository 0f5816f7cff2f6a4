// Writes the grammars that the fuzzer of GBNF starts from: make_gbnf_corpus FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace {

const char* const files[] = {
    "root ::= expr\nexpr ::= num ([-+] num)*  # sum\nnum ::= [0-9]{1,3} | \"(\" expr \")\"\n",
    "root ::= \"r\" root | a?\na ::= [^a-c\\n] . \"\\x41\\u00e9\"\n",
    "root ::= (a | b)+ \"x\"{2}\na ::= \"a\"\nb ::= a a?\n",
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_gbnf_corpus FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const char* const file : files) std::ofstream(folder / std::to_string(number++), std::ios::binary) << file;
}
