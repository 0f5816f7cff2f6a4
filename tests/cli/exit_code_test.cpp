// Shows how the program ends for each kind of trouble, and that it says so on stderr; by running the built program.
#include "app/exit_code.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/sanitizer.hpp"
#include "tests/cli/run_skein.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using test::run_skein;

namespace {

std::string write(const test::temporary_folder& folder, const std::string& name, const std::string& text) {
  const auto path = folder.path() / name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

/// Expects an exit code and a single line of stderr that begins with the program's name and holds `needle`.
void expect(const test::outcome& ended, int code, const std::string& needle) {
  BOOST_TEST(ended.exit_code == code);
  BOOST_TEST(ended.out == "");
  BOOST_TEST(std::count(ended.err.begin(), ended.err.end(), '\n') == 1);
  BOOST_TEST(ended.err.starts_with("skein: "), ended.err);
  BOOST_TEST(ended.err.find(needle) != std::string::npos, ended.err << " lacks " << needle);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_kind_of_error_has_a_code_of_sysexits) {
  BOOST_TEST(static_cast<int>(cli::exit_code_of(error_kind::invalid_argument)) == 64);
  BOOST_TEST(static_cast<int>(cli::exit_code_of(error_kind::bad_file)) == 65);
  BOOST_TEST(static_cast<int>(cli::exit_code_of(error_kind::missing_file)) == 66);
  BOOST_TEST(static_cast<int>(cli::exit_code_of(error_kind::unavailable)) == 69);
  BOOST_TEST(static_cast<int>(cli::exit_code_of(error_kind::internal)) == 70);
  BOOST_TEST(static_cast<int>(cli::exit_code_of(error_kind::in_use)) == 75);
  BOOST_TEST(static_cast<int>(cli::exit_code_of(error_kind::io)) == 74);
  BOOST_TEST(static_cast<int>(cli::exit_code_of(error_kind::overloaded)) == 75);
  BOOST_TEST(static_cast<int>(cli::exit_code_of(error_kind::forbidden)) == 77);
  BOOST_TEST(static_cast<int>(cli::exit_code_of(error_kind::bad_config)) == 78);
}

BOOST_AUTO_TEST_CASE(usage) {
  expect(run_skein({}), 64, "A subcommand is required. See skein --help");
  expect(run_skein({"keys", "list"}), 64, "--keys-file is required. See skein keys list --help");
  expect(run_skein({"serve", "--bogus"}), 64, "--bogus");
  expect(run_skein({"serve", "--port", "high"}), 64, "server.port");
  expect(run_skein({"serve", "--set", "server.prot=1"}), 64, "server.port");
  expect(run_skein({"tokenize", "--vocab", "bytes", "--ids"}, "1,x"), 64, "\"x\"");
  expect(run_skein({"tokenize", "--vocab", "bytes", "--ids"}, "256"), 64, "256");
  expect(run_skein({"bench", "engine", "--random", "3b"}), 64, "random: 3b is not a released size; accepted: 0.1b, ");
  expect(run_skein({"bench", "engine"}), 64, "model: missing; bench engine needs --model PATH or --random SIZE");
  expect(run_skein({"bench", "serve", "--num-prompts", "0"}), 64, "--num-prompts");
  expect(run_skein({"bench", "serve", "--url", "https://host"}), 64, "url: must be http://HOST");
}

BOOST_AUTO_TEST_CASE(unusable_files) {
  const test::temporary_folder folder;
  const auto garbage = write(folder, "garbage.pth", std::string(1000, 'x'));
  expect(run_skein({"inspect", garbage}), 65, "garbage.pth");
  expect(run_skein({"generate", "--model", garbage, "--prompt", "a"}), 65, "garbage.pth");
  expect(run_skein({"tokenize", "--vocab", garbage}, "a"), 65, "garbage.pth");
}

BOOST_AUTO_TEST_CASE(the_journal_has_the_reason_as_an_error) {
  const auto first_line = [](const std::string& environment) {
    const std::string script = "sh -c 'export JOURNAL_STREAM=" + environment + "; exec " SKEIN_PROGRAM " serv' 2>&1";
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(script.c_str(), "r"), pclose);
    std::string line;
    for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) line += static_cast<char>(c);
    return line;
  };
  BOOST_TEST(first_line("$(stat -L -c %d:%i /proc/self/fd/2)").starts_with("<3>skein: unknown command"));
  BOOST_TEST(first_line("1:1").starts_with("skein: unknown command"));
}

