#!/usr/bin/env node
// Writes regex_cases.json: random regular expressions with lookarounds, word boundaries and Unicode properties, and
// texts that Node.js matches with them or not. The same rows for the same arguments and version of Unicode.
//
//     node make_regex_cases.mjs [PATTERNS [SEED]] > regex_cases.json
//
// A row is [pattern, texts that match as a whole, texts with a match in them, other texts], flag `u`.
const [patterns = "420", seed = "1"] = process.argv.slice(2);

let state = BigInt(seed);
/** splitmix64; a whole number below `limit`. */
function below(limit) {
  state = (state + 0x9e3779b97f4a7c15n) & 0xffffffffffffffffn;
  let z = state;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & 0xffffffffffffffffn;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & 0xffffffffffffffffn;
  return Number((z ^ (z >> 31n)) % BigInt(limit));
}
const pick = (list) => list[below(list.length)];

const LETTERS = ["a", "b", "-", "1", " ", "_", "\u00e9", "\u03a9", "\n", "\u{1f600}"];
// Two of these are often more telling than ten.
const FEW = ["a", "b", "-", "a", "b", "1"];
const SETS = ["[ab]", "[^a]", "[^-]", "[a-z\\d]", "\\w", "\\W", "\\d", "\\s", ".", "\\p{L}", "\\P{L}", "[^\\p{L}]",
  "[\\p{N}-]", "[\\P{Lu}a]", "\\p{Script=Greek}", "\\p{Ll}", "[\\p{L}\\p{N}_]", "\\p{So}", "\\p{Zs}", "\\p{Emoji}",
  "\\p{Alphabetic}", "[^]", "\\p{ASCII}"];
const COUNTS = ["*", "+", "?", "{2}", "{0,2}", "{2,}", "*?", "+?", "??", "{1,3}", "{0}"];

const literal = (c) => (c === "-" ? "-" : c === "\n" ? "\\n" : c);
const assertion = (depth) =>
  below(3) === 0 ? pick(["\\b", "\\B", "^", "$", "\\b"]) : `(${pick(["?=", "?!", "?<=", "?<!"])}${choices(depth - 1)})`;

function part(depth) {
  const kind = below(12);
  if (depth > 0 && kind < 3) return assertion(depth);
  const atom =
    depth > 0 && kind < 5 ? `(?:${choices(depth - 1)})` : kind < 8 ? pick(SETS) : literal(below(2) ? pick(FEW) : pick(LETTERS));
  return below(3) === 0 ? atom + pick(COUNTS) : atom;
}
const sequence = (depth) => Array.from({ length: below(4) + (depth > 1 ? 1 : 0) }, () => part(depth)).join("");
const choices = (depth) => Array.from({ length: below(4) === 0 ? 2 : 1 }, () => sequence(depth)).join("|");

/** A counted set between assertions, which has a form of its own. */
function counted() {
  const some = () => (below(2) ? assertion(2) : "");
  const least = below(6);
  return `^${some()}${some()}${pick(SETS)}{${least},${below(3) ? least + 4 + below(5) : ""}}${some()}${some()}$`;
}

function pattern() {
  const kind = below(6);
  if (kind === 0) return counted();
  const made = choices(3);
  return kind < 3 ? `^(?:${made})$` : kind === 3 ? `^${made}` : made;
}

function text(limit) {
  const from = below(3) ? FEW : LETTERS;
  return Array.from({ length: below(limit) }, () => pick(from)).join("");
}

/** Tries the pattern at each character, as ECMA-262 says; V8 also finds empty matches between two surrogates. */
function searcher(source) {
  const here = new RegExp(source, "uy");
  return (text) => {
    for (let at = 0; at <= text.length; at += text.codePointAt(at) > 0xffff ? 2 : 1) {
      here.lastIndex = at;
      if (here.test(text)) return true;
    }
    return false;
  };
}

const rows = [], known = new Set();
while (rows.length < Number(patterns)) {
  const source = pattern();
  if (source.length > 60 || known.has(source) || !/\?[=!<]|\\[bBpP]/.test(source)) continue;
  known.add(source);
  const search = searcher(source), whole = new RegExp(`^(?:${source})$`, "u");
  const lists = [[], [], []];
  for (let i = 0; i < 60; ++i) {
    const one = text(i < 40 ? 7 : 13);
    const list = lists[whole.test(one) ? 0 : search(one) ? 1 : 2];
    if (list.length < 3 && !list.includes(one)) list.push(one);
  }
  if (lists.filter((list) => list.length).length > 1 || below(12) === 0) rows.push([source, ...lists]);
}
console.log("[\n" + rows.map((row) => JSON.stringify(row)).join(",\n") + "\n]");
