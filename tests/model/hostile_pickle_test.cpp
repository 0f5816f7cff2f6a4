// A pickle in a .pth can do nothing but describe tensors; all else is refused with a reason. Each row is a pickle with
// one fault, put into a good archive with one storage of four fp32.
#include <boost/test/unit_test.hpp>

#include "model/files/checkpoint_limits.hpp"
#include "tests/model/checkpoint_builders.hpp"
#include "tests/model/opened.hpp"

namespace skein::test {
namespace {

using namespace pickled;

const std::string four = storage("FloatStorage", "0", 4);
const std::string good_tensor = tensor(four, 0, {2, 2}, {2, 1});
const std::string rebuild = global("torch._utils", "_rebuild_tensor_v2");

std::string pth(const std::string& pickle) { return pth_archive(pickle, {{"0", std::string(16, '\1')}}).file(); }
std::string holding(const std::string& items) { return pth(whole(dict(items))); }
std::string tensor_a(const std::string& value) { return holding(text("a") + value); }
std::string shaped(std::int64_t offset, const std::vector<std::int64_t>& shape,
                   const std::vector<std::int64_t>& stride) {
  return tensor_a(tensor(four, offset, shape, stride));
}
std::string repeated(std::string_view piece, std::size_t count) {
  std::string out;
  out.reserve(piece.size() * count);
  for (std::size_t i = 0; i < count; ++i) out += piece;
  return out;
}
/// Fills a pickle of the largest size with repetitions of a piece.
std::string flood(const std::string& start, std::string_view piece) {
  return pth("\x80\x02" + start + repeated(piece, (model::max_header_bytes - start.size() - 2) / piece.size()));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hostile_pickle)

BOOST_AUTO_TEST_CASE(the_row_without_a_fault_opens) {
  const auto file = opened(tensor_a(good_tensor));
  BOOST_REQUIRE(file);
  BOOST_TEST(file->tensors().size() == 1u);
}

BOOST_AUTO_TEST_CASE(values_that_are_no_tensors_are_skipped) {
  const auto file = opened(holding(text("s") + text("a text") + text("i") + integer(-7) + text("n") + "N" + text("t") +
                                   "\x88" + text("f") + "G" + std::string(8, '\0') + text("l") + "](" + integer(1) +
                                   integer(2) + "e" + integer(3) + "a" + text("d") + dict(integer(1) + integer(2)) +
                                   integer(5) + text("a number as a key") + text("a") + good_tensor));
  BOOST_REQUIRE(file);
  BOOST_TEST(file->tensors().size() == 1u);
  BOOST_TEST((file->find("a") != nullptr));
}

BOOST_AUTO_TEST_CASE(a_state_dict_inside_of_what_was_saved_is_read) {
  const std::string inner = dict(text("a") + good_tensor + text("b") + good_tensor);
  for (const std::string& items :
       {text("state_dict") + inner + text("epoch") + integer(3), text("model") + inner, text("module") + inner,
        text("module") + dict(text("state_dict") + inner), text("state_dict") + inner + text("model") + dict(""),
        text("step") + good_tensor + text("model") + inner}) {
    const auto file = opened(holding(items));
    BOOST_REQUIRE(file);
    BOOST_TEST(file->tensors().size() == 2u);
    BOOST_TEST((file->find("b") != nullptr));
  }
  const auto own = opened(holding(text("a") + good_tensor + text("model") + dict("")));
  BOOST_REQUIRE(own);
  BOOST_TEST((own->find("a") != nullptr));
}

BOOST_AUTO_TEST_CASE(a_dict_that_holds_itself_ends) {
  const auto file = opened(pth(whole("}q" + std::string(1, '\0') + "(" + text("model") + "h" + std::string(1, '\0') +
                                     text("a") + good_tensor + "u")));
  BOOST_REQUIRE(file);
  BOOST_TEST(file->tensors().size() == 1u);
  BOOST_TEST(!opened(holding(text("model") + dict(text("state_dict") + dict("")))).has_value());
}

BOOST_AUTO_TEST_CASE(nothing_is_called) {
  const std::string shell = global("os", "system");
  check_refused({
      {"os.system", pth(whole(shell + tuple({text("true")}) + "R")), "global 'os.system' is refused"},
      {"posix.system as a value", tensor_a(global("posix", "system")), "global 'posix.system' is refused"},
      {"builtins.eval", pth(whole(global("builtins", "eval") + tuple({text("1")}) + "R")),
       "'builtins.eval' is refused"},
      {"torch.load", pth(whole(global("torch", "load") + ")R")), "'torch.load' is refused"},
      {"a lookalike of a storage type", tensor_a(global("torch.cuda", "FloatStorage")), "'torch.cuda.FloatStorage'"},
      {"a dotted name", tensor_a(global("torch._utils", "_rebuild_tensor_v2.__globals__")), "is refused"},
      {"a dotted module", tensor_a(global("collections", "OrderedDict.fromkeys")), "is refused"},
      {"an unknown storage type", tensor_a(global("torch", "ComplexFloatStorage")), "'torch.ComplexFloatStorage'"},
      {"terminal codes in a global", tensor_a(global("\x1b[2J", "x")), "'\\x1b[2J.x' is refused"},
      {"an endless global", flood("c", "x"), "not terminated"},
      {"STACK_GLOBAL", pth(whole(text("os") + text("system") + "\x93")), "opcode 147"},
      {"INST", pth(whole("(ios\nsystem\n")), "opcode 105"},
      {"OBJ", pth(whole("(" + shell + "o")), "is refused"},
      {"NEWOBJ", pth(whole(global("collections", "OrderedDict") + ")\x81")), "opcode 129"},
      {"EXT1", pth(whole("\x82\x01")), "opcode 130"},
      {"PERSID", pth(whole("Pstorage\n")), "opcode 80"},
      {"REDUCE on a text", pth(whole(text("os.system") + ")R")), "the callable of REDUCE is a string"},
      {"REDUCE on a dict", pth(whole("})R")), "the callable of REDUCE is a dict"},
      {"REDUCE on a storage type", pth(whole(global("torch", "FloatStorage") + ")R")), "calls a storage type"},
      {"REDUCE without a tuple", pth(whole(global("collections", "OrderedDict") + "]R")),
       "arguments of REDUCE is a list"},
      {"OrderedDict from items", pth(whole(global("collections", "OrderedDict") + tuple({"]"}) + "R")),
       "with arguments"},
      {"BUILD on a tensor", tensor_a(good_tensor + "}b"), "BUILD on a tensor"},
      {"BUILD on a global", pth(whole(rebuild + "}b")), "BUILD on a global"},
      {"BUILD on a tuple", pth(whole(")}b")), "BUILD on a tuple"},
      {"BUILD from a tuple", pth(whole("})b")), "the argument of BUILD is a tuple"},
  });
}

BOOST_AUTO_TEST_CASE(faulty_machines_are_refused) {
  check_refused({
      {"empty", pth(""), "protocol 2"},
      {"protocol 4", pth("\x80\x04}."), "protocol 2"},
      {"protocol 0", pth("(dp0\n."), "protocol 2"},
      {"no STOP", pth("\x80\x02}"), "ends in the middle"},
      {"STOP with nothing", pth(whole("")), "a value is missing"},
      {"STOP with two values", pth(whole("}}")), "more than one value"},
      {"STOP with an open mark", pth(whole("}(}")), "more than one value"},
      {"STOP with a list", pth(whole("]")), "the result of the pickle is a list"},
      {"bytes after STOP", pth(whole("}") + "}"), "follow the end"},
      {"an empty dict", pth(whole("}")), "no tensors"},
      {"tensors one level too deep", holding(text("optimizer") + dict(text("a") + good_tensor)), "no tensors"},
      {"text beyond the end", pth("\x80\x02X" + little_endian(0xffffffff, 4) + "abc"), "ends in the middle"},
      {"number beyond the end", pth("\x80\x02J\x01"), "ends in the middle"},
      {"int of 200 bytes", pth(whole("\x8a\xc8" + std::string(200, '\x7f'))), "more than 64 bits"},
      {"tuple of missing values", pth(whole("N\x87")), "a value is missing"},
      {"tuple without mark", pth(whole("Nt")), "a mark is missing"},
      {"values below the mark", pth(whole("}(\x85")), "a value is missing"},
      {"items without mark", pth(whole("}u")), "a mark is missing"},
      {"items into a tuple", pth(whole(")(NNu")), "items are set in a tuple"},
      {"an odd number of items", pth(whole("}(NNNu")), "a value is missing"},
      {"appending to a dict", pth(whole("}Na")), "appended to a dict"},
      {"memo never set", pth(whole("h\x05")), "memo index 5 was never set"},
      {"memo of nothing", pth(whole("q\x01")), "a value is missing"},
      {"memo index 2^32 - 1", pth(whole("}r\xff\xff\xff\xff")), "memo index 4294967295 is too large"},
      {"LONG_BINGET far away", pth(whole("j\xff\xff\xff\x7f")), "never set"},
      {"flood of None", flood("", "N"), "values on the stack"},
      {"flood of marks", flood("", "("), "more than 64 marks"},
      {"flood of dicts", flood("]", "}a"), "in tuples and dicts"},
      {"flood of tuples", flood("N", "\x85"), "in tuples and dicts"},
      {"doubling tuples through the memo", flood("Nq\x01", "h\x01h\x01\x86q\x01"), "values on the stack"},
      {"flood of memo entries", flood("}", "q\x01"), "ends in the middle"},
      {"flood of calls", flood("]" + global("collections", "OrderedDict") + "q\x01" + "a", "h\x01)Ra"),
       "in tuples and dicts"},
      {"flood of storages", flood("]" + four.substr(0, four.size() - 1) + "q\x01Qa", "h\x01Qa"), "storages"},
      {"flood of tensors",
       flood("]" + rebuild + "q\x01" + tuple({four, integer(0), ")", ")", "N", "N"}) + "q\x02Ra", "h\x01h\x02Ra"),
       "more than 16384 tensors"},
  });
}

BOOST_AUTO_TEST_CASE(faulty_tensors_are_refused) {
  const std::int64_t big = std::int64_t{1} << 62;
  const auto id = [](const std::vector<std::string>& parts) {
    return tensor_a(tensor(tuple(parts) + "Q", 0, {4}, {1}));
  };
  const std::string type = global("torch", "FloatStorage");
  const std::string long_key(model::max_tensor_name_bytes + 1, 'k');
  check_refused({
      {"storage missing", tensor_a(tensor(storage("FloatStorage", "7", 4), 0, {4}, {1})), "'m/data/7' is missing"},
      {"storage key with a path", tensor_a(tensor(storage("FloatStorage", "../../etc/passwd", 4), 0, {4}, {1})),
       "'m/data/../../etc/passwd' is missing"},
      {"storage key too long", tensor_a(tensor(storage("FloatStorage", long_key, 4), 0, {4}, {1})), "too long"},
      {"storage larger than its member", tensor_a(tensor(storage("FloatStorage", "0", 5), 0, {4}, {1})),
       "has 4 elements, not 5"},
      {"storage of wider elements", tensor_a(tensor(storage("DoubleStorage", "0", 4), 0, {4}, {1})),
       "has 2 elements, not 4"},
      {"storage of 2^62 elements", tensor_a(tensor(storage("FloatStorage", "0", big), 0, {4}, {1})), "elements, not"},
      {"storage of negative size", tensor_a(tensor(storage("FloatStorage", "0", -4), 0, {4}, {1})), "negative size"},
      {"id of four parts", id({text("storage"), type, text("0"), text("cpu")}), "not a tensor storage"},
      {"id of a module", id({text("module"), type, text("0"), text("cpu"), integer(4)}), "not a tensor storage"},
      {"id with a function", id({text("storage"), rebuild, text("0"), text("cpu"), integer(4)}),
       "not a tensor storage"},
      {"id that is a string", tensor_a(text("storage") + "Q"), "a persistent id is a string"},
      {"negative offset", shaped(-1, {2, 2}, {2, 1}), "negative offset"},
      {"offset behind the storage", shaped(4, {1}, {1}), "reach beyond"},
      {"offset of 2^62", shaped(big, {2, 2}, {2, 1}), "reach beyond"},
      {"one element too many", shaped(1, {2, 2}, {2, 1}), "reach beyond"},
      {"dimension 0", shaped(0, {0, 2}, {2, 1}), "dimension is 0"},
      {"negative dimension", shaped(0, {-2, 2}, {2, 1}), "dimension is -2"},
      {"negative stride", shaped(3, {2, 2}, {-2, -1}), "stride is -2"},
      {"stride that leaves", shaped(0, {2, 2}, {3, 1}), "reach beyond"},
      {"product wraps to 4", shaped(0, {big + 1, 4}, {0, 0}), "overflow"},
      {"product wraps to 0", shaped(0, {big, 4, 2}, {0, 0, 0}), "overflow"},
      {"reach wraps to 0", shaped(0, {5, 1}, {big, 1}), "overflow"},
      {"stride 0 makes it huge", shaped(0, {big}, {0}), "reach beyond"},
      {"overlapping rows make it huge", shaped(0, {2, 3}, {1, 1}), "reach beyond"},
      {"shape and stride of different length", shaped(0, {2, 2}, {1}), "differ in length"},
      {"nine dimensions", shaped(0, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}),
       "more than 8 dimensions"},
      {"shape of texts",
       tensor_a(rebuild + tuple({four, integer(0), tuple({text("4")}), tuple({integer(1)}), "N", "N"}) + "R"),
       "dimension is a string"},
      {"no storage", tensor_a(rebuild + tuple({"N", integer(0), ")", ")", "N", "N"}) + "R"), "of the wrong type"},
      {"five arguments", tensor_a(rebuild + tuple({four, integer(0), ")", ")", "N"}) + "R"), "called with 5 arguments"},
      {"parameter of a text",
       tensor_a(global("torch._utils", "_rebuild_parameter") + tuple({text("x"), "\x88", ordered_dict()}) + "R"),
       "without a tensor"},
      {"name twice", holding(text("a") + good_tensor + text("a") + good_tensor), "'a' appears twice"},
      {"name that is a number", holding(integer(3) + good_tensor), "name is an int"},
      {"empty name", holding(text("") + good_tensor), "name is empty"},
      {"name not UTF-8", holding(text("\xff") + good_tensor), "not UTF-8"},
  });
}

BOOST_AUTO_TEST_CASE(a_storage_may_be_shared_but_not_without_end) {
  constexpr std::int64_t elements = 1 << 16;
  const auto under_names = [&](int names) {
    std::string items = text("0") + tensor(storage("FloatStorage", "0", elements), 0, {elements}, {1}) + "q\x01";
    for (int i = 1; i < names; ++i) items += text(std::to_string(i)) + "h\x01";
    return pth_archive(whole(dict(items)), {{"0", std::string(elements * sizeof(float), '\1')}}).file();
  };
  BOOST_TEST(!!opened(under_names(2)));
  check_refused({{"under a thousand names", under_names(1000), "more than twice the bytes"}});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