BOOST_AUTO_TEST_CASE(output_without_a_reader) {
  for (const char* wish : {" serve --dump-config", " --help", " --version"}) {
    const int status = std::system((SKEIN_PROGRAM + std::string(wish) + " > /dev/full 2> /dev/null").c_str());
    BOOST_TEST(WEXITSTATUS(status) == 74, wish);
  }
}

BOOST_AUTO_TEST_CASE(why_a_system_call_failed) {
  expect(run_skein({"keys", "new", "bob", "--keys-file", "/nonexistent/keys"}), 74,
         "cannot write to /nonexistent/keys: No such file or directory");
  const auto nobody = run_skein({"bench", "serve", "--url", "http://127.0.0.1:1", "--num-prompts", "2"});
  BOOST_TEST(nobody.exit_code == 69);
  BOOST_TEST(nobody.err == "skein: no request succeeded: Connection refused\n");
}

// Writing the weights would take minutes.
BOOST_AUTO_TEST_CASE(an_unusable_device_is_refused_before_random_weights_are_written) {
  const test::temporary_folder folder;
  const std::string file = folder.path() / "random.safetensors";
  const auto expect_refusal = [&](const std::string& size, const std::string& device, const std::string& why) {
    expect(run_skein({"bench", "engine", "--random", size, "--random-file", file, "--device", device}), 69, why);
    BOOST_TEST(!std::filesystem::exists(file));
  };
  expect_refusal("13.3b", "cuda:9", "device: cuda:9");
  expect_refusal("v6-14b", "cuda:9", "device: cuda:9");
}

BOOST_AUTO_TEST_CASE(missing_files) {
  expect(run_skein({"inspect", "/nonexistent/m.pth"}), 66, "/nonexistent/m.pth");
  expect(run_skein({"tokenize", "--vocab", "/nonexistent/v.txt"}), 66, "/nonexistent/v.txt");
  const test::temporary_folder empty;
  expect(run_skein({"tokenize"}, "a", {{"SKEIN_DATA_DIR", empty.path()}}), 66, "--vocab");
  for (const std::string flag :
       {"--config", "--password-file", "--keys-file", "--states-dir", "--model-root", "--vocab"})
    expect(run_skein({"serve", "--device", "fake", "--port", "0", "--log-level", "off", flag, "/nonexistent/x"}), 66,
           "/nonexistent/x");
  expect(run_skein({"serve", "--device", "cpu", "--port", "0", "--log-level", "off", "--model", "/nonexistent/x"}), 66,
         "skein: --model: model.path: /nonexistent/x: cannot open: ");
  const auto file = write(empty, "skein.toml", "[model]\npath = \"/nonexistent/x\"\n[engine]\ndevice = \"cpu\"\n");
  for (const char* command : {"serve", "check-config"})
    expect(run_skein({command, "--config", file, "--set", "server.port=0", "--set", "log.level=off"}), 66,
           "skein: " + file + ":2: model.path: /nonexistent/x: cannot open: ");
  expect(run_skein({"serve", "--device", "fake", "--port", "0", "--log-level", "off", "--tls-certificate",
                    "/nonexistent/x", "--tls-key", "/nonexistent/y"}),
         66, "server.tls_certificate: /nonexistent/x");
}

