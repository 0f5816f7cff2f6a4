#pragma once
#include <cstdint>
#include <vector>

#include "grammar/machine/rule_machine.hpp"
#include "grammar/machine/string_machine.hpp"
#include "grammar/machine/unique_items.hpp"

namespace skein::grammar {

/// Runs a program over bytes: each thread reads the byte, may fork, or ends. Threads of one text are a set; equal ones
/// are merged. White space between two tokens of JSON is limited.
class machine {
 public:
  explicit machine(const program& of)
      : program_(of), strings_(of, frames_), unique_(of, frames_), rules_(of, frames_) {}

  /// Whether the threads at the beginning are not too many. A program for which they are is refused when it is
  /// compiled.
  [[nodiscard]] bool can_begin();
  [[nodiscard]] std::vector<thread> begin();
  /// Appends to `out` what `count` threads of `from`, beginning with `first`, become after a byte; `from` may be `out`.
  /// False if there are too many of them.
  [[nodiscard]] bool step(const std::vector<thread>& from, std::size_t first, std::size_t count, unsigned char byte,
                          std::vector<thread>& out);
  /// Appends what a thread in a number becomes if the number ends where it is. This may add a frame.
  void end_number(const thread& t, std::vector<thread>& out);
  /// True if the text may end.
  [[nodiscard]] bool may_end(const thread& t) const;

  [[nodiscard]] frame_store& frames() { return frames_; }
  [[nodiscard]] const frame_store& frames() const { return frames_; }
  [[nodiscard]] const string_machine& strings() const { return strings_; }
  [[nodiscard]] const program& of() const { return program_; }
  /// Forgets the frames that no thread needs.
  void compact(std::vector<thread>& threads);

 private:
  void step_one(thread t, unsigned char byte, std::vector<thread>& out);
  [[nodiscard]] bool blank(thread t, unsigned char byte, std::vector<thread>& out) const;
  void begin_value(const thread& t, unsigned char byte, std::vector<thread>& out);
  void read_string(thread t, unsigned char byte, std::vector<thread>& out);
  void after_member(thread t, unsigned char byte, std::vector<thread>& out);
  void after_item(thread t, unsigned char byte, std::vector<thread>& out);
  void add_items(const thread& t, std::vector<thread>& out);
  void end_value(std::uint32_t top, std::uint64_t value, std::vector<thread>& out);
  void end_container(const frame& of, std::vector<thread>& out);
  void begin_word(const thread& t, std::uint32_t which, std::vector<thread>& out) const;
  [[nodiscard]] std::uint32_t recorded(std::uint32_t top, std::uint64_t value);
  [[nodiscard]] bool may_close_object(const frame& object) const;
  [[nodiscard]] std::uint32_t push(frame::kind what, std::uint32_t spec, std::uint32_t parent);
  void merge(std::vector<thread>& out, std::size_t from);

  const program& program_;
  frame_store frames_;
  string_machine strings_;
  unique_items unique_;
  rule_machine rules_;
  std::vector<thread> items_, ended_;
  std::vector<std::uint64_t> hashes_;  // of merge
  bool overflows_ = false;             // the rules have too many ways between two bytes
};

}  // namespace skein::grammar
