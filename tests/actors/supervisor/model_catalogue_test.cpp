// What clients may have loaded: the files of one folder, wherever a path comes from, and the server's own model.
#include "actors/supervisor/models/model_catalogue.hpp"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/oracle.hpp"

namespace {

using namespace skein;
using supervisor::model_catalogue;
namespace fs = std::filesystem;

struct world {
  world() {
    fs::create_directory(root());
    for (const char* name : {"b.pth", "a.safetensors", "words.txt"}) std::ofstream(root() / name) << "x";
    std::ofstream(folder.path() / "own.pth") << "x";
    std::ofstream(folder.path() / "outside.pth") << "x";
    fs::create_symlink(folder.path() / "outside.pth", root() / "link.pth");
    fs::create_symlink(root() / "b.pth", root() / "alias.pth");
    fs::create_directory(root() / "folder.pth");
    c.model.path = folder.path() / "own";
    c.model.root = root();
  }
  [[nodiscard]] fs::path root() const { return fs::path(folder.path()) / "models"; }
  [[nodiscard]] error_kind refused(const std::string& path) const {
    const auto found = model_catalogue(c).by_path(path);
    BOOST_REQUIRE_MESSAGE(!found, path << " is taken");
    BOOST_TEST(found.error().field == "model_filename");
    return found.error().kind;
  }

  test::temporary_folder folder;
  config::config c;
};

}  // namespace

BOOST_AUTO_TEST_CASE(ids_are_those_of_the_folder_and_of_the_own_model) {
  world w;
  const model_catalogue all(w.c);
  BOOST_TEST(all.own_id() == "own");
  BOOST_TEST((all.ids() == std::vector<std::string>{"a", "alias", "b", "own"}));
  std::ofstream(w.root() / "later.pth") << "x";
  BOOST_TEST(all.ids().size() == 5u);

  w.c.model.root.clear();
  BOOST_TEST((model_catalogue(w.c).ids() == std::vector<std::string>{"own"}));
  w.c.model.root = w.root() / "absent";
  BOOST_TEST((model_catalogue(w.c).ids() == std::vector<std::string>{"own"}));
  w.c.model.name = "mine";
  BOOST_TEST(model_catalogue(w.c).own_id() == "mine");
  w.c.model.name.clear();
  w.c.engine.device = "fake";
  BOOST_TEST(model_catalogue(w.c).own_id() == "fake");
}

BOOST_AUTO_TEST_CASE(folders_of_repositories_are_models) {
  world w;
  const auto add = [&](const std::string& folder, const char* file) {
    fs::create_directories(w.root() / folder);
    std::ofstream(w.root() / folder / file) << "x";
  };
  add("rwkv7-2.9b", "model.safetensors");
  add("sharded", "model.safetensors.index.json");
  add("other", "config.json");
  const model_catalogue all(w.c);
  BOOST_TEST((all.ids() == std::vector<std::string>{"a", "alias", "b", "own", "rwkv7-2.9b", "sharded"}));
  BOOST_TEST(all.by_id("rwkv7-2.9b")->path == w.root() / "rwkv7-2.9b");
  BOOST_TEST(all.by_path("sharded/")->id == "sharded");
  BOOST_TEST((w.refused("other") == error_kind::missing_file));

  std::ofstream(w.root() / "model.safetensors") << "x";  // the root itself is not a model
  for (const std::string& path : {std::string(), std::string("."), w.root().string()})
    BOOST_TEST((w.refused(path) == error_kind::missing_file), "'" << path << "'");

  w.c.model.path = w.root() / "rwkv7-2.9b";
  BOOST_TEST(model_catalogue(w.c).own_id() == "rwkv7-2.9b");
}

BOOST_AUTO_TEST_CASE(an_id_names_a_file) {
  const world w;
  const model_catalogue all(w.c);
  BOOST_TEST(all.by_id("a")->path == w.root() / "a.safetensors");
  BOOST_TEST(!all.by_id("a")->is_own);
  BOOST_TEST(all.by_id("own")->is_own);
  const auto refused = [&](const std::string& id) {
    const auto none = all.by_id(id);
    BOOST_REQUIRE_MESSAGE(!none, id);
    BOOST_TEST(none.error().field == "model");
    return none.error().kind;
  };
  for (const char* unknown : {"", "absent", "words", "words.txt", "folder", "a.safetensors"})
    BOOST_TEST((refused(unknown) == error_kind::missing_file), unknown);
  for (const char* outside : {"link", "link.pth", "../outside", "/etc/passwd"})
    BOOST_TEST((refused(outside) == error_kind::forbidden), outside);
}

BOOST_AUTO_TEST_CASE(files_of_other_programs_have_ids) {
  const world w;
  for (const char* name : {"q8.gguf", "web.st", "both.gguf", "both.safetensors", "cpp.bin"})
    std::ofstream(w.root() / name) << "x";
  const model_catalogue all(w.c);
  BOOST_TEST((all.ids() == std::vector<std::string>{"a", "alias", "b", "both", "own", "q8", "web"}));
  BOOST_TEST(all.by_id("q8")->path == w.root() / "q8.gguf");
  BOOST_TEST(all.by_id("web")->path == w.root() / "web.st");
  BOOST_TEST(all.by_id("both")->path == w.root() / "both.safetensors");
  BOOST_TEST(all.by_path("both.gguf")->path == w.root() / "both.gguf");
  BOOST_TEST(all.by_path("cpp.bin")->id == "cpp");
  BOOST_TEST(!all.by_id("cpp"));
}

BOOST_AUTO_TEST_CASE(a_path_is_judged_by_where_it_leads) {
  const world w;
  const model_catalogue all(w.c);
  for (const std::string path : {"b", "b.pth", "./b.pth", "../models/b.pth", "alias"})
    BOOST_TEST(all.by_path(path)->path == w.root() / "b.pth", path);
  BOOST_TEST(all.by_path(w.root() / "b")->id == "b");
  BOOST_TEST(all.by_path("own")->is_own);
  BOOST_TEST(all.by_path(w.folder.path() / "own.pth")->is_own);

  const std::string outside = w.folder.path() / "outside.pth";
  for (const std::string& path :
       {std::string("/etc/passwd"), std::string("../outside.pth"), outside, std::string("link.pth"),
        std::string("link"), std::string("b\0", 2), std::string("/")})
    BOOST_TEST((w.refused(path) == error_kind::forbidden), path);
  BOOST_TEST((w.refused("absent") == error_kind::missing_file));
  BOOST_TEST((w.refused(w.root() / "absent.pth") == error_kind::missing_file));
}