BOOST_AUTO_TEST_CASE(wrong_configuration) {
  const test::temporary_folder folder;
  const auto file = write(folder, "skein.toml", "[server]\nprot = 1\n");
  expect(run_skein({"serve", "--config", file}), 78, "skein.toml:2");
  expect(run_skein({"serve"}, {}, {{"SKEIN_SERVER_PORT", "high"}}), 78, "SKEIN_SERVER_PORT");
  expect(run_skein({"serve"}, {}, {{"SKEIN_CONFIG", file}}), 78, "skein.toml:2");
  expect(run_skein({"serve", "--host", "0.0.0.0"}), 78, "--allow-unauthenticated");
  expect(run_skein({"serve", "--localhost", "0.0.0.0"}), 78, "--allow-unauthenticated");
  expect(run_skein({"check-config", "--config", "/nonexistent.toml"}), 66, "/nonexistent.toml");
}

BOOST_AUTO_TEST_CASE(what_a_server_cannot_begin_with) {
  const test::temporary_folder folder;
  const auto file = write(folder, "file", "");
  const std::vector<std::string> serve{"serve", "--device", "fake", "--port", "0", "--log-level", "off"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), serve.begin(), serve.end());
    return run_skein(more);
  };
  expect(with({"--state-dir", file}), 64, "server.state_dir: " + file + " is not a folder");
  expect(with({"--tls-port", "0"}), 78, "server.tls_port: requires server.tls_certificate");
  expect(with({"--unix-socket", "/tmp/" + std::string(120, 'x')}), 78, "server.unix_socket: is longer than 107 bytes");
  expect(with({"--set", "server.admin_socket=/tmp/" + std::string(120, 'x')}), 78,
         "server.admin_socket: is longer than");
  expect(with({"--host", "here"}), 78, "server.host: \"here\" is neither an IP address nor localhost");
  expect(with({"--tls-certificate", file}), 78, "server.tls_key: is missing");
  expect(with({"--tls-key", file}), 78, "server.tls_key: requires server.tls_certificate");
}

bool is_root(boost::unit_test::test_unit_id) { return ::geteuid() == 0; }

/// By the same program under another user, who may only execute it.
BOOST_AUTO_TEST_CASE(what_is_not_permitted, *boost::unit_test::precondition(is_root)) {
  const test::temporary_folder folder;
  namespace fs = std::filesystem;
  const auto for_all = fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read |
                       fs::perms::others_exec;
  const fs::path program = folder.path() / "skein", empty = folder.path() / "empty", closed = folder.path() / "closed";
  fs::copy_file(SKEIN_PROGRAM, program);
  fs::create_directory(empty);
  fs::create_directories(closed / "sessions");
  for (const auto& path : {folder.path(), program, empty}) fs::permissions(path, for_all);
  fs::permissions(closed, fs::perms::owner_all);
  const auto code = [&](const std::string& words, const std::string& why) {
    const auto told = folder.path() / "told";
    const int status = std::system(("setpriv --reuid=65534 --regid=65534 --clear-groups " + program.string() + ' ' +
                                    words + " 2> " + told.string())
                                       .c_str());
    const std::string text = test::content_of(told);
    BOOST_TEST(text.find(why) != std::string::npos, text);
    return WEXITSTATUS(status);
  };
  const std::string serve = "serve --device fake --port 0 --log-level off --state-dir ";
  BOOST_TEST(code(serve + (empty / "state").string(), "cannot create the directory") == 77);
  BOOST_TEST(code(serve + closed.string(), "looking into " + closed.string()) == 77);
  BOOST_TEST(code("state list --state-dir " + closed.string(), "Permission denied") == 77);

  write(folder, "skein.toml", "");
  fs::permissions(folder.path() / "skein.toml", for_all);
  fs::create_directory(folder.path() / "conf.d");
  fs::permissions(folder.path() / "conf.d", fs::perms::owner_all);
  const std::string check = "check-config --config ";
  BOOST_TEST(code(check + (folder.path() / "skein.toml").string(), "conf.d: cannot be read: Permission denied") == 78);
  fs::remove(folder.path() / "conf.d");
  BOOST_TEST(code(check + (folder.path() / "skein.toml").string() + " --set model.root=" + closed.string(),
                  "model.root: " + closed.string() + " cannot be read: Permission denied") == 64);
  fs::permissions(folder.path() / "skein.toml", fs::perms::owner_read);
  BOOST_TEST(code(check + (folder.path() / "skein.toml").string(), "skein.toml: cannot be opened: Permission denied") ==
             78);
}

