#include "actors/request/service/watched_response.hpp"

#include <chrono>
#include <exception>
#include <utility>

#include "actors/request/shared/logged_text.hpp"
#include "base/log/log.hpp"

namespace skein::request {

watched_response::watched_response(std::shared_ptr<connection::response_writer> out, exchange_facts facts,
                                   metrics_shard& counts, std::atomic<std::uint32_t>* streams, const clock& time)
    : out_(std::move(out)), facts_(std::move(facts)), counts_(counts), streams_(streams), time_(time) {}

/// Counts and logs the exchange. If memory is short it may be missed: a destructor must not throw.
watched_response::~watched_response() {
  if (streams_now_ && streams_) --*streams_;
  try {
    counts_.count_exchange(facts_.route, facts_.method, status_);
    if (has_line_) return;
    const std::chrono::duration<double, std::milli> took = time_.now() - facts_.began;
    log::write(facts_.quiet ? log::level::debug : log::level::info, "request",
               {{"request_id", facts_.request_name},
                {"key_id", facts_.key},
                {"method", facts_.method},
                {"route", logged_text(facts_.path)},
                {"status", status_},
                {"total_ms", took.count()}});
  } catch (const std::exception&) {
  }
}

/// Adds the header of OpenAI's servers, in whole milliseconds.
void watched_response::add_time(connection::header_list& headers) const {
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(time_.now() - facts_.began);
  headers.emplace_back("openai-processing-ms", std::to_string(took.count()));
}

void watched_response::respond(unsigned status, connection::header_list headers, std::string body) {
  if (const auto room = status < 400 ? out_->reserve(body.size()) : byte_share::outcome::taken;
      room != byte_share::outcome::taken)
    return refuse(no_room(room, body.size(), share_.most()), std::move(headers));
  status_ = status;
  add_time(headers);
  out_->respond(status, std::move(headers), std::move(body));
}

/// Replaces an answer; `headers` are the answer's.
void watched_response::refuse(const error& why, connection::header_list headers) {
  const protocol::http_error no = protocol::to_http(why, std::chrono::seconds(1), facts_.errors);
  std::erase_if(headers, [](const auto& field) { return field.first.starts_with("Content-"); });
  headers.emplace_back("Content-Type", "application/json");
  headers.insert(headers.end(), no.headers.begin(), no.headers.end());
  respond(no.status, std::move(headers), no.body);
}

void watched_response::upgrade(connection::header_list headers) {
  status_ = 101;
  out_->upgrade(std::move(headers));
}

void watched_response::begin_stream(unsigned status, connection::header_list headers) {
  status_ = status;
  add_time(headers);
  if (!std::exchange(streams_now_, true) && streams_) ++*streams_;
  out_->begin_stream(status, std::move(headers));
}

}  // namespace skein::request
