// The official JSON Schema test suite, drafts 7 and 2020-12: a schema that is compiled accepts all of its valid
// instances, as compact and as spaced JSON, and none of the invalid ones; a schema that is refused says why. The
// numbers of both are printed and must not fall. Formats are asserted in the folder of formats, and annotations in
// format.json.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "grammar/schema/json_tree.hpp"
#include "protocol/json/json_writer.hpp"
#include "tests/grammar/accepts.hpp"
#include "tests/grammar/json_texts.hpp"
#include "tests/support/oracle.hpp"

namespace skein::grammar {
namespace {

std::filesystem::path suite() {
  return std::filesystem::path(SKEIN_SOURCE_DIR).parent_path() / "shared" / "json-schema-test-suite" / "tests";
}

boost::test_tools::assertion_result have_suite(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result answer(std::filesystem::is_directory(suite()));
  answer.message() << "no folder " << suite().string();
  return answer;
}

/// The JSON text of a value, with its numbers as they were written.
void write(const json_tree& tree, std::uint32_t at, protocol::json_writer& out) {
  const auto& value = tree[at];
  switch (value.kind) {
    case json_kind::null: out.null(); return;
    case json_kind::truth: out.value(true); return;
    case json_kind::falsehood: out.value(false); return;
    case json_kind::number: out.json(value.text); return;
    case json_kind::string: out.value(value.text); return;
    case json_kind::array:
      out.begin_array();
      for (const auto child : value.children) write(tree, child, out);
      out.end_array();
      return;
    case json_kind::object:
      out.begin_object();
      for (const auto child : value.children) {
        out.key(tree[child].key);
        write(tree, child, out);
      }
      out.end_object();
  }
}

std::string text_of(const json_tree& tree, std::uint32_t at) {
  std::string text;
  protocol::json_writer out(text);
  write(tree, at, out);
  return text;
}

json_tree read(const std::filesystem::path& file) { return parse_json_tree(test::content_of(file), limits{}).value(); }

struct tally {
  std::size_t supported = 0, refused = 0, wrong = 0;
  std::map<std::string, std::size_t> reasons;
};

void run_group(const json_tree& file_tree, std::uint32_t group, const options& how, const std::string& file,
               tally& into) {
  const auto schema = text_of(file_tree, file_tree.member(group, "schema"));
  const std::string name = file + ": " + file_tree[file_tree.member(group, "description")].text;
  const auto& tests = file_tree[file_tree.member(group, "tests")].children;
  const auto is_valid = [&](std::uint32_t test) {
    return file_tree.is(file_tree.member(test, "valid"), json_kind::truth);
  };
  const auto compiled = grammar::from_json_schema(schema, how);
  if (!compiled) {
    ++into.refused;
    const auto& why = compiled.error();
    // A schema that no value satisfies is refused, too; then no instance may be valid.
    const bool any_valid = std::ranges::any_of(tests, is_valid);
    const bool empty = why.message == "no value satisfies the schema";
    BOOST_TEST((!empty || !any_valid), name);
    ++into.reasons[empty ? "(no value)" : why.field];
    if (std::getenv("SKEIN_SUITE_VERBOSE")) std::cout << name << ": " << why.message << "\n";
    return;
  }
  ++into.supported;
  bool right = true;
  for (const auto test : tests) {
    const std::string text = text_of(file_tree, file_tree.member(test, "data"));
    const bool valid = is_valid(test);
    for (const auto& form : {text, test::spaced(text)}) {
      if (test::accepts(*compiled, form) == valid) continue;
      right = false;
      BOOST_ERROR(name << ": " << form << " should be " << (valid ? "valid" : "invalid") << " for " << schema);
      break;
    }
  }
  if (!right) ++into.wrong;
}

tally run_folder(const std::string& folder, dialect rules) {
  tally counted;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(suite() / folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::ranges::sort(files);
  for (const auto& file : files) {
    options how;
    how.otherwise = rules;
    if (file.parent_path().filename() == "format") how.formats = format_rule::asserted;
    if (file.filename() == "format-assertion.json") how.formats = format_rule::asserted;
    if (file.filename() == "format.json") how.formats = format_rule::annotation;
    const auto tree = read(file);
    for (const auto group : tree[0].children)
      run_group(tree, group, how, std::filesystem::relative(file, suite()).string(), counted);
  }
  std::cout << folder << ": " << counted.supported << " schemas supported, " << counted.refused << " refused, "
            << counted.wrong << " wrong\n";
  for (const auto& [keyword, count] : counted.reasons) std::cout << "  " << keyword << " " << count << "\n";
  return counted;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(schema_suite_test)

BOOST_AUTO_TEST_CASE(draft7, *boost::unit_test::precondition(have_suite)) {
  const auto counted = run_folder("draft7", dialect::draft7);
  BOOST_TEST(counted.wrong == 0u);
  BOOST_TEST(counted.supported >= 283u);
}

BOOST_AUTO_TEST_CASE(draft2020_12, *boost::unit_test::precondition(have_suite)) {
  const auto counted = run_folder("draft2020-12", dialect::draft2020);
  BOOST_TEST(counted.wrong == 0u);
  BOOST_TEST(counted.supported >= 395u);
}

/// Without knowing the draft, and with the default rule for formats. Then keywords beside $ref count, as they do since
/// 2019-09, and no text is accepted that any draft calls invalid.
BOOST_AUTO_TEST_CASE(defaults, *boost::unit_test::precondition(have_suite)) {
  for (const char* const folder : {"draft7", "draft2020-12"}) {
    tally counted;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(suite() / folder)) {
      if (entry.path().extension() != ".json") continue;
      const auto tree = read(entry.path());
      for (const auto group : tree[0].children) {
        const auto& name = tree[tree.member(group, "description")].text;
        if (std::string_view(folder) == "draft7" && name == "ref overrides any sibling keywords") continue;
        run_group(tree, group, {}, std::filesystem::relative(entry.path(), suite()).string(), counted);
      }
    }
    std::cout << folder << " by default: " << counted.supported << " supported, " << counted.refused << " refused, "
              << counted.wrong << " wrong\n";
    BOOST_TEST(counted.wrong == 0u);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::grammar