BOOST_AUTO_TEST_CASE(check_config_lists_all_faults_each_with_its_key) {
  const test::temporary_folder folder;
  const auto file =
      write(folder, "skein.toml", "[server]\nprot = 1\nport = 70000\n[limit]\nn_max = 1\n[log]\nlevel = 3\n");
  const auto ended = run_skein({"check-config", "--config", file});
  BOOST_TEST(ended.exit_code == 78);
  BOOST_TEST(std::count(ended.err.begin(), ended.err.end(), '\n') == 4);
  for (const char* needle :
       {":2: server.prot: no such key; did you mean server.port?", ":3: server.port: 70000 is out of range",
        ":4: limit: no such key; did you mean limits?", ":7: log.level: must be a string"})
    BOOST_TEST(ended.err.find(needle) != std::string::npos, ended.err << " lacks " << needle);
}

/// Of faults that only a model, a vocabulary or a device can show.
BOOST_AUTO_TEST_CASE(faults_of_files_that_settings_name, *boost::unit_test::precondition(test::have_oracle)) {
  const test::temporary_folder folder;
  const std::string model = "[model]\npath = '" + (test::oracle() / "models/tiny-7v0.pth").string() + "'\n";
  const auto check = [&](const std::string& text) {
    return run_skein({"check-config", "--config", write(folder, "skein.toml", model + text)});
  };
  expect(check("adapters = ['nosuch:1']\n"), 66, "skein.toml:3: model.adapters: nosuch: cannot open: ");
  expect(check("vocab = 'nosuch'\n"), 66, "skein.toml:3: model.vocab: no such vocabulary file: nosuch");
  expect(check("[engine]\nweight_format = 'x'\n"), 78, "skein.toml:4: engine.weight_format: x is not ");
  expect(run_skein({"check-config", "--config", write(folder, "skein.toml", model)}, {},
                   {{"SKEIN_ENGINE_WEIGHT_FORMAT", "x"}}),
         78, "SKEIN_ENGINE_WEIGHT_FORMAT: engine.weight_format: x is not ");
  expect(run_skein({"check-config", "--set", "engine.weight_format=x"}), 64, "--set: engine.weight_format: x is not ");
  expect(check("[engine]\nweight_format = 'ffn.kye=int4'\n"), 78,
         "skein.toml:4: engine.weight_format: ffn.kye=int4 matches no matrix of the model; ");
  const std::string quantised = folder.path() / "int8.safetensors";
  BOOST_REQUIRE(
      run_skein({"convert", test::oracle() / "models/tiny-7v0.pth", quantised, "--dtype", "int8"}).exit_code == 0);
  expect(run_skein({"check-config", "--set", "model.path=" + quantised, "--set", "engine.weight_format=head=int8"}), 64,
         "--set: engine.weight_format: " + quantised + " is quantised already (int8)");
  const auto both = check("vocab = 'nosuch'\n[engine]\nweight_format = 'x'\n");
  BOOST_TEST(both.exit_code == 66);
  BOOST_TEST(std::count(both.err.begin(), both.err.end(), '\n') == 2);
  for (const char* needle : {":3: model.vocab: ", ":5: engine.weight_format: "})
    BOOST_TEST(both.err.find(needle) != std::string::npos, both.err << " lacks " << needle);
}

BOOST_AUTO_TEST_CASE(words_that_are_no_command) {
  expect(run_skein({"serv"}), 64, "unknown command \"serv\"; did you mean serve?");
  expect(run_skein({"gibberish"}), 64, "See skein --help");
  expect(run_skein({"serve", "--prot", "8"}), 64,
         "\"--prot\" was not expected; did you mean --port? See skein serve --help");
  expect(run_skein({"keys", "new", "alice", "bob"}), 64, "\"bob\" was not expected. See skein keys new --help");
  BOOST_TEST(run_skein({"help"}).out == run_skein({"--help"}).out);
  BOOST_TEST(run_skein({"version"}).out == run_skein({"--version"}).out);
}

