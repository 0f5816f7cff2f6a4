// Writes the vocabulary files that the fuzzer of vocabularies starts from: make_vocabulary_corpus FOLDER
#include "tests/fuzz/text_corpus.hpp"

namespace {

const char* const files[] = {
    "1 'a' 1\n2 'b' 1\n3 'ab' 2\n4 ' ' 1\n",
    "1 b'\\x00' 1\n2 b'\\xff\\xfe' 2\n3 '\\n' 1\n4 '\\t\\r\\\\' 3\n5 \"'\" 1\n6 '\"' 1\n",
    "1 '\\u00e9' 2\n2 '\u8a9e' 3\n3 '\\U0001f600' 4\n10 'x' 1\n65535 'xyz' 3\n",
};

}  // namespace

int main(int argc, char** argv) { return skein::test::write_text_corpus(argc, argv, files); }
