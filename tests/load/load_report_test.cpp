// The figures of a load test, on numbers that can be checked by hand.
#include "load/load_report.hpp"

#include <boost/test/unit_test.hpp>

using namespace skein::load;
namespace tt = boost::test_tools;

BOOST_AUTO_TEST_CASE(percentiles) {
  std::vector<double> values;
  for (int i = 100; i >= 0; --i) values.push_back(i);
  const spread s = spread_of(values);
  BOOST_TEST(s.mean == 50);
  BOOST_TEST(s.median == 50);
  BOOST_TEST(s.p90 == 90);
  BOOST_TEST(s.p99 == 99);

  const spread between = spread_of({10, 20});
  BOOST_TEST(between.median == 15, tt::tolerance(1e-9));
  BOOST_TEST(between.p90 == 19, tt::tolerance(1e-9));
  BOOST_TEST(spread_of({7}).p99 == 7);
  BOOST_TEST(spread_of({}).median == 0);
}

BOOST_AUTO_TEST_CASE(figures) {
  const std::vector<request_outcome> outcomes{
      {"", {0.1, 0.2, 0.4}, 10, 4},  // TTFT 100, ITL 100 and 200, TPOT 300 / 3, E2E 400
      {"", {0.3}, 20, 1},            // one token has neither ITL nor TPOT
      {"status 429", {}, 0, 0},
      {"status 429", {0.1}, 99, 99},
  };
  const load_figures f = figures_of(outcomes, 2, 3);
  BOOST_TEST(f.completed == 2u);
  BOOST_TEST(f.failed == 2u);
  BOOST_TEST(f.failures.at("status 429") == 2u);
  BOOST_TEST(f.input_tokens == 30u);
  BOOST_TEST(f.output_tokens == 5u);
  BOOST_TEST(f.requests_per_s == 1);
  BOOST_TEST(f.output_tokens_per_s == 2.5);
  BOOST_TEST(f.total_tokens_per_s == 17.5);
  BOOST_TEST(f.most_at_once == 3u);
  BOOST_TEST(f.ttft.median == 200, tt::tolerance(1e-9));
  BOOST_TEST(f.itl.median == 150, tt::tolerance(1e-9));
  BOOST_TEST(f.tpot.median == 100, tt::tolerance(1e-9));
  BOOST_TEST(f.tpot.p99 == 100, tt::tolerance(1e-9));
  BOOST_TEST(f.e2e.median == 350, tt::tolerance(1e-9));
  BOOST_TEST(table_of(f).find("2 completed, 2 failed") != std::string::npos);
  BOOST_TEST(table_of(f).find("2: status 429") != std::string::npos);
  BOOST_TEST(json_of(f, "{}").find(R"("failures":{"status 429":2},"input_tokens":30)") != std::string::npos);
}