BOOST_AUTO_TEST_CASE(all_is_well) {
  const auto checked = run_skein({"check-config", "--config", SKEIN_SOURCE_DIR "/config/skein.toml"});
  BOOST_TEST(checked.exit_code == 0);
  BOOST_TEST(checked.err == "");
  const auto version = run_skein({"--version"});
  BOOST_TEST(version.exit_code == 0);
  BOOST_TEST(version.out.starts_with("skein "));
  const auto dumped = run_skein({"serve", "--port", "1234", "--password", "hidden-word", "--dump-config"});
  BOOST_TEST(dumped.exit_code == 0);
  BOOST_TEST(dumped.out.find("port = 1234  # --port") != std::string::npos);
  BOOST_TEST(dumped.out.find("hidden-word") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(no_such_device, *boost::unit_test::precondition(test::have_oracle)) {
  const std::string model = test::oracle() / "models/tiny-7v0.pth";
  const auto with = [&](const std::string& flag, const std::string& value) {
    return run_skein({"generate", "--model", model, flag, value, "--prompt", "a", "--max-tokens", "1"});
  };
  for (const char* device : {"cuda:0", "hip", "cuda:0+1"}) expect(with("--device", device), 69, device);
  for (const char* device : {"gpu", "cpu:0", "", "cuda:", "cuda:x", "cuda:0+", "+1", "cpu,cpu", "cuda:99999999999"})
    expect(with("--device", device), 64, "is not supported; accepted: auto, cpu, cuda, ");
  expect(with("--dtype", "int3"), 64, "int3");
  expect(with("--weight-format", "head=int8,ffn.kye=int4"), 64, "ffn.kye=int4 matches no matrix of the model; ");
  expect(with("--vocab", "/nonexistent/v.txt"), 66, "/nonexistent/v.txt");
  expect(run_skein({"generate", "--model", model, "--tokens", "256"}), 64, "256");
}

#if !defined(SKEIN_ADDRESS_SANITIZER) && !defined(SKEIN_THREAD_SANITIZER)  // they reserve terabytes of addresses
/// Limits the addresses of the programs that are started, so that the stacks of a thousand threads do not fit.
class few_addresses {
 public:
  few_addresses() {
    getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = std::min<rlim_t>(before_.rlim_max, rlim_t{2} << 30);
    setrlimit(RLIMIT_AS, &limit);
  }
  ~few_addresses() { setrlimit(RLIMIT_AS, &before_); }
  few_addresses(const few_addresses&) = delete;  // restores the limit once
  few_addresses& operator=(const few_addresses&) = delete;

 private:
  rlimit before_{};
};

BOOST_AUTO_TEST_CASE(a_thread_that_cannot_start, *boost::unit_test::precondition(test::have_oracle)) {
  const few_addresses limited;
  const test::temporary_folder folder;
  const auto text = write(folder, "text", "a text");
  const std::vector<std::string> engine{
      "--model", test::oracle() / "models/tiny-7v0.pth", "--device", "cpu", "--threads", "1024"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), engine.begin(), engine.end());
    return run_skein(words);
  };
  for (const auto& ended : {with({"score", text}), with({"serve", "--port", "0", "--log-level", "off"})}) {
    expect(ended, 69, "skein: cannot start thread ");
    BOOST_TEST(ended.err.find(" of 1024: Resource temporarily unavailable") != std::string::npos, ended.err);
  }
}
#endif

BOOST_AUTO_TEST_CASE(unwritable_output, *boost::unit_test::precondition(test::have_oracle)) {
  const test::temporary_folder folder;
  const auto ids = write(folder, "ids", "1,2\n");
  const std::string model = test::oracle() / "models/tiny-7v0.pth";
  expect(run_skein({"logits", "--model", model, "--tokens-file", ids, "--out", "/nonexistent/out"}), 74,
         "/nonexistent/out");
}
