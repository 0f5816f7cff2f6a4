#include "grammar/schema/document.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/utf8.hpp"
#include "grammar/text/metaschemas.hpp"

namespace skein::grammar {
namespace {

constexpr std::array one_schema{"additionalProperties",
                                "additionalItems",
                                "items",
                                "contains",
                                "not",
                                "if",
                                "then",
                                "else",
                                "propertyNames",
                                "unevaluatedItems",
                                "unevaluatedProperties",
                                "contentSchema"};
constexpr std::array list_of_schemas{"allOf", "anyOf", "oneOf", "prefixItems", "items"};
constexpr std::array map_of_schemas{"properties",  "patternProperties", "$defs",
                                    "definitions", "dependentSchemas",  "dependencies"};

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<const char*, N>& names) {
  return std::ranges::any_of(names, [&](const char* each) { return name == each; });
}

struct uri_parts {
  std::string_view scheme, authority, path, query;
  bool has_authority = false;
};

uri_parts split_uri(std::string_view uri) {
  uri_parts parts;
  uri = uri.substr(0, uri.find('#'));
  const auto colon = uri.find(':');
  if (colon != std::string_view::npos && uri.find_first_of("/?") > colon) {
    parts.scheme = uri.substr(0, colon);
    uri.remove_prefix(colon + 1);
  }
  if (uri.starts_with("//")) {
    parts.has_authority = true;
    const auto end = std::min(uri.find_first_of("/?", 2), uri.size());
    parts.authority = uri.substr(2, end - 2);
    uri.remove_prefix(end);
  }
  const auto query = std::min(uri.find('?'), uri.size());
  parts.path = uri.substr(0, query);
  parts.query = uri.substr(query);
  return parts;
}

std::string without_dots(std::string_view path) {
  std::vector<std::string_view> kept;
  const bool absolute = path.starts_with('/');
  bool slash = path.ends_with('/');
  std::size_t at = absolute ? 1 : 0;
  while (at <= path.size()) {
    const auto end = std::min(path.find('/', at), path.size());
    const auto part = path.substr(at, end - at);
    if (part == "..") {
      if (!kept.empty()) kept.pop_back();
      slash = slash || end == path.size();
    } else if (part == ".") {
      slash = slash || end == path.size();
    } else if (!part.empty()) {
      kept.push_back(part);
    }
    at = end + 1;
  }
  std::string made = absolute ? "/" : "";
  for (std::size_t i = 0; i < kept.size(); ++i) made.append(i > 0 ? "/" : "").append(kept[i]);
  if (slash && !kept.empty()) made += '/';
  return made;
}

/// Decodes %XX; ill-formed escapes stay.
std::string percent_decoded(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
      made += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      made += text[i];
    }
  }
  return made;
}

std::string pointer_step(std::string_view text) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '~' && i + 1 < text.size() && (text[i + 1] == '0' || text[i + 1] == '1'))
      made += text[++i] == '0' ? '~' : '/';
    else
      made += text[i];
  }
  return made;
}

std::uint32_t at_pointer(const json_tree& tree, std::uint32_t from, std::string_view pointer) {
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const auto end = std::min(pointer.find('/'), pointer.size());
    from = tree.child(from, pointer_step(pointer.substr(0, end)));
    if (from == json_tree::none) return from;
    pointer.remove_prefix(end);
  }
  return from;
}

/// The name of the latest draft, whichever that is.
bool is_latest(std::string_view uri) {
  return uri.substr(0, uri.find('#')).ends_with("://json-schema.org/schema") || uri.empty();
}

struct dialect_name {
  dialect rules;
  bool exact;  ///< spelled as in the specification
};

/// The dialect of a $schema; nothing if it is not known. Drafts that were published under several names (hyper-schema,
/// with https) have the same rules.
std::optional<dialect_name> dialect_of(std::string_view uri) {
  const bool exact =
      uri.starts_with("http://json-schema.org/draft-") || uri.starts_with("https://json-schema.org/draft/");
  if (uri.ends_with('#')) uri.remove_suffix(1);
  const bool bare = uri.ends_with("/schema");
  while (uri.ends_with('#') || uri.ends_with('/')) uri.remove_suffix(1);
  for (const std::string_view name : {"/hyper-schema", "/schema"}) {
    if (!uri.ends_with(name)) continue;
    uri.remove_suffix(name.size());
    break;
  }
  static constexpr std::pair<std::string_view, dialect> known[] = {
      {"draft-01", dialect::draft3}, {"draft-02", dialect::draft3},         {"draft-03", dialect::draft3},
      {"draft-04", dialect::draft4}, {"draft-05", dialect::draft4},         {"draft-06", dialect::draft6},
      {"draft-07", dialect::draft7}, {"draft/2019-09", dialect::draft2019}, {"draft/2020-12", dialect::draft2020}};
  for (const auto& [name, rules] : known)
    if (uri.ends_with("json-schema.org/" + std::string(name))) return dialect_name{rules, exact && bare};
  return std::nullopt;
}

}  // namespace

