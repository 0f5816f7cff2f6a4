// Histograms and the text that Prometheus reads, sample by sample.
#include "base/metrics/metrics.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "base/metrics/exposition.hpp"
#include "base/metrics/process_usage.hpp"

namespace {

using namespace skein;
using metrics::exposition;
using metrics::histogram;
using metrics::histogram_sum;

constexpr std::array bounds{0.5, 1.0, 4.0};

BOOST_AUTO_TEST_CASE(a_bucket_holds_its_bound) {
  histogram h(bounds);
  for (const double value : {0.0, 0.5, 0.75, 1.0, 1.5, 4.0, 4.5}) h.observe(value);
  histogram_sum sum;
  sum += h;
  BOOST_TEST((std::vector(sum.counts.begin(), sum.counts.begin() + 4) == std::vector<std::uint64_t>{2, 2, 2, 1}));
  BOOST_TEST(sum.total == 12.25);
}

BOOST_AUTO_TEST_CASE(shards_add_up) {
  histogram one(bounds), other(bounds);
  constexpr int count = 20000;
  std::thread writer([&] {
    for (int i = 0; i < count; ++i) other.observe(2);
  });
  for (int i = 0; i < count; ++i) one.observe(0.25, 2);
  std::uint64_t seen = 0;
  while (seen < count) {  // a reader beside the writer sees counts that only grow
    histogram_sum now;
    now += other;
    BOOST_REQUIRE_GE(now.counts[2], seen);
    seen = now.counts[2];
  }
  writer.join();
  histogram_sum sum;
  (sum += one) += other;
  BOOST_TEST(sum.counts[0] == 2u * count);
  BOOST_TEST(sum.counts[2] == 1u * count);
  BOOST_TEST(sum.total == 2.5 * count);
  histogram copy(bounds);
  copy.mirror(one);
  copy.mirror(one);  // takes over, does not add
  histogram_sum copied;
  copied += copy;
  BOOST_TEST(copied.counts[0] == 2u * count);
}

BOOST_AUTO_TEST_CASE(every_list_of_bounds_fits_and_rises) {
  const auto fits = [](const auto& list) {
    BOOST_TEST(list.size() <= metrics::buckets_max);
    BOOST_TEST(std::ranges::is_sorted(list));
  };
  fits(metrics::first_token_bounds);
  fits(metrics::token_bounds);
  fits(metrics::request_bounds);
  fits(metrics::token_count_bounds);
  fits(metrics::row_bounds);
}

BOOST_AUTO_TEST_CASE(a_page_is_what_prometheus_reads) {
  histogram h(bounds);
  h.observe(0.25);
  h.observe(9);
  histogram_sum sum;
  sum += h;
  const auto page = [&](exposition::dialect d) {
    std::string text;
    exposition out(text, d);
    out.counter("a_total", "All.");
    out.sample({{"model", "a \"b\"\\\n"}, {"key", ""}}, std::uint64_t{18446744073709551615u});
    out.gauge("b", "Two\nlines \\ and \"quotes\".");
    out.sample({}, 0.001);
    out.sample({{"n", "1"}}, std::numeric_limits<double>::infinity());
    out.sample({{"n", "2"}}, std::nan(""));
    out.histogram("c_seconds", "Times.");
    out.sample({{"model", "m"}}, sum);
    out.finish();
    return text;
  };
  const std::string samples_of_c =
      "c_seconds_bucket{model=\"m\",le=\"0.5\"} 1\n"
      "c_seconds_bucket{model=\"m\",le=\"1.0\"} 1\n"
      "c_seconds_bucket{model=\"m\",le=\"4.0\"} 1\n"
      "c_seconds_bucket{model=\"m\",le=\"+Inf\"} 2\n"
      "c_seconds_sum{model=\"m\"} 9.25\n"
      "c_seconds_count{model=\"m\"} 2\n";
  BOOST_TEST(page(exposition::dialect::prometheus) ==
             "# HELP a_total All.\n"
             "# TYPE a_total counter\n"
             "a_total{model=\"a \\\"b\\\"\\\\\\n\"} 18446744073709551615\n"
             "# HELP b Two\\nlines \\\\ and \"quotes\".\n"
             "# TYPE b gauge\n"
             "b 0.001\n"
             "b{n=\"1\"} +Inf\n"
             "b{n=\"2\"} NaN\n"
             "# HELP c_seconds Times.\n"
             "# TYPE c_seconds histogram\n" +
                 samples_of_c);
  const std::string open = page(exposition::dialect::openmetrics);
  BOOST_TEST(open.starts_with("# HELP a All.\n# TYPE a counter\na_total{"));
  BOOST_TEST(open.ends_with(samples_of_c + "# EOF\n"));
}

BOOST_AUTO_TEST_CASE(clients_choose_the_dialect) {
  using d = exposition::dialect;
  BOOST_TEST((exposition::chosen("") == d::prometheus));
  BOOST_TEST((exposition::chosen("text/plain;version=0.0.4;q=0.5,*/*;q=0.1") == d::prometheus));
  BOOST_TEST(
      (exposition::chosen("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3") == d::openmetrics));
}

BOOST_AUTO_TEST_CASE(the_system_knows_this_process) {
  const process_usage p = measure_process();
  BOOST_TEST(p.cpu_seconds > 0);
  BOOST_TEST(p.start_time_seconds > 1e9);
  BOOST_TEST(p.resident_bytes > 100'000u);
  BOOST_TEST(p.virtual_bytes >= p.resident_bytes);
  BOOST_TEST(p.open_files >= 3u);
  BOOST_TEST(p.open_files_max >= p.open_files);
  BOOST_TEST(p.threads >= 1u);
  std::vector<std::ifstream> more;
  for (unsigned i = 0; i < 100; ++i) more.emplace_back("/dev/null");
  BOOST_TEST(measure_process().open_files == p.open_files + 100);
}

}  // namespace
