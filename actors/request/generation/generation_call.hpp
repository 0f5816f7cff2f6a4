#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "actors/connection/http/http.hpp"
#include "actors/request/call/call_work.hpp"
#include "actors/request/generation/call_origin.hpp"
#include "actors/request/generation/call_record.hpp"
#include "actors/request/generation/call_request.hpp"
#include "actors/request/generation/client_output.hpp"
#include "actors/request/generation/device_run.hpp"
#include "actors/request/generation/phase.hpp"
#include "actors/request/generation/request_reader.hpp"
#include "actors/request/generation/session_part.hpp"
#include "actors/request/shared/request_hub.hpp"

namespace skein::request {

/// The request actor: one generation call on the io thread of its connection, from body to response. It decides what
/// comes next (call_phase); its parts do it: request_reader makes a request of the body, session_part talks to the
/// persistence actor, device_run to the device, client_output to the client, and call_record tells operators. With a
/// session the call first asks for the session's content, and holds back the end of its answer until the turn is in the
/// log. An exception on any thread ends only this call, with a 500 or an error event. A call ends with the last event
/// of the response, a refusal, or gone(); its remaining device work is then cancelled.
///
/// Messages that do not fit the phase:
///   body, begin           once, in `reading`; ignored after the call has ended
///   gone                  ends every phase; a session's turn may be committed first, and its reply is not awaited
///   obey                  nothing_ran before the request is read, in `committing` and in `ended`
///   a tick                deadlines and a revoked key end every phase but `ended`
///   writable              no effect unless the reader was slow
///   a device event        ignored outside `queued` and `generating`: the hub drops events of closed ids
///   a reply               ignored outside the phase that asked for it: the hub drops replies to closed tickets
///   a result of long work dropped once the call has ended; until then nothing else leaves the phase that waits for it
class generation_call final : public connection::http_call,
                              public device_client,
                              public persistence_client,
                              private request_reader::client {
 public:
  /// `post` runs work on this call's io thread; thread safe.
  generation_call(call_origin origin, std::shared_ptr<const service_context> context, request_hub& hub,
                  std::function<void(std::function<void()>)> post, std::shared_ptr<connection::response_writer> out);

  [[nodiscard]] std::uint64_t body_bytes_max() const override { return reader_.body_bytes_max(); }
  [[nodiscard]] connection::header_list headers() const override { return output_.headers(); }
  [[nodiscard]] std::string error_body(unsigned status, std::string_view message) const override {
    return reader_.error_body(status, message);
  }
  void body(std::string bytes) override;
  void writable() override;
  void gone(std::string_view why, unsigned status) override;

  /// In place of a body: continues a response that was interrupted.
  void begin(protocol::generation_request request);
  /// The caller's tenant, once the password is checked.
  [[nodiscard]] const tenant_id& tenant() const { return origin().who->tenant; }
  /// Whether it runs on without its reader.
  [[nodiscard]] bool runs_on() const { return background_ && !is(call_phase::ended); }
  /// For responses.
  [[nodiscard]] answer_so_far so_far() const { return request_.so_far(answer(), run_ && run_->begun()); }
  /// Carries out an operator's order: ends the answer as if its text were complete.
  outcome obey(order what);
  /// An order waits until the device has the request. The log has no answer until then.
  [[nodiscard]] bool will_obey() const { return obeys_later_ && !is(call_phase::ended); }
  [[nodiscard]] call_phase phase() const { return phase_.now(); }

  void on_event(std::uint32_t prompt, device::event& e) override;
  void on_events_done() override;
  void on_tick(steady_time now) override;
  void on_reply(persistence::reply& r) override;

 private:
  [[nodiscard]] bool is(call_phase one) const { return phase_.is(one); }
  [[nodiscard]] bool is_on_device() const { return is(call_phase::queued) || is(call_phase::generating); }
  [[nodiscard]] const call_origin& origin() const { return reader_.origin(); }
  [[nodiscard]] const answer_state* answer() const { return run_ ? &run_->answer() : nullptr; }
  [[nodiscard]] const served_model& model() const { return origin().model->served; }
  [[nodiscard]] state_scope scope() const { return request_.scope(origin()); }
  void guarded(const std::function<void()>& work);

  // From body to device.
  [[nodiscard]] bool on_identified() override;
  void on_read(parsed_call call) override;
  [[nodiscard]] bool hold(std::size_t bytes);
  [[nodiscard]] const protocol::answer_head& head(const protocol::generation_request& request) {
    return request_.head(request, origin(), session_.turn());
  }
  void open_session();
  void announce();
  void tokenise();
  void prepared(result<prepared_call> call);
  void find_prefix();
  void submit();
  void submit_more();

  void on(persistence::session_opened& r);
  void on(persistence::session_replayed& r);
  void on(persistence::refused& r);
  void on(persistence::prefix_found& r);
  void on(persistence::turn_committed& r);
  void on(persistence::answer&) {}

  // From device to client.
  void on(std::uint32_t prompt, device::admitted& e);
  void on(std::uint32_t prompt, device::rejected& e);
  void on(std::uint32_t prompt, device::prompt_scored& e) { run_->on(prompt, e); }
  void on(std::uint32_t prompt, device::token& e);
  void on(std::uint32_t prompt, device::row_finished& e) { run_->on(prompt, e); }
  void tell_queue();
  void write_ready();
  void settle_turn();
  void stop_answer(order what);
  [[nodiscard]] bool is_late(steady_time now) const;
  void tick(steady_time now);

  void conclude(protocol::session_note note);
  void finish();
  void refuse(const error& why, std::chrono::seconds retry_after = std::chrono::seconds(1)) override;
  void end_call(unsigned status, std::string_view how);

  const std::shared_ptr<const service_context> context_;
  request_hub& hub_;
  checked_phase<call_phase> phase_{call_phase::reading};
  call_work work_;
  client_output output_;
  request_reader reader_;
  call_record record_;
  session_part session_;
  call_request request_;
  std::optional<device_run> run_;     // once it is prepared
  std::optional<order> obeys_later_;  // once the device has the request
  bool background_ = false;           // the accepted request needs no reader
};

}  // namespace skein::request
