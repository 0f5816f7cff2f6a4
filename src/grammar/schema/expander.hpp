#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "grammar/schema/alternative.hpp"
#include "grammar/schema/document.hpp"
#include "grammar/schema/language_pool.hpp"
#include "grammar/schema/schema_notes.hpp"

namespace skein::grammar {

/// Turns a set of atoms into alternatives: resolves references, merges allOf, multiplies out anyOf, oneOf, if and
/// negations. Schemas are not followed into properties and items: those stay atoms. All loops have a bound; the nesting
/// of the schema never becomes recursion, except for the test whether branches of oneOf exclude each other, which stops
/// after a few levels.
class expander {
 public:
  expander(const schema_document& of, language_pool& languages, format_rule formats, budget& work);

  /// Errors: unsupported with the JSON pointer of the keyword; too_large; invalid_argument for a malformed schema.
  [[nodiscard]] result<std::vector<alternative>> expand(const atom_set& set);

  /// False only if it is certain that no value satisfies all of these.
  [[nodiscard]] result<bool> may_hold(const atom_set& set);

  [[nodiscard]] const schema_document& document() const { return document_; }
  [[nodiscard]] language_pool& languages() { return languages_; }
  [[nodiscard]] budget& work() { return work_; }

  /// Whether a choice whose negation is not supported may be left out; notes it.
  [[nodiscard]] bool may_drop(const atom& what, const error& why);
  /// The reason why values were left out that are valid, if any.
  [[nodiscard]] const std::optional<error>& dropped() const { return dropped_; }

  /// What is not enforced as written, each with the JSON pointer of its keyword.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_.list(); }

  [[nodiscard]] std::uint32_t referred(std::uint32_t schema);
  /// Follows references and removes atoms that always hold.
  [[nodiscard]] atom_set simplified(atom_set set);

 private:
  struct pending {
    atom what;
    std::uint32_t scope;
  };
  struct branch {
    alternative made;
    std::vector<pending> todo;
    std::vector<std::uint32_t> scopes;  ///< parent of each
    std::set<atom> applied;             ///< schemas applied in place, so that a circle of references ends
    bool forked = false;                ///< by a choice before
    std::vector<std::vector<std::vector<pending>>> forks;  ///< each: lists of atoms, one of which holds
  };
  friend class schema_reader;
  friend class negation_reader;
  friend class constant_difference;

  [[nodiscard]] result<void> apply(branch& to, const pending& next);
  [[nodiscard]] result<void> finish(branch& done);
  [[nodiscard]] static bool choose_dependencies(branch& of);
  [[nodiscard]] static std::uint64_t elements_of(const branch& of);
  [[nodiscard]] static std::uint64_t comparisons_of(const alternative& each);
  [[nodiscard]] result<void> add_formats(alternative& to);
  [[nodiscard]] result<void> add_unevaluated(branch& to) const;
  [[nodiscard]] result<bool> may_hold(const alternative& each);
  [[nodiscard]] std::string_view name_of(std::uint32_t value) const;

  const schema_document& document_;
  language_pool& languages_;
  format_rule formats_;
  budget& work_;
  std::optional<error> dropped_;
  schema_notes notes_;
  std::vector<std::uint32_t> referred_;  ///< of schemas, as far as they are known
  std::map<atom_set, bool> may_hold_;
  unsigned depth_ = 0;
};

}  // namespace skein::grammar
