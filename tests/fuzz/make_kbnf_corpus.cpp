// Writes the grammars that the fuzzer of KBNF starts from: make_kbnf_corpus FOLDER
#include "tests/fuzz/text_corpus.hpp"

namespace {

const char* const files[] = {
    "start ::= list ';'; (* x *) list ::= list ',' item | item;\nitem ::= 'x' | [\"[\" list ']'] 'y'?;\n",
    "start ::= #'[a-c]+\\\\d' {'a' | \"b\"} start* | except!('ab')\n'.';start ::= '\\n';",
    "start::=#ex'</a>' '</a>' (a | b)+; a ::= 'a'; b ::= a a*;\n",
};

}  // namespace

int main(int argc, char** argv) { return skein::test::write_text_corpus(argc, argv, files); }
