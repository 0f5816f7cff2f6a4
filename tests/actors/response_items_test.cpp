// The items of a conversation, page by page: what limits of number and of bytes leave, in both orders, and that
// following the pages brings every item once.
#include "actors/request/responses/response_items.hpp"

#include <boost/test/unit_test.hpp>
#include <vector>

namespace skein::request {
namespace {

using persistence::version_record;

/// Turns of other routes: "Q1" and "A1", "Q2" and "A2", ...; the last is raw text, cut short by its limit.
std::vector<persistence::shared_version> turns() {
  std::vector<version_record> all(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i + 1);
    all[i].id = i + 1;
    all[i].messages = {{"user", "Q" + number}};
    all[i].answer = "A" + number;
    all[i].finish_reason = "stop";
  }
  all[1].reasoning = "R2";
  all[2].messages.clear();
  all[2].text = "Q3A3";
  all[2].prompt_bytes = 2;
  all[2].finish_reason = "length";
  std::vector<persistence::shared_version> shared;
  for (auto& turn : all) shared.push_back(std::make_shared<const version_record>(std::move(turn)));
  return shared;
}

std::string member(const std::string& json, const std::string& name) {
  const auto at = json.rfind('"' + name + "\":");
  BOOST_REQUIRE(at != std::string::npos);
  const auto from = at + name.size() + 3;
  return json.substr(from, json.find_first_of(",}", from) - from);
}

/// The texts of a list, in its order.
std::string texts(const std::string& json) {
  std::string found;
  for (auto at = json.find("\"text\":\""); at != std::string::npos; at = json.find("\"text\":\"", at + 1))
    found += json.substr(at + 8, 2) + ' ';
  return found;
}

std::string followed(item_page page) {
  const auto all = turns();
  std::string found;
  for (int pages = 0; pages < 20; ++pages) {
    const auto list = conversation_item_list(all, page);
    BOOST_REQUIRE(list);
    found += texts(*list);
    if (member(*list, "has_more") == "false") return found;
    const auto last = member(*list, "last_id");
    page.after = last.substr(1, last.size() - 2);
  }
  return "no end";
}

BOOST_AUTO_TEST_SUITE(response_items)

BOOST_AUTO_TEST_CASE(every_page_brings_the_next) {
  const std::string in_order = "Q1 A1 Q2 R2 A2 Q3 A3 ";
  BOOST_TEST(followed({.ascending = true, .after = {}}) == in_order);
  BOOST_TEST(followed({.limit = 2, .ascending = true, .after = {}}) == in_order);
  BOOST_TEST(followed({.limit = 1, .after = {}}) == "A3 Q3 A2 R2 Q2 A1 Q1 ");
}

BOOST_AUTO_TEST_CASE(no_page_is_longer_than_its_limit) {
  BOOST_TEST(followed({.ascending = true, .after = {}, .bytes_max = 600}) == "Q1 A1 Q2 R2 A2 Q3 A3 ");
  const auto short_page = conversation_item_list(turns(), {.ascending = true, .after = {}, .bytes_max = 600});
  BOOST_TEST(short_page.value().size() <= 600u);
  BOOST_TEST(texts(short_page.value()).starts_with("Q1 A1 "));
  const auto none = conversation_item_list(turns(), {.ascending = true, .after = {}, .bytes_max = 50});
  BOOST_TEST((none.error().kind == error_kind::too_large));
  BOOST_TEST(conversation_item_list({}, {}).value() ==
             R"({"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false})");
  BOOST_TEST(conversation_item_list(turns(), {.after = "msg_9"}).error().field == "after");
}

BOOST_AUTO_TEST_CASE(an_item_is_found_by_its_id) {
  const auto found = conversation_item(turns(), "msg_v3");
  BOOST_REQUIRE(found);
  BOOST_TEST(*found == R"({"id":"msg_v3","type":"message","status":"incomplete","role":"assistant","content":[)"
                       R"({"type":"output_text","text":"A3","annotations":[],"logprobs":[]}]})");
  BOOST_TEST(conversation_item(turns(), "rs_v2").value().find("R2") != std::string::npos);
  BOOST_TEST(conversation_item(turns(), "msg_v3_0").value() ==
             R"({"id":"msg_v3_0","type":"message","status":"completed","role":"user","content":[)"
             R"({"type":"input_text","text":"Q3"}]})");
  BOOST_TEST(!conversation_item(turns(), "rs_v1"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::request
