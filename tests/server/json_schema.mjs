// Checks JSON values against the subset of JSON Schema that docs/openapi.yaml uses; any other keyword is an error.

const annotations = new Set(['description', 'format']);
const kinds = {
  null: (v) => v === null, boolean: (v) => typeof v === 'boolean', string: (v) => typeof v === 'string',
  number: (v) => typeof v === 'number', integer: (v) => Number.isInteger(v), array: Array.isArray,
  object: (v) => typeof v === 'object' && v !== null && !Array.isArray(v),
};
const isList = Array.isArray;
const isNumber = kinds.number;
const isText = kinds.string;
const isObject = kinds.object;

export class Schemas {
  /** `closed`: a member that a schema's properties do not name is an error, unless additionalProperties allows it. */
  constructor(document) {
    this.document = document;
  }

  at(ref) {
    const found = ref.slice(2).split('/').reduce((node, name) => node?.[name], this.document);
    if (!found) throw new Error(`${ref} leads nowhere`);
    return found;
  }
  resolved(node) {
    return node?.$ref ? this.at(node.$ref) : node;
  }

  /** What is wrong with the value, as a list of lines. */
  faults(schema, value, { closed = false } = {}, where = '$') {
    const found = [];
    const say = (good, what) => good || found.push(`${where}: ${what}: ${JSON.stringify(value)?.slice(0, 120)}`);
    const go = (inner, v, place) => found.push(...this.faults(inner, v, { closed }, place));
    const rules = {
      $ref: (ref) => go(this.at(ref), value, where),
      type: (type) => say([type].flat().some((t) => kinds[t](value)), `is no ${[type].flat().join(' or ')}`),
      const: (one) => say(value === one, `is not ${one}`),
      enum: (all) => say(all.includes(value), `is none of ${all}`),
      minimum: (n) => say(!isNumber(value) || value >= n, `is below ${n}`),
      maximum: (n) => say(!isNumber(value) || value <= n, `is above ${n}`),
      exclusiveMinimum: (n) => say(!isNumber(value) || value > n, `is not above ${n}`),
      minLength: (n) => say(!isText(value) || value.length >= n, `is shorter than ${n}`),
      maxLength: (n) => say(!isText(value) || value.length <= n, `is longer than ${n}`),
      minItems: (n) => say(!isList(value) || value.length >= n, `has fewer than ${n} entries`),
      maxItems: (n) => say(!isList(value) || value.length <= n, `has more than ${n} entries`),
      maxProperties: (n) => say(!isObject(value) || Object.keys(value).length <= n, `has more than ${n} members`),
      items: (inner) => isList(value) && value.forEach((v, i) => go(inner, v, `${where}[${i}]`)),
      required: (names) => isObject(value) && names.forEach((name) => say(name in value, `lacks ${name}`)),
      allOf: (all) => all.forEach((inner) => go(inner, value, where)),
      anyOf: (all) => {
        const each = all.map((inner) => this.faults(inner, value, { closed }, where));
        if (!each.some((faults) => faults.length === 0))
          found.push(`${where}: fits none of ${all.length} schemas`, ...each.map((faults) => `  ${faults[0]}`));
      },
      properties: (properties) => {
        if (!isObject(value)) return;
        for (const [name, v] of Object.entries(value)) {
          if (name in properties) go(properties[name], v, `${where}.${name}`);
          else if (closed && !('additionalProperties' in schema)) say(false, `has ${name}, which is not documented`);
        }
      },
      additionalProperties: (inner) => {
        if (!isObject(value)) return;
        for (const [name, v] of Object.entries(value))
          if (!(name in (schema.properties ?? {}))) go(inner, v, `${where}.${name}`);
      },
    };
    for (const [keyword, argument] of Object.entries(schema)) {
      if (annotations.has(keyword)) continue;
      if (!rules[keyword]) throw new Error(`${where}: this reader of schemas does not know ${keyword}`);
      rules[keyword](argument);
    }
    return found;
  }

  /** The names of all members that a schema names, through $ref, allOf and anyOf. */
  members(schema) {
    const node = this.resolved(schema) ?? {};
    const parts = [...(node.allOf ?? []), ...(node.anyOf ?? [])];
    return new Set([...Object.keys(node.properties ?? {}), ...parts.flatMap((part) => [...this.members(part)])]);
  }
}
