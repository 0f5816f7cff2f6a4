// Writes the bodies that the fuzzer of requests begins with, each in a file: make_request_corpus FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

const char* const bodies[] = {
    R"({"model":"rwkv7","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi","name":"a"}],)"
    R"("temperature":0.5,"top_p":0.9,"top_k":20,"max_tokens":7,"stop":["END","\n"],"n":2,"seed":-1,"stream":true,)"
    R"("stream_options":{"include_usage":true},"logit_bias":{"5":-100,"7":1.5},"logprobs":true,"top_logprobs":3})",
    R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"\ud83d\ude00"}]},)"
    R"({"role":"assistant","content":"b"}],"think_type":"enShort","chat_template_kwargs":{"enable_thinking":true},)"
    R"("session_id":"a:1","from_version":3,"expected_version":4,"durability":"power","reasoning_format":"raw"})",
    R"({"contents":["User: x\n\nAssistant:","y"],"stop_tokens":[0,"\nUser:",261],"alpha_presence":1,"alpha_frequency":0.2,)"
    R"("alpha_decay":0.996,"chunk_size":8,"pad_zero":true,"noise":1.5,"enable_think":true,"password":"secret"})",
    R"({"contents":["x"],"session_id":"tree","dialogue_idx":2,"store":false,"use_prefix_cache":false})",
    R"({"input_prefix":"a","input_suffix":"b","prompt":"c","n_predict":3,"un\r\nknown":1})",
    R"({"prefix":["a","b"],"suffix":["c","d"],"max_tokens":3})",
    R"({"source_lang":"auto","target_lang":"zh-CN","text_list":["a\n\nb","","语"],"placeholders":null})",
    R"({"prompt":["x",[1,2,3]],"echo":true,"best_of":3,"suffix":null,"logprobs":5,"ignore_eos":true,"min_p":0.1})",
    R"({"prompt":[[1,2],[3]],"presence_penalty":-2,"frequency_penalty":2,"state_name":"poet","mrss_gatingweight":[1,2]})",
    R"({"messages":[{"role":"Rag","content":"R","raw":true},{"role":"user","content":"x"}],"max_tokens":"7","stream":"True",)"
    R"("presystem":"true","params":{"temperature":"2","user_name":"Bob","stop":"END"},"sampler":{"type":"Nucleus"}})",
    R"({"messages":[{"role":"user","content":null}],"names":{"User":"Bob"},"bias":{"5":2},"state":"poet","template":null})",
    R"({"input":["a","b"],"choices":["c","d"],"calibrate":true,"state":"00000000-0000-0000-0000-000000000000"})",
    R"({"messages":[],"contents":["x"],"system":"S","enable_tool_calls":true,"tool_call_parser":"tag","tools":[]})",
    R"({"input":"x","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]},{"type":"web_search"}],)"
    R"("tool_choice":{"type":"function","namespace":"n","name":"f"}})",
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_request_corpus FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const char* body : bodies) std::ofstream(folder / (std::to_string(number++) + ".json")) << body;
  return 0;
}
