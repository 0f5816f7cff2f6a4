// Writes one file for each kind of stored record, as storage_records_fuzz reads them: the kind's byte, then the fields.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "storage/records/record_codec.hpp"
#include "storage/sessions/session_file.hpp"
#include "storage/states/state_store.hpp"

namespace {

using namespace skein;
using namespace skein::storage;

version_record version(version_id id, version_id parent, std::uint64_t before) {
  version_record r;
  r.id = id;
  r.parent = parent;
  r.tokens = {1, 200, 70000, 5};
  r.prompt_tokens = 2;
  r.total_tokens = before + r.tokens.size();
  r.text = "User: Hi\n\nAssistant: Hello";
  r.prompt_bytes = 20;
  r.messages = {{"user", "Hi"}, {"system", ""}};
  r.answer = "Hello";
  r.finish_reason = "stop";
  return r;
}

/// Without the envelope.
std::string fields_of(const std::string& record) { return record.substr(8, record.size() - 16); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_storage_corpus FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  const auto write = [&](record_kind kind, const std::string& record, const std::string& name) {
    std::ofstream(folder / name, std::ios::binary) << static_cast<char>(kind) << fields_of(record);
  };
  session_record session;
  session.uid = 1;
  session.key.id = "session";
  session.model_identity = "model";
  session.head = session.last_version = session.versions = 2;
  session.total_tokens = 8;
  const model::state_layout layout{.layers = 2, .embd = 8, .heads = 2, .head_size = 4};
  const auto value = model::state_of(layout, std::vector<float>(layout.floats(), 0.5f));
  const state_label label{"model", default_tenant, {1, 2}, 8};
  const auto state = encode_state(label, value, dtype::f16);
  write(record_kind::session, encode_session(session), "session");
  write(record_kind::version, encode_version(1, version(1, 0, 0)), "version");
  write(record_kind::running, encode_running(1, {version(1, 0, 0)}), "running");
  write(record_kind::state, encode_state(label, value, dtype::f32), "state_fp32");
  write(record_kind::state, state, "state_fp16");
  const model::state_format mixed({.layers = 1, .embd = 4, .channels = 4}, dtype::f16);  // of version 4
  write(record_kind::state, encode_state(label, model::state_of(mixed, std::vector<float>(mixed.floats()))),
        "state_mixed");
  write(record_kind::state_entry, encode_entry({{1, 1}, 100, 5, true, {}, {}, {}}), "state_entry");
  write(record_kind::prefix_entry, encode_entry({{0, 1}, 100, 5, true, "tenant", "tuned", {1, 2, 3}}), "prefix_entry");
  write(record_kind::counter, encode_number(record_kind::counter, 1025), "counter");
  write(record_kind::set_aside, encode_set_aside({"reason", 5, "record"}), "set_aside");
  const session_file file{session, {version(1, 0, 0), version(2, 1, 4)}, {state}};
  write(record_kind::session_file, write_session_file(file, ""), "session_file");
  write(record_kind::session_file, write_session_file(file, "key"), "session_file_signed");
  return 0;
}
