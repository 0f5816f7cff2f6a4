#include <cstdio>
#include <string>

#include "app/small_file.hpp"
#include "cli/commands.hpp"
#include "load/load_run.hpp"
#include "protocol/json/json_writer.hpp"

namespace skein::cli {
namespace {

result<load::load_target> target_of(const bench_serve_command& what) {
  auto target = load::parse_url(what.url);
  if (!target) return target;
  target->unix_socket = what.unix_socket;
  target->chat = what.chat;
  target->model = what.model;
  target->vocab = what.vocab;
  if (what.password_file.empty()) return target;
  auto password = read_small_file(what.password_file);
  if (!password) return password.error();
  while (password->ends_with('\n') || password->ends_with('\r')) password->pop_back();
  target->password = std::move(*password);
  return target;
}

void write(protocol::json_writer& out, const char* name, const load::length_wish& wish) {
  out.key(name).begin_object();
  if (wish.fixed > 0)
    out.key("fixed").value(wish.fixed);
  else
    out.key("mean").value(wish.mean).key("sigma").value(wish.sigma);
  out.end_object();
}

std::string setting_of(const bench_serve_command& what) {
  std::string text;
  protocol::json_writer out(text);
  out.begin_object().key("server").value(what.unix_socket.empty() ? what.url : what.unix_socket);
  out.key("route").value(what.chat ? "chat" : "completions").key("prompts").value(what.plan.prompts);
  out.key("request_rate").value(what.plan.rate).key("concurrency").value(what.concurrency);
  write(out, "input_tokens", what.plan.input);
  write(out, "output_tokens", what.plan.output);
  out.key("seed").value(what.plan.seed).end_object();
  return text;
}

}  // namespace

result<void> bench_serve(const bench_serve_command& what) {
  const auto target = target_of(what);
  if (!target) return target.error();
  load::run_options options;
  options.concurrency = what.concurrency;
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(what.timeout_s * 1000));
  const auto figures = load::run_load(*target, load::make_plan(what.plan), options);
  if (!figures) return figures.error();
  std::fputs(load::table_of(*figures).c_str(), stdout);
  if (!what.json.empty())
    if (const auto kept = write_small_file(what.json, load::json_of(*figures, setting_of(what))); !kept) return kept;
  if (figures->completed == 0)
    return error{error_kind::unavailable, "no request succeeded: " + figures->failures.begin()->first, {}};
  return {};
}

}  // namespace skein::cli
