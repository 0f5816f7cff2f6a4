// Writes the grammars that the fuzzer of KBNF starts from: make_kbnf_corpus FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace {

const char* const files[] = {
    "start ::= list ';'; (* x *) list ::= list ',' item | item;\nitem ::= 'x' | [\"[\" list ']'] 'y'?;\n",
    "start ::= #'[a-c]+\\\\d' {'a' | \"b\"} start* | except!('ab')\n'.';start ::= '\\n';",
    "start::=#ex'</a>' '</a>' (a | b)+; a ::= 'a'; b ::= a a*;\n",
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_kbnf_corpus FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const char* const file : files) std::ofstream(folder / std::to_string(number++), std::ios::binary) << file;
}
