#pragma once
#include <functional>
#include <memory>
#include <string>

#include "actors/request/call/plain_call.hpp"
#include "actors/request/shared/request_hub.hpp"
#include "protocol/server/session_request.hpp"

namespace skein::request {

/// POST /loadstatemodel, /removestatemodel and those of mixtures, of the older servers. The worker pool reads the file;
/// the list of states changes at once for all io threads.
class tuned_state_call final : public plain_call {
 public:
  enum class task : std::uint8_t { load, load_mixture, set_weights, remove };
  tuned_state_call(task what, plain_origin origin, std::shared_ptr<const service_context> context,
                   std::function<void(std::function<void()>)> post, std::shared_ptr<connection::response_writer> out);

 private:
  void read(std::string body) override;
  void load(const result<protocol::load_state_request>& asked);
  void set_weights(const result<protocol::load_state_request>& asked);
  void remove(const result<std::string>& name);
  void done(const result<void>& outcome);

  const task task_;
  model_ref model_;
  std::function<void(std::function<void()>)> post_;
  std::shared_ptr<tuned_state_call*> self_ = std::make_shared<tuned_state_call*>(this);  // for late results
};

}  // namespace skein::request
