#!/usr/bin/env node
// Writes property_sums.json: for Unicode properties, the number of their code points without surrogates, and the sum
// s * 31 + code over them, modulo 2^32, of Node.js.
//
//     node make_property_sums.mjs > property_sums.json
import { readFileSync } from "node:fs";

const tables = readFileSync(new URL("../../src/grammar/text/make_unicode_tables.mjs", import.meta.url), "utf8");
const scripts = tables.match(/const SCRIPTS = `([^`]*)`/)[1].trim().split(/\s*;\s*/).map((names) => names.split(/\s+/));
const names = [
  ..."C Cc Cf Cn Co Cs L LC Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs".split(" "),
  ..."Letter Combining_Mark punct digit cntrl gc=Lu General_Category=Uppercase_Letter Any ASCII Assigned".split(" "),
  ..."Alphabetic Lowercase Uppercase White_Space ID_Start ID_Continue Hex_Digit ASCII_Hex_Digit Emoji".split(" "),
  ..."Emoji_Presentation Extended_Pictographic Alpha space EPres Script=Latin".split(" "),
  ...scripts.map((all) => `sc=${all.at(-1)}`),
];
const rows = names.map((name) => {
  const has = new RegExp(`\\p{${name}}`, "u");
  let count = 0, sum = 0;
  for (let code = 0; code <= 0x10ffff; ++code) {
    if ((code >= 0xd800 && code <= 0xdfff) || !has.test(String.fromCodePoint(code))) continue;
    ++count;
    sum = (Math.imul(sum, 31) + code) >>> 0;
  }
  return JSON.stringify([name, count, sum]);
});
console.log("[\n" + rows.join(",\n") + "\n]");
