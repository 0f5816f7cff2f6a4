#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/schema/format_rule.hpp"
#include "grammar/schema/json_tree.hpp"

namespace skein::grammar {

/// A schema with the names of its parts: base URIs, anchors, and what references point to.
class schema_document {
 public:
  /// Errors: those of parse_json_tree; unsupported for a subschema of another dialect.
  [[nodiscard]] static result<schema_document> parse(std::string_view text, dialect otherwise, const limits& of);

  [[nodiscard]] const json_tree& tree() const { return tree_; }
  [[nodiscard]] dialect rules() const { return dialect_; }
  /// In drafts up to 7 a $ref replaces the keywords beside it.
  [[nodiscard]] bool ref_replaces() const { return ref_replaces_; }
  /// Whether the type `integer`, the value at `at`, has no fraction, as in drafts 3 and 4 and the metaschema of
  /// draft 4.
  [[nodiscard]] bool has_plain_integers(std::uint32_t at) const {
    const bool in_old = at >= old_begin_ && at < old_end_;
    return in_old || dialect_ == dialect::draft3 || dialect_ == dialect::draft4;
  }
  [[nodiscard]] bool is_at_least(dialect d) const { return dialect_ == dialect::unknown || dialect_ >= d; }

  /// The value that a reference, the string value at `from`, points to. Errors: unsupported if it is not in this
  /// document.
  [[nodiscard]] result<std::uint32_t> resolve(std::uint32_t from) const;
  /// The same for $dynamicRef, if no other schema can take the place of its target. Errors: unsupported.
  [[nodiscard]] result<std::uint32_t> resolve_dynamic(std::uint32_t from) const;
  /// The same for $recursiveRef.
  [[nodiscard]] result<std::uint32_t> resolve_recursive(std::uint32_t from) const;

  /// What a reader of the schema may expect otherwise, one sentence each.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  [[nodiscard]] result<void> index();
  void add_metaschemas(const limits& of);
  [[nodiscard]] result<void> index_schema(std::uint32_t at);
  [[nodiscard]] std::string base_of(std::uint32_t at) const;

  json_tree tree_;
  dialect dialect_ = dialect::unknown;
  bool ref_replaces_ = false;
  std::uint32_t old_begin_ = 0, old_end_ = 0;  ///< the metaschema of draft 4
  std::uint32_t recursive_ = 0;                ///< number of schemas with a true $recursiveAnchor
  std::vector<std::string> notes_;
  std::unordered_map<std::uint32_t, std::string> bases_;      ///< absolute URI of a schema with $id
  std::unordered_map<std::string, std::uint32_t> resources_;  ///< the same, by URI; anchors as URI#NAME
  std::unordered_map<std::string, std::uint32_t> dynamic_;    ///< number of $dynamicAnchor of that name
};

/// A reference relative to a base URI (RFC 3986, section 5.2), without its fragment.
[[nodiscard]] std::string resolve_uri(std::string_view base, std::string_view reference);

}  // namespace skein::grammar
