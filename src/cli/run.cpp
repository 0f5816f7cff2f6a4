#include "cli/run.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "app/complaint.hpp"
#include "app/exit_code.hpp"
#include "app/load_settings.hpp"
#include "base/log/log.hpp"
#include "base/threads/start_thread.hpp"
#include "cli/help/manual.hpp"
#include "config/keys.hpp"

namespace skein::cli {
namespace {

/// The key at fault, whether the error names it by its path or as a flag of `serve`, with - or _ between its words.
const config::key* key_at_fault(const std::string& field) {
  std::string flag = "--" + field;
  std::ranges::replace(flag, '_', '-');
  const auto is_named = [&](const config::key& each) {
    return each.path == field || std::ranges::find(each.flags, flag) != each.flags.end();
  };
  const auto found = std::ranges::find_if(config::keys(), is_named);
  return found == config::keys().end() ? nullptr : &*found;
}

/// An error of the server with its key and the origin of the value: "local.toml:2: model.path: /x.pth: cannot open". A
/// value that is refused is a usage error only if a flag gives it.
error with_origin(error why, const config::loaded& merged) {
  const config::key* key = key_at_fault(why.field);
  if (!key) return why;
  for (const std::string& name : {key->path, why.field})
    if (why.message.starts_with(name + ": ")) why.message.erase(0, name.size() + 2);
  const auto found = merged.origins.find(key->path);
  const config::origin origin = found == merged.origins.end() ? config::origin() : found->second;
  using enum config::origin_kind;
  if (why.kind == error_kind::invalid_argument && (origin.kind == file || origin.kind == environment))
    why.kind = error_kind::bad_config;
  why.message =
      config::to_string(config::fault{config::fault_kind::bad_value, origin, key->path, std::move(why.message)});
  return why;
}

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
    auto ended = server.serve(merged.settings, [&what] { return load_settings(what.configuration); });
    if (!ended) ended = with_origin(ended.error(), merged);
    const bool in_record = !ended && how.shape == log::format::json;  // readers of JSON records get no plain line
    if (in_record) log::error("ended", {{"why", ended.error().message}});
    log::stop();
    return in_record ? static_cast<int>(exit_code_of(ended.error().kind)) : done(ended);
  }
  int operator()(const check_config_command& what) const {
    const auto merged = load_settings(what.configuration);
    if (!merged.faults.empty()) return report_faults(merged);
    log::set_minimum(std::max(log_options(merged.settings.log).minimum, log::level::warning));
    int code = static_cast<int>(exit_code::ok);
    for (const error& why : server.check(merged.settings)) {
      const int of_fault = fail(with_origin(why, merged));
      if (code == static_cast<int>(exit_code::ok)) code = of_fault;  // that of the fault with which serve would end
    }
    return code;
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

int fail(const std::exception& trouble) { return fail(error_of(trouble)); }

int fail(const error& why) {
  complain(why.message);
  return static_cast<int>(exit_code_of(why.kind));
}

}  // namespace skein::cli
