#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/byte_share.hpp"
#include "actors/connection/http/http.hpp"
#include "base/error.hpp"

namespace skein::request {

/// The stream of a client that follows a running response, on the client's io thread. The response's events so far may
/// still be being written when the next ones arrive; those are kept until then, in the client's share of the memory.
class follower_output {
 public:
  follower_output(std::shared_ptr<connection::response_writer> out, byte_share share)
      : out_(std::move(out)), share_(std::move(share)) {}

  /// Sends the events so far, and then those that have arrived since.
  void begin(connection::header_list headers, std::string so_far);
  void write(std::string events);
  void end();
  void abort();

  /// An event could not be kept: the stream cannot begin.
  [[nodiscard]] const std::optional<error>& lost() const { return lost_; }

 private:
  struct kept_events {
    std::string text;
    byte_budget::lease memory;
  };

  std::shared_ptr<connection::response_writer> out_;
  byte_share share_;
  std::vector<kept_events> kept_;
  std::optional<error> lost_;
  bool begun_ = false;
  bool over_ = false;  // no event follows
  bool aborted_ = false;
};

}  // namespace skein::request
