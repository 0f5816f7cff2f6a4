#pragma once
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.hpp"
#include "config/config.hpp"
#include "grammar/answer_rule.hpp"
#include "protocol/requests/generation_request.hpp"
#include "tokenizer/vocabulary.hpp"

namespace skein::request {

/// The compiled grammars of recent requests, by their text and vocabulary; the least recently used one is dropped
/// first. Thread safe. Compiling takes up to a second and happens outside of the lock.
class grammar_store {
 public:
  using rule = std::shared_ptr<const grammar::answer_rule>;

  /// Whether get() would not have to compile.
  [[nodiscard]] bool has(const protocol::text_constraint& wanted, const tokenizer::vocabulary& words) const;
  /// Compiles the grammar, unless it is kept. For the worker pool if !has(). Errors: invalid_argument or unsupported,
  /// with the field of the constraint.
  [[nodiscard]] result<rule> get(const protocol::text_constraint& wanted,
                                 const std::shared_ptr<const tokenizer::vocabulary>& words,
                                 const config::limit_settings& limits);

 private:
  struct entry {
    std::string key;
    rule made;
  };
  using index_ref = std::shared_ptr<const grammar::vocabulary_index>;

  [[nodiscard]] rule find(const std::string& key);
  void keep(const std::string& key, const rule& made, std::size_t count_max);
  [[nodiscard]] index_ref index_of(const std::shared_ptr<const tokenizer::vocabulary>& words);

  mutable std::mutex mutex_;
  std::list<entry> entries_;                                                 // the last used one first
  std::unordered_map<std::string_view, std::list<entry>::iterator> by_key_;  // of entries_
  std::unordered_map<std::string, index_ref> indexes_;                       // by the vocabulary's hash
};

}  // namespace skein::request
