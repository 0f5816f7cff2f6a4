#include "grammar/text/metaschemas.hpp"

namespace skein::grammar {
namespace {

constexpr std::string_view any = "{}", text = R"({"type":"string"})", number = R"({"type":"number"})",
                           truth = R"({"type":"boolean"})", schema = R"({"$ref":"#"})",
                           expression = R"({"type":"string","format":"regex"})",
                           schemas = R"({"$ref":"#/definitions/schemaArray"})",
                           names = R"({"$ref":"#/definitions/stringArray"})",
                           map = R"({"type":"object","additionalProperties":{"$ref":"#"}})",
                           schema_or_truth = R"({"anyOf":[{"type":"boolean"},{"$ref":"#"}]})";
constexpr std::string_view count = "count", count_or_0 = "count or 0";  // their names differ between drafts

struct keyword {
  std::string_view name, value;
  int first = 4, last = 7;
};
constexpr keyword keywords[] = {
    {"id", text, 4, 4},
    {"$id", text, 6},
    {"$schema", text},
    {"$ref", text, 6},
    {"$comment", text, 7},
    {"title", text},
    {"description", text},
    {"default", any},
    {"readOnly", truth, 7},
    {"writeOnly", truth, 7},
    {"examples", R"({"type":"array"})", 6},
    {"multipleOf", R"({"type":"number","minimum":0,"exclusiveMinimum":true})", 4, 4},
    {"multipleOf", R"({"type":"number","exclusiveMinimum":0})", 6},
    {"maximum", number},
    {"minimum", number},
    {"exclusiveMaximum", truth, 4, 4},
    {"exclusiveMinimum", truth, 4, 4},
    {"exclusiveMaximum", number, 6},
    {"exclusiveMinimum", number, 6},
    {"maxLength", count},
    {"minLength", count_or_0},
    {"pattern", expression},
    {"additionalItems", schema_or_truth, 4, 4},
    {"additionalItems", schema, 6},
    {"items", R"({"anyOf":[{"$ref":"#"},{"$ref":"#/definitions/schemaArray"}]})"},
    {"maxItems", count},
    {"minItems", count_or_0},
    {"uniqueItems", truth},
    {"contains", schema, 6},
    {"maxProperties", count},
    {"minProperties", count_or_0},
    {"required", names},
    {"additionalProperties", schema_or_truth, 4, 4},
    {"additionalProperties", schema, 6},
    {"definitions", map},
    {"properties", map},
    {"patternProperties", map, 4, 6},
    {"patternProperties", R"({"type":"object","additionalProperties":{"$ref":"#"},"propertyNames":{"format":"regex"}})",
     7},
    {"dependencies",
     R"({"type":"object","additionalProperties":{"anyOf":[{"$ref":"#"},{"$ref":"#/definitions/stringArray"}]}})"},
    {"propertyNames", schema, 6},
    {"const", any, 6},
    {"enum", R"({"type":"array","minItems":1,"uniqueItems":true})", 4, 4},
    {"enum", R"({"type":"array"})", 6},
    {"type", R"({"anyOf":[{"$ref":"#/definitions/simpleTypes"},{"type":"array","minItems":1,"uniqueItems":true,)"
             R"("items":{"$ref":"#/definitions/simpleTypes"}}]})"},
    {"format", text},
    {"contentMediaType", text, 7},
    {"contentEncoding", text, 7},
    {"if", schema, 7},
    {"then", schema, 7},
    {"else", schema, 7},
    {"allOf", schemas},
    {"anyOf", schemas},
    {"oneOf", schemas},
    {"not", schema},
};

void add(std::string& to, std::string_view name, std::string_view value) {
  if (to.back() != '{') to += ',';
  to.append("\"").append(name).append("\":").append(value);
}

}  // namespace

std::string metaschema_name(int draft) { return "http://json-schema.org/draft-0" + std::to_string(draft) + "/schema"; }

std::string metaschema(int draft) {
  const std::string counted = draft == 4 ? "positiveInteger" : "nonNegativeInteger";
  const std::string count_at = R"({"$ref":"#/definitions/)" + counted + "\"}";
  const std::string count_or_0_at = R"({"$ref":"#/definitions/)" + counted + R"(Default0"})";
  std::string definitions = "{";
  add(definitions, "schemaArray", R"({"type":"array","minItems":1,"items":{"$ref":"#"}})");
  add(definitions, counted, R"({"type":"integer","minimum":0})");
  add(definitions, counted + "Default0", R"({"allOf":[)" + count_at + R"(,{"default":0}]})");
  add(definitions, "simpleTypes", R"({"enum":["array","boolean","integer","null","number","object","string"]})");
  add(definitions, "stringArray",
      draft == 4 ? R"({"type":"array","items":{"type":"string"},"uniqueItems":true,"minItems":1})"
                 : R"({"type":"array","items":{"type":"string"},"uniqueItems":true})");
  std::string properties = "{";
  for (const auto& each : keywords)
    if (each.first <= draft && draft <= each.last)
      add(properties, each.name,
          each.value == count        ? std::string_view(count_at)
          : each.value == count_or_0 ? std::string_view(count_or_0_at)
                                     : each.value);
  std::string made = "{";
  add(made, "type", draft == 4 ? R"("object")" : R"(["object","boolean"])");
  add(made, "definitions", definitions + "}");
  add(made, "properties", properties + "}");
  if (draft == 4) add(made, "dependencies", R"({"exclusiveMaximum":["maximum"],"exclusiveMinimum":["minimum"]})");
  return made + "}";
}

}  // namespace skein::grammar
