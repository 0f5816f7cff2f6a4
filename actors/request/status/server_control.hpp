#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "actors/request/call/plain_call.hpp"
#include "actors/request/shared/request_register.hpp"

namespace skein::request {

/// POST /v1/server/stop and /pause: sends the order to the io threads of the selected requests, and answers when all
/// have carried it out. /resume is a generation_call.
class server_control_call final : public plain_call {
 public:
  server_control_call(order what, plain_origin origin, std::shared_ptr<const service_context> context,
                      std::function<void(std::function<void()>)> post,
                      std::shared_ptr<connection::response_writer> out);

 private:
  void read(std::string body) override;
  void carried_out(outcome how);
  void tell();

  const order order_;
  std::function<void(std::function<void()>)> post_;
  std::shared_ptr<const running_request> latest_;  // of the selected requests
  std::size_t waiting_ = 0;                        // number of requests that have not replied
  bool any_ = false;                               // one was ended or paused
  bool refused_ = false;                           // one cannot be paused
  std::shared_ptr<server_control_call*> self_ = std::make_shared<server_control_call*>(this);  // for late results
};

}  // namespace skein::request
