#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"

namespace skein::test {

/// One turn of a session of `skein serve --device fake --vocab bytes`: what is asked, and the only answer there can be.
struct known_turn {
  std::string prompt, answer;
  [[nodiscard]] std::string text() const { return prompt + answer; }
};

/// What a client knows of a turn that it sent.
enum class turn_outcome : std::uint8_t {
  acknowledged,  ///< the answer came whole and said that it is durable
  failed,        ///< the server said no, or never got the request: there must be no trace of it
  unknown,       ///< the connection broke after the request was sent: there, whole, or not there
};

/// A client that writes turns into its own session, or into its own branch of a session that others write to at the
/// same time, and knows what must be in it whatever happened to the server.
class session_writer {
 public:
  /// `branch`: his name among the writers of the session; empty: there are no others.
  explicit session_writer(std::string session, std::string branch = {})
      : session_(std::move(session)), branch_(std::move(branch)) {}

  /// Sends one more turn and waits for its end. Every other turn is streamed; some end by a stop string that their
  /// answer holds. Throws std::runtime_error for an answer that is whole and wrong.
  turn_outcome write(std::uint16_t port);
  /// Asks the server, which may be another process by now, for all of his turns and compares: every acknowledged one
  /// in its order, then at most the one of unknown outcome, each with exactly the text that it must have, and nothing
  /// else. Settles the unknown one. The text of the first difference; empty: none.
  [[nodiscard]] std::string compare(std::uint16_t port);

  [[nodiscard]] const std::string& session() const { return session_; }
  [[nodiscard]] std::size_t turns() const { return turns_.size(); }
  /// Unknown ones that turned out to be there.
  [[nodiscard]] std::size_t found() const { return found_; }

 private:
  [[nodiscard]] known_turn next_turn() const;
  [[nodiscard]] std::string request_body(const known_turn& turn) const;
  [[nodiscard]] std::uint32_t add_behind(std::uint16_t port, std::vector<known_turn>& there) const;

  std::string session_, branch_;
  std::uint32_t end_ = 0;          ///< the version that the branch ends with
  std::vector<known_turn> turns_;  ///< that are in the session for certain
  std::optional<known_turn> unknown_;
  std::uint32_t sent_ = 0;
  std::size_t found_ = 0;
};

}  // namespace skein::test
