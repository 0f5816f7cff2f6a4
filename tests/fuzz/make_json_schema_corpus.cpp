// Writes the schemas that the fuzzer of JSON Schema starts from: make_json_schema_corpus FOLDER
#include "tests/fuzz/text_corpus.hpp"

namespace {

const char* const files[] = {
    R"({"type":"object","properties":{"a":{"type":"string","maxLength":3},"b":{"type":"integer","minimum":-5,"maximum":10.5}},"required":["a"],"additionalProperties":false})",
    R"({"$defs":{"t":{"type":"array","items":{"$ref":"#/$defs/t"},"maxItems":3}},"$ref":"#/$defs/t"})",
    R"({"oneOf":[{"const":1},{"enum":["x",null,[1],{"a":2}]},{"type":"number","multipleOf":0.5,"not":{"const":2}}]})",
    R"({"if":{"properties":{"k":{"const":"x"}}},"then":{"required":["v"]},"else":{"properties":{"w":false}},"patternProperties":{"^a+$":{"type":"boolean"}}})",
    R"({"prefixItems":[true,{"type":"string","pattern":"^[a-c]{1,20}$"}],"items":false,"contains":{"type":"string","format":"date"},"minContains":1})",
    R"({"allOf":[{"propertyNames":{"pattern":"^x","maxLength":4}},{"dependentRequired":{"xa":["xb"]}}],"minProperties":1,"maxProperties":3,"unevaluatedProperties":{"type":"null"}})",
    R"({"oneOf":[{"properties":{"a":{"type":"string"},"b":{}},"required":["b"]},{"additionalProperties":{"type":"integer"},"patternProperties":{"^p":true}},{"propertyNames":{"maxLength":2},"not":{"properties":{"a":{"minimum":1},"c":{"$ref":"#"}}}}]})",
    R"({"$schema":"http://json-schema.org/draft-03/schema#","properties":{"a":{"type":"any","required":true,"divisibleBy":2}},"extends":{"disallow":"null"},"dependencies":{"a":"b"}})",
    R"({"properties":{"s":{"$ref":"http://json-schema.org/draft-07/schema#","maxProperties":3},"e":{"type":"string","format":"regex","minLength":2,"maxLength":9000,"pattern":"(?i)^(ab)*$"}}})",
};

}  // namespace

int main(int argc, char** argv) { return skein::test::write_text_corpus(argc, argv, files); }
