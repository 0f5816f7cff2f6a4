// Writes the answers that the fuzzer of tool calls starts from: make_tool_calls_corpus FOLDER
#include "tests/fuzz/text_corpus.hpp"

namespace {

const char* const files[] = {
    "\x02Let me see.\n**Tool Call:**\n```json\n{\"name\": \"add\", \"arguments\": {\"a\": 1.5e3, \"b\": [true, "
    "null]}}\n```",
    "\x04<tool_call>\n{\"name\":\"add\",\"arguments\":{\"a\":\"\\u00e9\\ud83d\\ude00\"}}\n</tool_call> and "
    "<tool_call>{\"arguments\":{},\"name\":\"now\"}</tool_call>.",
    "\x06<tool_calls>[{\"function\":{\"name\":\"add\",\"parameters\":{\"a\":123456789012345678901}}},\n"
    " {\"name\":\"now\"}, {\"name\":\"other\",\"arguments\":{}}]</tool_calls> end",
    "\x01{\"name\": \"now\", \"arguments\": {\"\": {\"x\": \"\\\"}\"}}, \"id\": [1, {\"y\": \"]\"}]}\n```",
    "\x08@@tool {\"name\":\"add\",\"arguments\":{\"a\":-0}}\n@@tool {\"function\":\"now\"}\n```json\n[1, 2]\n```\n",
};

}  // namespace

int main(int argc, char** argv) { return skein::test::write_text_corpus(argc, argv, files); }
