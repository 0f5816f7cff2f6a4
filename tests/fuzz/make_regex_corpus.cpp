// Writes the expressions that the fuzzer of regular expressions starts from: make_regex_corpus FOLDER
#include "tests/fuzz/text_corpus.hpp"

namespace {

const char* const files[] = {"^(a|b)*c+?d{2,3}$",
                             "[^a-z\\d_]+.|x?",
                             "^(?!ab)(?=.*c)[a-c\\u00e9]{2,9}$",
                             "(?:\\x41\\cA|(?<n>\\u{1f600}))\\s\\S*",
                             "((a{3}){4}|)*",
                             "(?im)^a(?s-i:.)\\Z|\\A(?P<n>b{,3})[]x]"};

}  // namespace

int main(int argc, char** argv) { return skein::test::write_text_corpus(argc, argv, files); }
