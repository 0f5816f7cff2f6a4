// Shows which source of a setting wins, that all faults are found in one go, each with its place and key, and that a
// dump reads back; by loading made-up files, environments and flags.
#include "config/load.hpp"

#include <boost/test/unit_test.hpp>
#include <fstream>

#include "config/dump.hpp"
#include "config/keys.hpp"
#include "config/limits.hpp"
#include "config/rules.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using config::fault_kind;

namespace {

/// A folder for configuration files.
struct files {
  test::temporary_folder folder;

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    const auto path = folder.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  config::loaded load(const std::string& text) const { return config::load({write("skein.toml", text), {}, {}}); }
};

config::loaded with_flag(const std::string& key, const std::string& text) {
  return config::load({{}, {}, {{key, text, "--flag"}}});
}

/// The faults as lines, without the folder of the file.
std::string lines(const config::loaded& merged, const files& in = {}) {
  std::string text;
  for (const auto& fault : merged.faults) text += config::to_string(fault) + '\n';
  const std::string folder = in.folder.path().string() + '/';
  for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder)) text.erase(at, folder.size());
  return text;
}

void expect_only(const config::loaded& merged, fault_kind kind, const std::string& needle) {
  BOOST_TEST_CONTEXT(lines(merged)) {
    BOOST_REQUIRE_EQUAL(merged.faults.size(), 1u);
    BOOST_TEST((merged.faults.front().kind == kind));
    BOOST_TEST(lines(merged).find(needle) != std::string::npos);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_flag_beats_the_environment_beats_conf_d_beats_the_file_beats_the_default) {
  const files in;
  config::sources from;
  const auto port = [&] {
    const auto merged = config::load(from);
    BOOST_TEST(lines(merged) == "");
    const auto found = merged.origins.find("server.port");
    return std::to_string(merged.settings.server.port) + ' ' +
           to_string(found == merged.origins.end() ? config::origin{} : found->second);
  };
  BOOST_TEST(port() == "8000 default");
  from.file = in.write("skein.toml", "[server]\nhost = \"::1\"\nport = 1\n");
  BOOST_TEST(port() == "1 " + from.file.string() + ":3");
  in.write("conf.d/10.toml", "[server]\nport = 2\n");
  in.write("conf.d/20.toml", "server.port = 3\n");
  in.write("conf.d/30.txt", "server.port = 4\n");
  BOOST_TEST(port() == "3 " + (in.folder.path() / "conf.d/20.toml").string() + ":1");
  from.environment = {{"SKEIN_SERVER_PORT", "5"}, {"SKEIN_ORACLE", "x"}, {"PATH", "x"}};
  BOOST_TEST(port() == "5 SKEIN_SERVER_PORT");
  from.flags = {{"server.port", "6", "--port"}};
  BOOST_TEST(port() == "6 --port");
  from.flags.push_back({"server.port", "7", "--set"});
  BOOST_TEST(port() == "7 --set");
}

BOOST_AUTO_TEST_CASE(every_text_that_a_message_lists_is_accepted) {
  const std::string all =
      "auto, fp32, bf16, fp16, int8, int8-32, int8-128, fp8, int4, int4-32, int4-128, nf4, "
      "nf4-32, nf4-128";
  expect_only(with_flag("engine.dtype", "int7"), fault_kind::bad_value, "engine.dtype: \"int7\" is not one of: " + all);
  std::size_t listed = 0;
  for (const auto& key : config::keys())
    for (const auto& word : key.words()) {
      BOOST_TEST(!key.objection(word), key.path << " " << word);
      BOOST_TEST(key.objection(word + "x").has_value(), key.path << " " << word << "x");
      ++listed;
    }
  BOOST_TEST(listed > 30u);
}

BOOST_AUTO_TEST_CASE(every_type_of_value_comes_from_a_file_and_from_text) {
  const files in;
  const auto from_file = in.load(
      "[server]\njson_password = false\ncors_origins = [\"http://a\", \"http://b\"]\n"
      "[limits]\nbody_bytes_max = 2048\n[models.\"a.b\"]\ntop_p = 1\ntemperature = 0.5\ntop_k = -1\n");
  BOOST_TEST(lines(from_file) == "");
  const config::loaded from_text = config::load({{},
                                                 {{"SKEIN_SERVER_JSON_PASSWORD", "false"},
                                                  {"SKEIN_SERVER_CORS_ORIGINS", "http://a,http://b"},
                                                  {"SKEIN_LIMITS_BODY_BYTES_MAX", "2048"}},
                                                 {{"models.a.b.top_p", "1", "--set"},
                                                  {"models.\"a.b\".temperature", "0.5", "--set"},
                                                  {"models.a.b.top_k", "-1", "--set"}}});
  BOOST_TEST(lines(from_text) == "");
  for (const auto* merged : {&from_file, &from_text}) {
    const auto& c = merged->settings;
    BOOST_TEST(!c.server.json_password);
    BOOST_TEST(c.server.cors_origins == (std::vector<std::string>{"http://a", "http://b"}),
               boost::test_tools::per_element());
    BOOST_TEST(c.limits.body_bytes_max == 2048u);
    BOOST_TEST(c.models.at("a.b").top_p == 1.0);
    BOOST_TEST(c.models.at("a.b").temperature == 0.5);
    BOOST_TEST(c.models.at("a.b").top_k == -1);
    BOOST_TEST(c.models.at("a.b").max_tokens == 4096u);
  }
}

BOOST_AUTO_TEST_CASE(all_faults_come_at_once_with_place_and_key) {
  const files in;
  config::sources from;
  from.file = in.write("skein.toml", "[server]\nprot = 1\nport = \"x\"\n[servr]\n[models.m]\ntop_q = 1\ntop_p = 2\n");
  in.write("conf.d/a.toml", "[log]\nlevel = \"loud\"\n");
  from.environment = {{"SKEIN_SERVER_PROT", "1"}, {"SKEIN_LIMITS_N_MAX", "none"}};
  from.flags = {{"engine.slot", "1", "--set"}, {"drain.grace_ms", "-1", "--set"}};
  BOOST_TEST(lines(config::load(from), in) ==
             "skein.toml:2: server.prot: no such key; did you mean server.port?\n"
             "skein.toml:3: server.port: must be an integer, not a string\n"
             "skein.toml:4: servr: no such key; did you mean server?\n"
             "skein.toml:6: models.\"m\".top_q: no such key; did you mean models.\"m\".top_p?\n"
             "skein.toml:7: models.\"m\".top_p: 2 is out of range (0 .. 1)\n"
             "conf.d/a.toml:2: log.level: \"loud\" is not one of: debug, info, warning, error, off\n"
             "SKEIN_SERVER_PROT: no such key; did you mean SKEIN_SERVER_PORT?\n"
             "SKEIN_LIMITS_N_MAX: limits.n_max: \"none\" is not an integer\n"
             "--set: engine.slot: no such key; did you mean engine.slots?\n"
             "--set: drain.grace_ms: -1 is out of range (0 .. 2592000000)\n");
}

BOOST_AUTO_TEST_CASE(files_that_cannot_be_read) {
  const files in;
  expect_only(config::load({in.folder.path() / "none.toml", {}, {}}), fault_kind::missing, "does not exist");
  expect_only(config::load({in.folder.path(), {}, {}}), fault_kind::unreadable, "folder");
  expect_only(in.load("[server\n"), fault_kind::unreadable, "skein.toml:1: is not TOML: ");
  expect_only(in.load("[model]\npath = /srv/x.pth\n"), fault_kind::unreadable, "; texts must be in quotes");
  expect_only(in.load("a = 1\na = 2\n"), fault_kind::unreadable, "skein.toml:2: ");
  expect_only(in.load(std::string((1u << 20) + 1, '#')), fault_kind::unreadable, "larger");
}

/// conf.d as a file stands for one that the server's user may not list.
BOOST_AUTO_TEST_CASE(settings_beside_the_file_are_not_skipped_silently) {
  const files in;
  const auto main = in.write("skein.toml", "");
  in.write("conf.d", "");
  expect_only(config::load({main, {}, {}}), fault_kind::unreadable, "conf.d: cannot be read: ");
}

BOOST_AUTO_TEST_CASE(values_that_are_refused) {
  const files in;
  for (const char* text :
       {"server = 1", "[server]\nport = 1.5", "[server]\nport = true", "[server]\nport = 1979-05-27",
        "[server]\ncors_origins = \"*\"", "[server]\ncors_origins = [1]", "[server]\ncors_origins = [\"\"]",
        "[server.port]\nx = 1", "models = 1", "[models]\nm = 1", "[server]\nport = -1",
        "[server]\nport = 9223372036854775807", "[models.m]\ntop_p = nan", "[server]\nhost = \"a\\u0000b\"",
        "[engine]\ndevice = \"hip:\"", "[engine]\ndevice = \"cpu,\"", "[engine]\ndevice = \"cuda:0+\"",
        "[engine]\ndevice = \"\""}) {
    const auto merged = in.load(text);
    BOOST_TEST(merged.faults.size() == 1u, text << " gives " << lines(merged));
  }
  for (const char* device : {"auto", "cpu", "cuda", "cuda:0", "cuda:0,cuda:1", "cuda,cuda:1", "cpu,cpu,cpu", "cuda:0+1",
                             "hip", "hip:12", "hip:0,hip:1", "hip,hip:1"})
    BOOST_TEST(lines(with_flag("engine.device", device)) == "");
  std::string too_many = "cpu";
  for (std::uint32_t i = 0; i < config::limits::devices_max; ++i) too_many += ",cpu";
  for (const char* device : {"cpu,cuda:0", "cuda:0,hip:0", "auto,auto", "auto,cpu", ",cpu", "cpu,,cpu", "hip,cuda:1",
                             "cpu:0", too_many.c_str()})
    BOOST_TEST(with_flag("engine.device", device).faults.size() == 1u, device);
  expect_only(in.load("engine = 5"), fault_kind::bad_value, "skein.toml:1: engine: must be a table");
  expect_only(in.load("[[log]]\nlevel = \"info\""), fault_kind::bad_value, "skein.toml:1: log: must be a table");
  const auto file = in.write("file", "").string();
  for (const std::string& path : {file, file + "/below"})
    expect_only(in.load("[server]\nstate_dir = '" + path + "'"), fault_kind::bad_value,
                "skein.toml:2: server.state_dir: " + path + " is ");
  BOOST_TEST(lines(in.load("[server]\nstate_dir = '" + file + "-that-comes'")) == "");
  expect_only(with_flag("server.port", ""), fault_kind::bad_value, "is not an integer");
  expect_only(with_flag("server.json_password", "yes"), fault_kind::bad_value, "is not a boolean");
  expect_only(with_flag("models.top_p", "1"), fault_kind::unknown_key, "models.top_p");
  expect_only(with_flag("", "1"), fault_kind::unknown_key, "no such key");
}

BOOST_AUTO_TEST_CASE(settings_that_contradict_each_other) {
  const files in;
  expect_only(in.load("[server]\nhost = \"0.0.0.0\"\n"), fault_kind::conflict, "server.allow_unauthenticated");
  expect_only(in.load("[server]\nhost = \"::\"\n"), fault_kind::conflict, "skein.toml:2: server.host");
  BOOST_TEST(lines(in.load("[server]\nhost = \"0.0.0.0\"\npassword = \"x\"\n")) == "");
  BOOST_TEST(lines(in.load("[server]\nhost = \"0.0.0.0\"\nallow_unauthenticated = true\n")) == "");
  expect_only(in.load("[server]\ntrusted_proxies = [\"proxy\"]\n"), fault_kind::conflict, "\"proxy\"");
  expect_only(with_flag("server.tls_port", "8443"), fault_kind::conflict, "--flag: server.tls_port: requires ");
  BOOST_TEST(lines(in.load("[server]\ntls_port = 8443\n")) == "");  // for a certificate that a reload names
  expect_only(in.load("[limits]\nbody_bytes_max = 100000000\n"), fault_kind::conflict, "limits.body_bytes_max");
  expect_only(in.load("[limits]\nconnections_max = 10\n"), fault_kind::conflict, "limits.connections_max");
  expect_only(in.load("[limits]\nprompts_max = 100\n"), fault_kind::conflict, "limits.n_max");
  expect_only(in.load("[queue]\ntotal_timeout_ms = 10\n"), fault_kind::conflict, "queue.total_timeout_ms");
  expect_only(in.load("[engine]\nmax_tick_tokens = 10\nprefill_chunk_tokens = 11\n"), fault_kind::conflict,
              "engine.max_tick_tokens");
}

BOOST_AUTO_TEST_CASE(an_address_may_be_in_brackets) {
  const files in;
  const auto bracketed = in.load("[server]\nhost = \"[::1]\"\n");
  BOOST_TEST(bracketed.faults.empty());
  BOOST_TEST(bracketed.settings.server.host == "::1");
  expect_only(in.load("[server]\nhost = \"[127.0.0.1]\"\n"), fault_kind::conflict, "neither an IP address");
}

BOOST_AUTO_TEST_CASE(loopback_is_this_machine_only) {
  for (const char* host : {"localhost", "127.0.0.1", "127.1.2.3", "::1"}) BOOST_TEST(config::is_loopback(host), host);
  for (const char* host : {"0.0.0.0", "::", "192.168.0.1", "128.0.0.1", "127.0.0.1.example.org", ""})
    BOOST_TEST(!config::is_loopback(host), host);
}

BOOST_AUTO_TEST_CASE(a_password_comes_from_the_first_line_of_its_file) {
  const files in;
  const auto secret = in.write("secret", "long word\r\nrest\n").string();
  const auto merged = in.load("[server]\nhost = \"0.0.0.0\"\npassword_file = '" + secret + "'\n");
  BOOST_TEST(lines(merged) == "");
  BOOST_TEST(merged.settings.server.password == "long word");
  BOOST_TEST(lines(in.load("[server]\npassword = \"x\"\npassword_file = '" + secret + "'\n")).find("server.password") !=
             std::string::npos);
  expect_only(in.load("[server]\npassword_file = \"/nonexistent\"\n"), fault_kind::missing, "does not exist");
  for (const std::string key : {"states_dir", "root"})
    expect_only(in.load("[model]\n" + key + " = \"/nonexistent\"\n"), fault_kind::missing,
                "skein.toml:2: model." + key + ": /nonexistent does not exist");
  expect_only(in.load("[model]\nroot = '" + secret + "'\n"), fault_kind::bad_value, secret + " is not a folder");
  const auto empty = in.write("empty", "\n").string();
  expect_only(in.load("[server]\npassword_file = '" + empty + "'\n"), fault_kind::bad_value, "empty line");
}

BOOST_AUTO_TEST_CASE(an_empty_flag_does_not_choose_the_demo_model) {
  expect_only(config::load({{}, {}, {{"model.path", "", "--model"}}}), fault_kind::bad_value,
              "--model: model.path: must not be empty");
  BOOST_TEST(lines(config::load({{}, {{"SKEIN_MODEL_PATH", ""}}, {}})) == "");
  BOOST_TEST(lines(config::load({{}, {}, {{"model.path", "", "--set"}}})) == "");
}

BOOST_AUTO_TEST_CASE(an_empty_secret_outside_a_file_does_not_open_the_server) {
  for (const std::string key : {"server.password", "server.password_file", "server.keys_file"}) {
    expect_only(config::load({{}, {}, {{key, "", "--flag"}}}), fault_kind::bad_value, key + ": must not be empty");
    const std::string variable = key == "server.password"        ? "SKEIN_SERVER_PASSWORD"
                                 : key == "server.password_file" ? "SKEIN_SERVER_PASSWORD_FILE"
                                                                 : "SKEIN_SERVER_KEYS_FILE";
    expect_only(config::load({{}, {{variable, ""}}, {}}), fault_kind::bad_value, "must not be empty");
    const config::assignment open{"server.allow_unauthenticated", "true", "--allow-unauthenticated"};
    BOOST_TEST(lines(config::load({{}, {{variable, ""}}, {open}})) == "");
  }
  const files in;
  BOOST_TEST(lines(in.load("[server]\npassword = \"\"\nkeys_file = \"\"\n")) == "");  // as in the shipped file
}

BOOST_AUTO_TEST_CASE(a_list_outside_a_file_has_commas_or_the_form_of_the_file) {
  const auto origins_of = [](const std::string& text) {
    return config::load({{}, {}, {{"server.cors_origins", text, "--set"}}});
  };
  const std::vector<std::string> two{"https://a.example", "https://b.example"};
  BOOST_TEST(origins_of("https://a.example,https://b.example").settings.server.cors_origins == two);
  BOOST_TEST(origins_of("[\"https://a.example\", 'https://b.example']").settings.server.cors_origins == two);
  for (const char* wrong : {"[https://a.example]", "[\"a\"", "[1]", "[\"a\"]\nx = 1", "[[\"a\"]]"})
    BOOST_TEST(origins_of(wrong).faults.size() == 1u, wrong);
}

BOOST_AUTO_TEST_CASE(a_dump_reads_back_and_hides_secrets) {
  const files in;
  const auto merged = in.load(
      "[server]\nport = 1\npassword = \"hidden-word\"\ncors_origins = [\"a\\\"b\\\\\"]\n"
      "[models.\"my.model\"]\nno_think_opening = \"tab\\t line\\n\"\nalpha_decay = 0.1\n");
  const std::string text = config::dump(merged);
  BOOST_TEST(text.find("hidden-word") == std::string::npos);
  BOOST_TEST(text.find("# password: set, not shown") != std::string::npos);
  BOOST_TEST(text.find("port = 1  # ") != std::string::npos);
  BOOST_TEST(text.find("host = \"127.0.0.1\"  # default") != std::string::npos);
  const auto again = in.load(text);
  BOOST_TEST(lines(again) == "");
  for (const auto& k : config::keys())
    if (!k.secret)
      BOOST_TEST(config::to_toml(k.get(again.settings)) == config::to_toml(k.get(merged.settings)), k.path);
  for (const auto& k : config::model_keys("my.model"))
    BOOST_TEST(config::to_toml(k.get(again.settings)) == config::to_toml(k.get(merged.settings)), k.path);
}
