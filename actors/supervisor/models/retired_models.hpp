#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <vector>

#include "actors/request/shared/loaded_models.hpp"

namespace skein::supervisor {

/// Models that left service. Each is kept until its last request is over; then its devices end, and its memory is
/// freed. Runs on the main thread.
class retired_models {
 public:
  /// `looked`: called after each look at them, while there are any; one may have ended.
  retired_models(boost::asio::io_context& main, std::function<void()> looked)
      : looked_(std::move(looked)), timer_(main) {}

  /// With `force` its devices end at once, and its requests with an error.
  void add(request::model_ref model, bool force);
  /// Ends the devices of all of them at once.
  void cut_off();
  /// No longer waits for their requests.
  void stop() { timer_.cancel(); }

  [[nodiscard]] bool empty() const { return models_.empty(); }
  /// Some devices are ending, or have no requests any more.
  [[nodiscard]] bool any_ending() const;
  void each(const std::function<void(const request::loaded_model&)>& visit) const;

 private:
  struct retired {
    request::model_ref model;
    bool is_ending = false;  ///< its devices were told to end
    /// Nothing else holds the model, and no further references are handed out.
    [[nodiscard]] bool is_unused() const { return model.use_count() == 1; }
  };
  static void cut_off(retired& one);
  void watch();
  void look();

  const std::function<void()> looked_;
  std::vector<retired> models_;
  boost::asio::steady_timer timer_;
  bool watching_ = false;
};

}  // namespace skein::supervisor
