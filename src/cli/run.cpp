#include "cli/run.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include "app/complaint.hpp"
#include "app/exit_code.hpp"
#include "app/load_settings.hpp"
#include "base/log/log.hpp"
#include "cli/help/manual.hpp"

namespace skein::cli {
namespace {

int done(const result<void>& outcome) { return outcome ? static_cast<int>(exit_code::ok) : fail(outcome.error()); }

/// One function per alternative, so that a forgotten command does not compile.
struct runner {
  server_functions server;

  int operator()(const print_text& what) const {
    std::fputs(what.text.c_str(), stdout);
    return static_cast<int>(exit_code::ok);
  }
  int operator()(const serve_command& what) const {
    const auto merged = load_settings(what.configuration);
    if (!merged.faults.empty()) return report_faults(merged);
    if (what.dump_config) return print_settings(merged);
    const log::options how = log_options(merged.settings.log);
    log::start(how);
    for (const auto& remark : what.remarks) log::warning("a deprecated flag was used", {{"remark", remark}});
    const auto ended = server.serve(merged.settings, [&what] { return load_settings(what.configuration); });
    const bool in_record = !ended && how.shape == log::format::json;  // readers of JSON records get no plain line
    if (in_record) log::error("ended", {{"why", ended.error().message}});
    log::stop();
    return in_record ? static_cast<int>(exit_code_of(ended.error().kind)) : done(ended);
  }
  int operator()(const check_config_command& what) const {
    const auto merged = load_settings(what.configuration);
    if (!merged.faults.empty()) return report_faults(merged);
    log::set_minimum(std::max(log_options(merged.settings.log).minimum, log::level::warning));
    return done(server.check(merged.settings));
  }
  int operator()(const generate_command& what) const { return done(generate(what)); }
  int operator()(const logits_command& what) const { return done(logits(what)); }
  int operator()(const score_command& what) const { return done(score(what)); }
  int operator()(const tokenize_command& what) const { return done(tokenize(what)); }
  int operator()(const grammar_command& what) const { return done(check_grammar(what)); }
  int operator()(const inspect_command& what) const { return done(inspect(what)); }
  int operator()(const convert_command& what) const { return done(convert(what)); }
  int operator()(const keys_command& what) const { return done(keys(what)); }
  int operator()(const state_command& what) const { return done(state(what)); }
  int operator()(const tune_command& what) const { return done(tune(what)); }
  int operator()(const bench_engine_command& what) const { return done(bench_engine(what)); }
  int operator()(const bench_serve_command& what) const { return done(bench_serve(what)); }
  int operator()(const manual_command& what) const { return (*this)(print_text{manual(what.page)}); }
};

}  // namespace

int run(const command& what, const server_functions& server) {
  const int code = std::visit(runner{server}, what);
  if ((std::fflush(stdout) != 0 || std::ferror(stdout)) && code == static_cast<int>(exit_code::ok))
    return fail({error_kind::io, "cannot write to stdout", {}});
  return code;
}

int fail(const error& why) {
  complain(why.message);
  return static_cast<int>(exit_code_of(why.kind));
}

}  // namespace skein::cli
