#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "actors/connection/http/http.hpp"
#include "actors/request/generation/answer_state.hpp"
#include "actors/request/generation/prefix_use.hpp"
#include "actors/request/generation/session_turn.hpp"
#include "actors/request/shared/request_hub.hpp"
#include "actors/request/shared/service_context.hpp"
#include "protocol/requests/body_head.hpp"
#include "protocol/requests/dialect.hpp"

namespace skein::request {

/// What a call needs to know of its HTTP request.
struct call_origin {
  const protocol::dialect* dialect = &protocol::dialects::chat;
  std::string route;
  std::string request_name;         ///< X-Request-Id
  std::string client;               ///< address
  connection::header_list headers;  ///< that every response of this exchange carries
  bool authenticated = true;        ///< false: the body must bring the password
  byte_share share{};               ///< of the memory budget
  caller_ref who = anybody();       ///< once it is known
  steady_time received{};
  protocol::error_style errors = protocol::error_style::openai;
  std::string if_match, request_key;  ///< header fields If-Match and Idempotency-Key, as sent
  model_ref model;                    ///< answers the request; null: the body names it
  /// Called with the id of a response as soon as its turn is accepted; may be empty.
  std::function<void(const std::string& id)> named{};
};

/// The request actor: one generation call on the io thread of its connection, from body to response. It talks to the
/// persistence actor and the device by messages and to the client through the response_writer. With a session it first
/// asks for the session's content (session_turn), and holds back the end of its answer until the turn is in the log.
/// Long parsing and tokenising runs on the worker pool. Its result comes back by serial number, so it is dropped if the
/// client has left. An exception on either thread ends only this call, with a 500 or an error event. A call ends with
/// the last event of the response, a refusal, or gone(); its remaining device work is then cancelled.
class generation_call final : public connection::http_call, public device_client, public persistence_client {
 public:
  /// `post` runs work on this call's io thread; thread safe.
  generation_call(call_origin origin, std::shared_ptr<const service_context> context, request_hub& hub,
                  std::function<void(std::function<void()>)> post, std::shared_ptr<connection::response_writer> out);
  ~generation_call() override;

  [[nodiscard]] std::uint64_t body_bytes_max() const override;
  [[nodiscard]] connection::header_list headers() const override { return origin_.headers; }
  [[nodiscard]] std::string error_body(unsigned status, std::string_view message) const override;
  void body(std::string bytes) override;
  void writable() override;
  void gone(std::string_view why, unsigned status) override;

  /// In place of a body: continues a response that was interrupted.
  void begin(protocol::generation_request request);
  /// The caller's tenant, once the password is checked.
  [[nodiscard]] const tenant_id& tenant() const { return origin_.who->tenant; }
  /// Whether it runs on without its reader.
  [[nodiscard]] bool runs_on() const { return background_ && !ended_; }
  /// For responses: answer_writer::told_again and early_body.
  [[nodiscard]] std::string told_again(std::optional<std::uint64_t> after) const;
  [[nodiscard]] std::string early_body() const;
  /// Carries out an operator's order: ends the answer as if its text were complete.
  outcome obey(order what);

  void on_event(std::uint32_t prompt, device::event& e) override;
  void on_events_done() override;
  void on_tick(steady_time now) override;
  void on_reply(persistence::reply& r) override;

 private:
  /// A body and its head, which is read first.
  struct opened_body {
    std::shared_ptr<const std::string> text;
    protocol::body_head head;
  };

  struct parsed_call {
    protocol::generation_request request;
    std::optional<session_turn> turn;
    std::optional<paused_request> resumed;
  };
  /// A parsed body; the dialect also defines the form of refusals.
  struct read_body {
    const protocol::dialect* as;
    result<parsed_call> call;
    std::string refusal = {};               ///< see protocol::understood
    std::vector<std::string> ignored = {};  ///< likewise
  };
  /// A prompt on its way through the device.
  struct prompt_run {
    request_id id = 0;  // 0: not submitted, or over
    std::uint32_t rows = 0;
  };
  /// The question that the persistence actor has not answered yet.
  enum class question : std::uint8_t { none, session, prefix, commit };

  void guarded(const std::function<void()>& work);
  template <typename Result>
  void run(bool is_long, std::function<Result()> work, void (generation_call::*next)(Result));
  void open_body(std::shared_ptr<const std::string> text);
  void log_in(result<opened_body> body);
  [[nodiscard]] loaded_models::meant meant() const;
  void find_model(std::shared_ptr<const std::string> text);
  void look_for_model(steady_time now);
  [[nodiscard]] bool enter();
  void parse(std::shared_ptr<const std::string> text);
  [[nodiscard]] bool hold(std::size_t bytes);
  [[nodiscard]] const protocol::answer_head& head(const protocol::generation_request& request);
  [[nodiscard]] static read_body read(const std::string& text, const call_origin& origin,
                                      const service_context& context);
  void understood(result<read_body> body);
  void parsed(parsed_call call);
  [[nodiscard]] bool choose_beginning();
  void open_session();
  void announce();
  void tokenise();
  void log_prompt(const prepared_call& call) const;
  void prepared(result<prepared_call> call);
  void find_prefix();
  void go_without_prefix();
  [[nodiscard]] bool is_late(steady_time now) const;
  void submit();
  void submit_more();
  [[nodiscard]] bool submit_prompt(std::uint32_t prompt);
  [[nodiscard]] std::vector<engine::prompt_part> parts_of(std::size_t tokens) const;
  void prompt_over(std::uint32_t prompt);

