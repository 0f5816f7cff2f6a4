// Paused requests of several tenants in one register: each finds its own, whatever ids the others chose.
#include "actors/request/shared/request_register.hpp"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <utility>

namespace {

using namespace skein;
using namespace skein::request;

constexpr steady_time now{};

caller tenant_named(const std::string& name) {
  caller who;
  who.tenant = name, who.admin = false;
  return who;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(paused_requests)

BOOST_AUTO_TEST_CASE(tenants_pause_and_resume_requests_of_the_same_id) {
  request_register all;
  const auto keep = [&](const tenant_id& tenant) {
    running_request::facts facts;
    facts.id = "job", facts.tenant = tenant, facts.model = "of " + tenant;
    paused_request paused;
    paused.was = std::make_shared<const running_request>(std::move(facts), nullptr);
    paused.since = now;
    all.keep(std::move(paused));
  };
  for (const char* tenant : {"mallory", "alice", "bob"}) keep(tenant);
  const auto tenant_of = [&](const caller& who) {
    const auto found = all.find("job", who, now);
    return found ? found->was->what().tenant : tenant_id();
  };
  caller admin = tenant_named("bob");
  admin.admin = true;
  for (const char* name : {"alice", "bob", "mallory"}) {
    BOOST_TEST(tenant_of(tenant_named(name)) == name);
    BOOST_TEST(all.model_of_paused("job", tenant_named(name)) == std::string("of ") + name);
  }
  BOOST_TEST(tenant_of(admin) == "bob");
  BOOST_TEST(tenant_of(tenant_named("eve")).empty());
  BOOST_TEST(all.model_of_paused("job", tenant_named("eve")).empty());
  const auto hers = all.find("job", tenant_named("alice"), now);
  BOOST_REQUIRE(hers.has_value());
  BOOST_TEST(all.take(*hers->was, now).has_value());
  BOOST_TEST(!all.take(*hers->was, now).has_value());
  BOOST_TEST(tenant_of(tenant_named("alice")).empty());
  BOOST_TEST(tenant_of(tenant_named("mallory")) == "mallory");
}

BOOST_AUTO_TEST_CASE(a_tenant_cannot_push_out_what_another_has_paused) {
  request_register all(config::pause_settings{.requests_max = 2});
  const auto keep = [&](const std::string& id, const tenant_id& tenant) {
    running_request::facts facts;
    facts.id = id, facts.tenant = tenant;
    paused_request paused;
    paused.was = std::make_shared<const running_request>(std::move(facts), nullptr);
    paused.since = now;
    all.keep(std::move(paused));
  };
  keep("hers", "alice");
  for (const char* id : {"1", "2", "3", "4"}) keep(id, "mallory");
  BOOST_TEST(all.paused(now).size() == 3u);
  BOOST_TEST(all.find("hers", tenant_named("alice"), now).has_value());
  BOOST_TEST(!all.find("2", tenant_named("mallory"), now).has_value());
  BOOST_TEST(all.find("3", tenant_named("mallory"), now).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