std::string resolve_uri(std::string_view base, std::string_view reference) {
  const auto r = split_uri(reference), b = split_uri(base);
  const auto joined = [](std::string_view scheme, bool has_authority, std::string_view authority, std::string_view path,
                         std::string_view query) {
    std::string made(scheme);
    if (!scheme.empty()) made += ':';
    if (has_authority) made.append("//").append(authority);
    return made.append(path).append(query);
  };
  if (!r.scheme.empty()) return joined(r.scheme, r.has_authority, r.authority, r.path, r.query);
  if (r.has_authority) return joined(b.scheme, true, r.authority, without_dots(r.path), r.query);
  if (r.path.empty())
    return joined(b.scheme, b.has_authority, b.authority, b.path, r.query.empty() ? b.query : r.query);
  if (r.path.starts_with('/')) return joined(b.scheme, b.has_authority, b.authority, without_dots(r.path), r.query);
  std::string merged;
  if (b.has_authority && b.path.empty())
    merged = "/";
  else if (const auto slash = b.path.rfind('/'); slash != std::string_view::npos)
    merged = b.path.substr(0, slash + 1);
  merged += r.path;
  return joined(b.scheme, b.has_authority, b.authority, without_dots(merged), r.query);
}

result<schema_document> schema_document::parse(std::string_view text, dialect otherwise, const limits& of) {
  auto tree = parse_json_tree(text, of);
  if (!tree) return tree.error();
  schema_document made;
  made.tree_ = std::move(*tree);
  made.dialect_ = otherwise;
  made.ref_replaces_ = otherwise >= dialect::draft3 && otherwise <= dialect::draft7;
  const auto given = made.tree_.member(0, "$schema");
  if (given != json_tree::none && made.tree_.is(given, json_kind::string)) {
    const auto& uri = made.tree_[given].text;
    if (const auto found = dialect_of(uri)) {
      made.dialect_ = found->rules;
      // Validators that do not know the other spellings take them for the latest draft, in which both count. That is
      // right for the texts that are valid by either rule.
      made.ref_replaces_ = found->exact && found->rules <= dialect::draft7;
    } else if (uri.find("2019-09") != std::string::npos || uri.find("2020-12") != std::string::npos) {
      // A metaschema of one's own may leave out vocabularies, so that keywords mean nothing.
      return error{error_kind::unsupported, "/$schema: a metaschema other than those of the standard is not supported",
                   "$schema"};
    } else if (!is_latest(uri)) {
      made.notes_.push_back("/$schema: the dialect " + std::string(utf8_prefix(uri, 100)) +
                            " is not known; read as a schema without $schema");
    }
  }
  if (const auto indexed = made.index(); !indexed) return indexed.error();
  made.add_metaschemas(of);
  return made;
}

/// Adds the metaschemas that references name, as further roots of the tree. They follow the rules of the document, but
/// for what an integer is, so only those are added whose keywords these know.
void schema_document::add_metaschemas(const limits& of) {
  static constexpr std::pair<int, dialect> drafts[] = {
      {4, dialect::draft4}, {6, dialect::draft6}, {7, dialect::draft7}};
  for (const auto& [draft, rules] : drafts) {
    const auto name = metaschema_name(draft);
    const auto is_named = [&](const json_tree::value& each) {
      return each.key == "$ref" && each.text.substr(0, each.text.find('#')) == name;
    };
    if (!is_at_least(rules) || resources_.contains(name) || std::ranges::none_of(tree_.values, is_named)) continue;
    auto more = parse_json_tree(metaschema(draft), of);
    if (!more) continue;  // the limits are too low for it
    const auto root = static_cast<std::uint32_t>(tree_.values.size());
    for (auto& each : more->values) {
      if (each.parent != json_tree::none) each.parent += root;
      for (auto& child : each.children) child += root;
      tree_.values.push_back(std::move(each));
    }
    if (rules == dialect::draft4) {
      old_begin_ = root;
      old_end_ = static_cast<std::uint32_t>(tree_.values.size());
    }
    bases_[root] = name;
    resources_[name] = root;
  }
}

