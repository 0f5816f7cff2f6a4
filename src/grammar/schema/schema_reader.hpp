#pragma once
#include <cstdint>
#include <string>

#include "grammar/schema/expander.hpp"

namespace skein::grammar {

/// What the readers of keywords share: access to values, with errors that name the keyword by its JSON pointer.
class keyword_values {
 public:
  explicit keyword_values(const schema_document& of) : document_(of), tree_(of.tree()) {}

  [[nodiscard]] error malformed(std::uint32_t value, const std::string& expected) const;
  [[nodiscard]] error not_supported(std::uint32_t value, const std::string& why) const;

  [[nodiscard]] result<std::uint64_t> count(std::uint32_t value) const;
  [[nodiscard]] result<decimal> number(std::uint32_t value, const limits& of) const;
  /// The types that a `type` names. `integer` is set if they include integers but not all numbers.
  struct type_list {
    std::uint8_t types = 0;
    bool integer = false;
  };
  [[nodiscard]] result<type_list> types(std::uint32_t value) const;
  /// $ref, $dynamicRef and $recursiveRef, and the schema that one of them points to.
  [[nodiscard]] static bool is_reference(std::string_view keyword);
  [[nodiscard]] result<std::uint32_t> target(std::uint32_t value) const;
  [[nodiscard]] result<void> expect(std::uint32_t value, json_kind kind, const char* expected) const;
  [[nodiscard]] result<void> expect_strings(std::uint32_t list) const;
  /// The bound of minimum or maximum, with the boolean exclusiveMinimum of draft 4 beside it.
  [[nodiscard]] bool is_exclusive_by_flag(std::uint32_t value, const char* flag) const;
  /// In draft 3, a property says itself whether it must be there.
  [[nodiscard]] bool is_required_by_draft3(std::uint32_t property) const;
  /// True if the document says nothing but keywords that some validators take for annotations, and this is one of them.
  [[nodiscard]] bool is_alone(std::uint32_t keyword) const;
  /// True if the dialect gives this keyword no meaning.
  [[nodiscard]] bool is_ignored(std::uint32_t value) const;
  [[nodiscard]] std::uint32_t sibling(std::uint32_t value, const char* name) const {
    return tree_.member(tree_[value].parent, name);
  }

 protected:
  const schema_document& document_;
  const json_tree& tree_;
};

/// Applies the keywords of a subschema to a branch.
class schema_reader : keyword_values {
 public:
  schema_reader(expander& with, expander::branch& to) : keyword_values(with.document()), with_(with), to_(to) {}

  [[nodiscard]] result<void> apply(std::uint32_t schema, std::uint32_t scope);

 private:
  [[nodiscard]] result<void> keyword(std::uint32_t value, std::uint32_t scope);
  [[nodiscard]] result<bool> number_keyword(const std::string& key, std::uint32_t value);
  [[nodiscard]] result<bool> size_keyword(const std::string& key, std::uint32_t value);
  [[nodiscard]] result<bool> combining_keyword(const std::string& key, std::uint32_t value, std::uint32_t scope);
  [[nodiscard]] result<bool> object_keyword(const std::string& key, std::uint32_t value, std::uint32_t scope);
  [[nodiscard]] result<void> object_layer(std::uint32_t schema, std::uint32_t scope);
  [[nodiscard]] result<void> array_layer(std::uint32_t schema, std::uint32_t scope);
  [[nodiscard]] result<void> contains(std::uint32_t value, std::uint32_t scope);
  [[nodiscard]] result<void> enumeration(std::uint32_t value, std::uint32_t scope);
  [[nodiscard]] result<void> any_of(std::uint32_t value, std::uint32_t scope);
  [[nodiscard]] result<void> one_of(std::uint32_t value, std::uint32_t scope);
  [[nodiscard]] result<void> dependencies(std::uint32_t value, std::uint32_t scope);
  [[nodiscard]] result<void> draft3_keyword(std::uint32_t value, std::uint32_t scope);
  void condition(std::uint32_t value, std::uint32_t scope);
  [[nodiscard]] bool is_tracked(std::uint32_t scope) const;
  std::uint32_t inner(std::uint32_t scope);
  void add(atom what, std::uint32_t scope) { to_.todo.push_back({what, scope}); }

  expander& with_;
  expander::branch& to_;
};

/// Applies the negation of a subschema or of one keyword.
class negation_reader : keyword_values {
 public:
  negation_reader(expander& with, expander::branch& to) : keyword_values(with.document()), with_(with), to_(to) {}

  [[nodiscard]] result<void> negate_schema(std::uint32_t schema);
  [[nodiscard]] result<void> negate_keyword(std::uint32_t value);
  [[nodiscard]] result<void> match_fails(std::uint32_t member);
  [[nodiscard]] result<void> member_fails(std::uint32_t properties);

 private:
  [[nodiscard]] std::vector<std::uint32_t> failing_members(std::uint32_t properties) const;
  void add_failing_members(std::uint32_t properties, std::vector<std::vector<atom>>& to) const;
  [[nodiscard]] result<std::uint32_t> name_pattern(std::uint32_t member);
  [[nodiscard]] result<bool> add_witness(std::uint32_t value, object_rules::witness made);
  [[nodiscard]] result<bool> negate_size(const std::string& key, std::uint32_t value);
  [[nodiscard]] result<bool> negate_number(const std::string& key, std::uint32_t value);
  [[nodiscard]] result<bool> negate_combination(const std::string& key, std::uint32_t value);
  [[nodiscard]] result<bool> negate_object(const std::string& key, std::uint32_t value);
  [[nodiscard]] result<bool> negate_array(const std::string& key, std::uint32_t value);
  [[nodiscard]] bool never_fails(std::uint32_t value) const;
  void choose(const std::vector<std::vector<atom>>& choices);
  void require(atom what) { to_.todo.push_back({what, no_scope}); }
  void only(std::uint8_t types);

  static constexpr std::uint32_t no_scope = ~std::uint32_t{0};
  expander& with_;
  expander::branch& to_;
};

/// Keywords that state something about values; the others are annotations.
[[nodiscard]] bool is_assertion(std::string_view keyword);

}  // namespace skein::grammar