  void on(persistence::session_opened& r);
  void on(persistence::session_replayed& r);
  void on(persistence::refused& r);
  void on(persistence::prefix_found& r);
  void on(persistence::turn_committed& r);
  void on(persistence::answer&) {}
  [[nodiscard]] metrics_shard& counts() { return context_->metrics->of(hub_.io_thread()); }
  void count_ending(unsigned status);
  void count_token(steady_time now);
  void spend(std::uint64_t tokens);
  [[nodiscard]] const served_model& model() const { return origin_.model->served; }
  void tell_device(device::message message) { hub_.tell(door_of(origin_.model), std::move(message)); }
  [[nodiscard]] std::string initial_state() const { return tuned_ ? tuned_->identity : std::string(); }
  void note_progress();
  void settle_turn();
  void leave_session();

  void enlist();
  void delist();
  [[nodiscard]] bool may_be_paused(const prepared_call& call) const;
  void keep_paused();
  [[nodiscard]] bool take_paused(std::optional<paused_request>& read);
  void keep_resumed();
  void tell_queue();
  [[nodiscard]] static result<parsed_call> read_resumed(const std::string& text, const caller& who,
                                                        const served_model& model, const service_context& context);

  void on(std::uint32_t prompt, device::admitted& e);
  void on(std::uint32_t prompt, device::rejected& e);
  void on(std::uint32_t prompt, device::prompt_scored& e);
  void on(std::uint32_t prompt, device::token& e);
  void on(std::uint32_t prompt, device::row_finished& e);

  void receive(std::string bytes);
  void write_ready();
  void begin_stream();
  void write(std::string bytes);
  void refuse(const error& why, std::chrono::seconds retry_after = std::chrono::seconds(1));
  void finish();
  void cancel_device_work();
  void end_call(unsigned status, std::string_view how);

  call_origin origin_;
  std::shared_ptr<const service_context> context_;
  request_hub& hub_;
  std::function<void(std::function<void()>)> post_;
  std::shared_ptr<connection::response_writer> out_;
  const std::uint64_t serial_;

  std::stop_source over_;      // requested when the call ends, so that no long work starts for it
  byte_budget::lease memory_;  // for the body, then for the texts to tokenise, then for the data that the device holds
  bool read_ = false;          // the whole body has arrived
  persistence::return_address ticket_, prefix_ticket_;
  steady_time prefix_until_{};  // end of the wait for known prefixes
  question asked_ = question::none;
  std::string wanted_;                                   // the model that the body names
  std::shared_ptr<const std::string> unread_;            // the body that waits for it
  std::optional<protocol::generation_request> request_;  // until it is prepared
  std::optional<session_turn> turn_;
  std::optional<prefix_use> prefix_;
  std::optional<tuned_state> tuned_;
  std::optional<paused_request> resumed_;    // the request that this call resumes
  std::string refusal_;                      // in place of the usual body, if the dialect has its own
  std::shared_ptr<running_request> listed_;  // in the register, while it runs
  std::string session_;                      // its name, for the log
  bool leased_ = false;                      // the session waits for this turn
  bool unfinished_ = false;                  // the version that was committed
  std::optional<answer_state> answer_;
  std::vector<prompt_run> runs_;      // by prompt
  std::deque<std::uint32_t> to_run_;  // prompts that the device does not have yet
  std::uint32_t waiting_ = 0;         // prompts that wait for a slot
  std::uint32_t running_ = 0;         // prompts that the device has
  bool background_ = false;           // it runs on without a reader
  std::optional<protocol::answer_head> head_;
  bool begun_ = false;                // a prompt got its slot
  bool crowded_ = false;              // the device sent a prompt back; the next clock tick retries
  bool streaming_ = false;            // status and headers are out
  bool paused_ = false;               // the reader is slow
  std::optional<order> obeys_later_;  // once the device has the request
  bool ended_ = false;                // the response is complete, or the client is gone
  std::optional<error> failure_;      // of the device or the model; ends the call
  steady_time last_write_{};
  std::optional<steady_time> first_token_, last_token_;
  std::chrono::microseconds queued_{};
  generation_series* counts_ = nullptr;  // of this model and key, on this thread; once the key is known
  key_lease place_;                      // among the requests of its key
};

}  // namespace skein::request
