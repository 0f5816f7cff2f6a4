#pragma once
#include <functional>
#include <memory>
#include <string>

#include "actors/request/plain_call.hpp"

namespace skein::request {

/// Loads, switches or unloads the model, in the forms of the older servers. The supervisor does the work; the answer
/// comes when it is done, which it also is when the client did not wait.
class model_call final : public plain_call {
 public:
  enum class form : std::uint8_t {
    load_file,     ///< POST /loadmodel: a file by its path
    load_id,       ///< POST /v1/model/load: one of the ids that /v1/models calls available
    switch_model,  ///< POST /switch-model
    remove,        ///< POST /removemodel
    set_defaults,  ///< POST /update-config: of the current model
  };
  model_call(form what, plain_origin origin, std::shared_ptr<const service_context> context,
             std::function<void(std::function<void()>)> post, std::shared_ptr<connection::response_writer> out);

 private:
  void read(std::string body) override;
  void set_defaults(const std::string& body);
  [[nodiscard]] result<model_change> parse(const std::string& body) const;
  void done(const result<std::string>& outcome);

  const form form_;
  std::function<void(std::function<void()>)> post_;
  std::shared_ptr<model_call*> self_ = std::make_shared<model_call*>(this);  // for the answer that comes back
};

}  // namespace skein::request
