// Writes the grammars that the fuzzer of GBNF starts from: make_gbnf_corpus FOLDER
#include "tests/fuzz/text_corpus.hpp"

namespace {

const char* const files[] = {
    "root ::= expr\nexpr ::= num ([-+] num)*  # sum\nnum ::= [0-9]{1,3} | \"(\" expr \")\"\n",
    "root ::= \"r\" root | a?\na ::= [^a-c\\n] . \"\\x41\\u00e9\"\n",
    "root ::= (a | b)+ \"x\"{2}\na ::= \"a\"\nb ::= a a?\n",
};

}  // namespace

int main(int argc, char** argv) { return skein::test::write_text_corpus(argc, argv, files); }
