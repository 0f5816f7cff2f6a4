#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/request/call/plain_call.hpp"
#include "actors/request/shared/request_register.hpp"
#include "protocol/json/json_writer.hpp"

namespace skein::request {

/// A request as the operator's routes show it; null: there is none.
void write_request(protocol::json_writer& out, const std::shared_ptr<const running_request>& r);

/// GET /v1/server/status: the models, their load, and each request that the caller may see. Only callers with
/// `may_see_path` get the path of the model's file.
class status_call final : public plain_call {
 public:
  status_call(bool may_see_path, plain_origin origin, std::shared_ptr<const service_context> context,
              std::function<void(std::function<void()>)> post, std::shared_ptr<connection::response_writer> out);

 private:
  void read(std::string body) override;
  void tell(const std::optional<card_memory>& card);

  const bool may_see_path_;
  std::function<void(std::function<void()>)> post_;
  std::shared_ptr<status_call*> self_ = std::make_shared<status_call*>(this);  // for late results
};

}  // namespace skein::request
