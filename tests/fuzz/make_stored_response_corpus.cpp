// Writes the settings that the fuzzer of stored responses starts from: make_stored_response_corpus FOLDER
#include "tests/fuzz/text_corpus.hpp"

namespace {

const char* const files[] = {
    R"({"temperature":0.5,"top_p":0.9,"top_k":20,"min_p":0,"first_penalty":0.2,"repeat_penalty":0.1,"penalty_decay":0.99,)"
    R"("max_tokens":8,"seed":3,"hidden_tokens":1,"request_digest":17,"usage":{"prompt":5,"cached":1,"completion":4,)"
    R"("reasoning":2},"stop":["END","\nUser:"],"stop_ids":[7],"ignore_eos":false,"logit_bias":[[5,-2.5],[6,1]],"response":)"
    R"({"model":"m","created_at":1,"tokens_max":9,"conversation":"conv_0123456789abcdef01234567","background":true,)"
    R"("instructions":"Be brief.","max_output_tokens":9,"metadata":{"a":"b"},"previous_response_id":null,"reasoning":)"
    R"({"effort":"high","summary":"auto","max_tokens":7},"store":true,"text":{"format":{"type":"text"}},"temperature":0.5,)"
    R"("top_p":0.9,"user":"u","parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":{"input":5,"cached":1,)"
    R"("output":4,"reasoning":2},"reasoning_steps":[1,0,3],"content_steps":[1,0,0,2]}})",
    R"({"stop":1,"response":{}})",
    R"({"stop_ids":{},"response":{"call_steps":[4,0,5]}})",
    R"({"logit_bias":7,"response":{"reasoning_steps":{}}})",
    R"({"logit_bias":[1,[5],[5,1e300],[1e300,5],[{},[]]],"response":{}})",
    R"({"stop":[1,[],{}],"response":{"metadata":{"a":{}},"usage":[]}})",
    (R"({"response":{"tools":[{"type":"function","name":"add","parameters":{"type":"object"}},)"
     R"({"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}],)"
     R"("tool_choice":{"type":"function","name":"add"},"call_steps":[3,0,2,0]}})"),
    R"({"response":{"text":{"format":{"type":"json_schema","name":"s","schema":{"type":"object"}}},"tools":{"a":1}}})",
};

}  // namespace

int main(int argc, char** argv) { return skein::test::write_text_corpus(argc, argv, files); }