result<void> schema_document::index() {
  bases_[0] = "";
  resources_[""] = 0;
  std::vector<std::uint32_t> pending{0};
  while (!pending.empty()) {
    const auto at = pending.back();
    pending.pop_back();
    if (!tree_.is(at, json_kind::object)) continue;
    if (const auto done = index_schema(at); !done) return done;
    for (const auto child : tree_[at].children) {
      const auto& key = tree_[child].key;
      const auto& inner = tree_[child].children;
      if (tree_.is(child, json_kind::object) && is_one_of(key, one_schema)) pending.push_back(child);
      if (tree_.is(child, json_kind::object) && is_one_of(key, map_of_schemas))
        pending.insert(pending.end(), inner.begin(), inner.end());
      if (tree_.is(child, json_kind::array) && is_one_of(key, list_of_schemas))
        pending.insert(pending.end(), inner.begin(), inner.end());
    }
  }
  return {};
}

result<void> schema_document::index_schema(std::uint32_t at) {
  const auto text_of = [&](const char* name) -> const std::string* {
    const auto member = tree_.member(at, name);
    return member != json_tree::none && tree_.is(member, json_kind::string) ? &tree_[member].text : nullptr;
  };
  const bool replaced = ref_replaces() && tree_.member(at, "$ref") != json_tree::none;
  if (at != 0 && text_of("$schema")) {
    const auto inner = dialect_of(*text_of("$schema"));
    if (inner && inner->rules != dialect_)
      return error{error_kind::unsupported,
                   tree_.pointer(at) + "/$schema: a subschema with another dialect is not supported", "$schema"};
  }
  const bool is_old = dialect_ == dialect::draft3 || dialect_ == dialect::draft4;
  const std::string* id = text_of(is_old ? "id" : "$id");
  if (id && !replaced) {
    if (id->starts_with('#')) {
      resources_[base_of(at) + *id] = at;
    } else {
      const auto base = resolve_uri(at == 0 ? "" : base_of(tree_[at].parent), *id);
      bases_[at] = base;
      resources_.try_emplace(base, at);
    }
  }
  if (!is_at_least(dialect::draft2019)) return {};
  const auto recursive = tree_.member(at, "$recursiveAnchor");
  if (recursive != json_tree::none && tree_.is(recursive, json_kind::truth)) ++recursive_;
  if (const auto* anchor = text_of("$anchor")) resources_[base_of(at) + '#' + *anchor] = at;
  if (const auto* anchor = text_of("$dynamicAnchor")) {
    resources_[base_of(at) + '#' + *anchor] = at;
    ++dynamic_[*anchor];
  }
  return {};
}

std::string schema_document::base_of(std::uint32_t at) const {
  for (;; at = tree_[at].parent)
    if (const auto found = bases_.find(at); found != bases_.end()) return found->second;
}

result<std::uint32_t> schema_document::resolve(std::uint32_t from) const {
  const auto missing = [&] {
    return error{error_kind::unsupported,
                 tree_.pointer(from) + ": the target " + tree_[from].text.substr(0, 200) +
                     " is not in the schema; references to other documents are not supported",
                 "$ref"};
  };
  const std::string_view reference = tree_[from].text;
  const auto hash = reference.find('#');
  const std::string base = resolve_uri(base_of(tree_[from].parent), reference.substr(0, hash));
  const std::string fragment =
      hash == std::string_view::npos ? std::string() : percent_decoded(reference.substr(hash + 1));
  if (!fragment.empty() && !fragment.starts_with('/')) {
    const auto anchor = resources_.find(base + '#' + fragment);
    if (anchor == resources_.end()) return missing();
    return anchor->second;
  }
  const auto resource = resources_.find(base);
  if (resource == resources_.end()) return missing();
  const auto target = at_pointer(tree_, resource->second, fragment);
  if (target == json_tree::none) return missing();
  return target;
}

result<std::uint32_t> schema_document::resolve_dynamic(std::uint32_t from) const {
  auto target = resolve(from);
  if (!target) return target;
  const auto anchor = tree_.member(*target, "$dynamicAnchor");
  const bool dynamic = anchor != json_tree::none && tree_[from].text.ends_with("#" + tree_[anchor].text);
  const auto count = dynamic ? dynamic_.find(tree_[anchor].text) : dynamic_.end();
  if (count != dynamic_.end() && count->second > 1)
    return error{error_kind::unsupported,
                 tree_.pointer(from) + ": $dynamicRef is supported only if one schema has its $dynamicAnchor",
                 "$dynamicRef"};
  return target;
}

result<std::uint32_t> schema_document::resolve_recursive(std::uint32_t from) const {
  auto target = resolve(from);
  if (!target) return target;
  const auto anchor = tree_.member(*target, "$recursiveAnchor");
  if (anchor != json_tree::none && tree_.is(anchor, json_kind::truth) && recursive_ > 1)
    return error{error_kind::unsupported,
                 tree_.pointer(from) + ": $recursiveRef is supported only if one schema has a true $recursiveAnchor",
                 "$recursiveRef"};
  return target;
}

}  // namespace skein::grammar
