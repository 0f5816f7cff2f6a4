// The cost of a turn and of a state on a disk: session_storage_bench [FOLDER]
// A turn of 200 + 200 tokens is committed at each level of durability; a state of the size of a 7.2B model (random
// floats, 34.6 MB) is written and read, compared with plain files of the same bytes on the same disk in the same run.
// Before "cold" reads, posix_fadvise drops the file's pages from the page cache. Median, fastest and slowest of several
// runs.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "storage/database/database_impl.hpp"
#include "storage/sessions/session_store.hpp"
#include "storage/states/state_record.hpp"
#include "storage/states/state_store.hpp"

namespace {

using namespace skein;
using namespace skein::storage;

struct figures {
  double median = 0, fastest = 0, slowest = 0;  // milliseconds
};

figures timed(int runs, const std::function<void(int)>& work, const std::function<void(int)>& before = {}) {
  std::vector<double> ms;
  for (int i = 0; i < runs; ++i) {
    if (before) before(i);
    const auto start = std::chrono::steady_clock::now();
    work(i);
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::sort(ms);
  return {ms[ms.size() / 2], ms.front(), ms.back()};
}

void report(const char* what, const figures& f, double bytes = 0) {
  std::printf("| %-58s | %9.3f | %9.3f | %9.3f |", what, f.median, f.fastest, f.slowest);
  if (bytes > 0)
    std::printf(" %7.0f MB/s |", bytes / f.median / 1e3);
  else
    std::printf(" %12s |", "");
  std::printf("\n");
}

std::uint64_t log_bytes(const std::filesystem::path& folder) {
  std::uint64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().extension() == ".log") bytes += file.file_size();
  return bytes;
}

void forget_pages(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  check(fd >= 0);
  ::fsync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

void forget_all_pages(const std::filesystem::path& folder) {
  for (const auto& file : std::filesystem::directory_iterator(folder)) forget_pages(file.path());
}

void write_plainly(const std::filesystem::path& path, std::string_view bytes, bool sync) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  check(fd >= 0);
  check(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  if (sync) check(::fsync(fd) == 0);
  ::close(fd);
}

void read_plainly(const std::filesystem::path& path, std::vector<char>& into) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  check(fd >= 0);
  for (std::size_t at = 0; at < into.size();) {
    const ssize_t got = ::read(fd, into.data() + at, into.size() - at);
    check(got > 0);
    at += static_cast<std::size_t>(got);
  }
  ::close(fd);
}

version_record turn(version_id id, std::mt19937& random) {
  version_record v;
  v.id = id;
  v.parent = id - 1;
  v.prompt_tokens = 200;
  for (int i = 0; i < 400; ++i) v.tokens.push_back(static_cast<token_id>(random() % 65536));
  v.total_tokens = 400ull * id;
  v.text.assign(1800, 'x');  // 4.5 bytes per token
  std::ranges::generate(v.text, [&] { return static_cast<char>('a' + random() % 26); });
  v.prompt_bytes = 900;
  v.messages = {{"user", v.text.substr(0, 880)}};
  v.answer = v.text.substr(900);
  v.finish_reason = "stop";
  v.template_name = "chat";
  v.sampling = R"({"temperature":1,"top_p":0.6,"top_k":20,"presence_penalty":1,"frequency_penalty":0.1})";
  return v;
}

void measure_turns(const std::shared_ptr<database>& db, const std::filesystem::path& folder) {
  std::mt19937 random(1);
  session_store store(db);
  session_record session;
  session.uid = store.new_uid().value();
  session.key.id = "session";
  session.model_identity = std::string(32, 'm');
  std::vector<version_record> turns;
  for (version_id id = 1; id <= 1200; ++id) turns.push_back(turn(id, random));
  version_id next = 0;
  const auto commit = [&](bool sync) {
    const auto& v = turns[next++];
    session.head = session.last_version = session.versions = v.id;
    session.total_tokens = v.total_tokens;
    check(store.commit(session, {&v, 1}, sync).has_value());
  };
  const auto before = log_bytes(folder);
  const auto process = timed(1000, [&](int) { commit(false); });
  std::printf("bytes of a turn in the log: %.0f\n\n", static_cast<double>(log_bytes(folder) - before) / 1000);
  std::printf("| %-58s | %9s | %9s | %9s | %12s |\n|---|---|---|---|---|\n", "what", "median ms", "fastest", "slowest",
              "");
  report("commit a turn, survives a process crash", process);
  report("commit a turn, survives a power failure", timed(200, [&](int) { commit(true); }));
}

void measure_states(const std::shared_ptr<database>& db, const std::filesystem::path& folder,
                    const std::filesystem::path& plain) {
  const model::state_layout layout{.layers = 32, .embd = 4096, .heads = 64, .head_size = 64};
  std::mt19937 random(2);
  auto state = model::state_of(layout, std::vector<float>(layout.floats()));
  std::ranges::generate(model::floats_in(state), [&] { return static_cast<float>(random()) * 0x1p-32f - 0.5f; });
  state_store states(db, layout, "model", dtype::f32);
  const auto bytes = static_cast<double>(states.record_bytes("model"));
  const std::string_view as_bytes(reinterpret_cast<const char*>(state.bytes.data()), state.bytes.size());
  constexpr int runs = 15;
  std::uint64_t number = 0;
  const auto label = [&] { return state_label{"model", default_tenant, {1, ++number}, 1}; };

  std::vector<std::byte> copy(state.bytes.size());
  report("memcpy of a state", timed(runs, [&](int) { std::ranges::copy(state.bytes, copy.begin()); }), bytes);
  std::string record;
  report("encode_state", timed(runs, [&](int) { record = encode_state(label(), state, dtype::f32); }), bytes);
  report("decode_state", timed(runs, [&](int) { check(decode_state(record, layout, "model").has_value()); }), bytes);
  report("encode_state, fp16", timed(runs, [&](int) { record = encode_state(label(), state, dtype::f16); }), bytes / 2);
  report("decode_state, fp16", timed(runs, [&](int) { check(decode_state(record, layout, "model").has_value()); }),
         bytes / 2);

  report("plain write", timed(runs, [&](int) { write_plainly(plain, as_bytes, false); }), bytes);
  report("plain write and fsync", timed(runs, [&](int) { write_plainly(plain, as_bytes, true); }), bytes);
  report("state_store::put (in its blob file, synced)",
         timed(runs, [&](int) { check(states.put(label(), state).has_value()); }), bytes);
  std::string through_log;
  report("the same bytes through the log",
         timed(runs,
               [&](int) {
                 encode_state(label(), state, dtype::f32, through_log);
                 check(db->internals()
                           .write(safety::logged, [&](change_list& c) { c.put(family::states, "x", through_log); })
                           .has_value());
               }),
         bytes);
  report("and then flushed", timed(1, [&](int) { check(db->flush().has_value()); }));

  std::vector<char> read(as_bytes.size());
  report("plain read, cold",
         timed(
             runs, [&](int) { read_plainly(plain, read); }, [&](int) { forget_pages(plain); }),
         bytes);
  report("plain read into fresh memory, cold",
         timed(
             runs,
             [&](int) {
               std::vector<char> fresh(as_bytes.size());
               read_plainly(plain, fresh);
             },
             [&](int) { forget_pages(plain); }),
         bytes);
  report("state_store::get, cold",
         timed(
             runs,
             [&](int i) {
               check(states.get({1, 31 + static_cast<std::uint64_t>(i)}).value().has_value());
             },
             [&](int) { forget_all_pages(folder); }),
         bytes);
  report("plain read, warm", timed(runs, [&](int) { read_plainly(plain, read); }), bytes);
  report("state_store::get, warm", timed(runs, [&](int) { check(states.get({1, 31}).value().has_value()); }), bytes);
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path folder =
      argc > 1 ? argv[1] : std::filesystem::temp_directory_path() / ("session-bench-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const auto files = folder / "db";
  {
    const auto db = database::open({.directory = files});
    check(db.has_value());
    measure_turns(*db, files);
    measure_states(*db, files, folder / "plain");
  }
  std::filesystem::remove_all(folder);
  return 0;
}
