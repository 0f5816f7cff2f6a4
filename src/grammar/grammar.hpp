#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/machine/program.hpp"
#include "grammar/options.hpp"

namespace skein::grammar {

/// A compiled grammar: which byte strings a model may generate. Immutable apart from a cache of masks; shared by
/// threads and by all matchers. Every function returns an error for input that is malformed (invalid_argument), not
/// supported (unsupported, naming the keyword by its JSON pointer) or above a limit (too_large); none throws or
/// recurses.
class grammar {
 public:
  /// The JSON texts that are valid for a schema of drafts 4 to 2020-12; see docs/structured-output.md.
  [[nodiscard]] static result<std::shared_ptr<const grammar>> from_json_schema(std::string_view schema,
                                                                               const options& how = {});
  /// Makes what the process compiles once for all schemas: formats and common numbers. Otherwise the first schema that
  /// needs them takes the time.
  [[nodiscard]] static result<void> prepare(const options& how = {});
  /// Any JSON object.
  [[nodiscard]] static result<std::shared_ptr<const grammar>> json_object(const options& how = {});
  /// The texts that a regular expression matches as a whole.
  [[nodiscard]] static result<std::shared_ptr<const grammar>> from_regex(std::string_view pattern,
                                                                         const options& how = {});
  /// Exactly these texts.
  [[nodiscard]] static result<std::shared_ptr<const grammar>> from_choices(std::span<const std::string> texts,
                                                                           const options& how = {});
  /// The texts of the rule `root` of a grammar in the GBNF syntax of llama.cpp.
  [[nodiscard]] static result<std::shared_ptr<const grammar>> from_gbnf(std::string_view rules,
                                                                        const options& how = {});
  /// The texts of the rule `start` of a grammar in the KBNF syntax of ai00; see compile_kbnf.
  [[nodiscard]] static result<std::shared_ptr<const grammar>> from_kbnf(std::string_view rules,
                                                                        const options& how = {});

  [[nodiscard]] const program& compiled() const { return program_; }

  /// What the schema says and the grammar does not enforce, one sentence each, beginning with a JSON pointer.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  explicit grammar(program compiled, std::vector<std::string> notes = {})
      : program_(std::move(compiled)), notes_(std::move(notes)) {}

 private:
  friend class matcher;
  friend class mask_builder;
  using mask = std::shared_ptr<const std::vector<std::uint32_t>>;

  /// A mask under a key; null if it is not cached. The cache is emptied when it is full.
  [[nodiscard]] mask cached(std::uint64_t key) const;
  void cache(std::uint64_t key, mask made) const;

  program program_;
  std::vector<std::string> notes_;
  mutable std::mutex guard_;
  mutable std::unordered_map<std::uint64_t, mask> masks_;
};

}  // namespace skein::grammar
