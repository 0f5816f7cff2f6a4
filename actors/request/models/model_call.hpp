#pragma once
#include <functional>
#include <memory>
#include <string>

#include "actors/request/call/plain_call.hpp"

namespace skein::request {

/// Loads, switches or unloads the model, in the formats of the older servers. The supervisor does the work, even if the
/// client leaves, and the answer is sent when it is done.
class model_call final : public plain_call {
 public:
  enum class form : std::uint8_t {
    load_file,     ///< POST /loadmodel: a file by its path
    load_id,       ///< POST /v1/model/load: an id with status "available" in /v1/models
    switch_model,  ///< POST /switch-model
    remove,        ///< POST /removemodel
    set_defaults,  ///< POST /update-config: for the current model
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
  std::shared_ptr<model_call*> self_ = std::make_shared<model_call*>(this);  // for late results
};

}  // namespace skein::request
