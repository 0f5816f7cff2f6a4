// Which requests come from pages of other origins, by their headers.
#include "actors/request/service/browser_guard.hpp"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

using namespace skein;
using namespace skein::request;

BOOST_AUTO_TEST_CASE(pages_of_other_origins_are_told_apart) {
  const std::vector<std::string> listed{"https://page.example"}, any{"*"};
  const auto foreign = [](connection::header_list fields, std::span<const std::string> origins) {
    connection::request_head head;
    head.fields = std::move(fields);
    return is_from_foreign_page(head, origins);
  };
  BOOST_TEST(!foreign({{"host", "a:80"}}, {}));
  BOOST_TEST(!foreign({{"host", "A:8000"}, {"origin", "http://a:8000"}}, {}));
  BOOST_TEST(!foreign({{"host", "a"}, {"origin", "https://a:443"}}, {}));
  BOOST_TEST(!foreign({{"host", "a:443"}, {"origin", "https://a"}}, {}));
  BOOST_TEST(foreign({{"host", "a:8000"}, {"origin", "http://a"}}, {}));
  BOOST_TEST(foreign({{"host", "a"}, {"origin", "null"}}, listed));
  BOOST_TEST(foreign({{"host", ""}, {"origin", "http://"}}, {}));
  BOOST_TEST(foreign({{"origin", "http://a"}}, {}));
  BOOST_TEST(!foreign({{"host", "a"}, {"origin", "https://page.example"}}, listed));
  BOOST_TEST(foreign({{"host", "a"}, {"origin", "https://page.example:444"}}, listed));
  BOOST_TEST(!foreign({{"host", "a"}, {"origin", "null"}}, any));
  BOOST_TEST(foreign({{"host", "a"}, {"sec-fetch-site", "cross-site"}}, listed));
  BOOST_TEST(!foreign({{"host", "a"}, {"sec-fetch-site", "same-origin"}}, {}));
}
