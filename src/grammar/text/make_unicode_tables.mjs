#!/usr/bin/env node
// Writes unicode_tables.cpp from the Unicode data of Node.js, that is, of its own regular expressions:
//
//     node make_unicode_tables.mjs > unicode_tables.cpp
//
// A table is a text of runs, "COUNT TAG" without the space, from code point 0 on: "65Zyyy26Latn" says that the first 65
// code points are of the script Zyyy and the next 26 of Latn. "COUNTLuLl" in the table of categories is COUNT pairs of
// code points, Lu and Ll in turn.

const LAST = 0x10ffff;
const CATEGORIES = "Cc Cf Cn Co Cs Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs".split(" ");
// The short name, the long name and further names of each script.
const SCRIPTS = `
Adlm Adlam; Aghb Caucasian_Albanian; Ahom Ahom; Arab Arabic; Armi Imperial_Aramaic; Armn Armenian; Avst Avestan;
Bali Balinese; Bamu Bamum; Bass Bassa_Vah; Batk Batak; Beng Bengali; Berf Beria_Erfe; Bhks Bhaiksuki; Bopo
Bopomofo; Brah Brahmi; Brai Braille; Bugi Buginese; Buhd Buhid; Cakm Chakma; Cans Canadian_Aboriginal; Cari Carian;
Cham Cham; Cher Cherokee; Chrs Chorasmian; Copt Coptic Qaac; Cpmn Cypro_Minoan; Cprt Cypriot; Cyrl Cyrillic; Deva
Devanagari; Diak Dives_Akuru; Dogr Dogra; Dsrt Deseret; Dupl Duployan; Egyp Egyptian_Hieroglyphs; Elba Elbasan;
Elym Elymaic; Ethi Ethiopic; Gara Garay; Geor Georgian; Glag Glagolitic; Gong Gunjala_Gondi; Gonm Masaram_Gondi;
Goth Gothic; Gran Grantha; Grek Greek; Gujr Gujarati; Gukh Gurung_Khema; Guru Gurmukhi; Hang Hangul; Hani Han; Hano
Hanunoo; Hatr Hatran; Hebr Hebrew; Hira Hiragana; Hluw Anatolian_Hieroglyphs; Hmng Pahawh_Hmong; Hmnp
Nyiakeng_Puachue_Hmong; Hung Old_Hungarian; Ital Old_Italic; Java Javanese; Kali Kayah_Li; Kana Katakana; Kawi
Kawi; Khar Kharoshthi; Khmr Khmer; Khoj Khojki; Kits Khitan_Small_Script; Knda Kannada; Krai Kirat_Rai; Kthi
Kaithi; Lana Tai_Tham; Laoo Lao; Latn Latin; Lepc Lepcha; Limb Limbu; Lina Linear_A; Linb Linear_B; Lisu Lisu; Lyci
Lycian; Lydi Lydian; Mahj Mahajani; Maka Makasar; Mand Mandaic; Mani Manichaean; Marc Marchen; Medf Medefaidrin;
Mend Mende_Kikakui; Merc Meroitic_Cursive; Mero Meroitic_Hieroglyphs; Mlym Malayalam; Modi Modi; Mong Mongolian;
Mroo Mro; Mtei Meetei_Mayek; Mult Multani; Mymr Myanmar; Nagm Nag_Mundari; Nand Nandinagari; Narb
Old_North_Arabian; Nbat Nabataean; Newa Newa; Nkoo Nko; Nshu Nushu; Ogam Ogham; Olck Ol_Chiki; Onao Ol_Onal; Orkh
Old_Turkic; Orya Oriya; Osge Osage; Osma Osmanya; Ougr Old_Uyghur; Palm Palmyrene; Pauc Pau_Cin_Hau; Perm
Old_Permic; Phag Phags_Pa; Phli Inscriptional_Pahlavi; Phlp Psalter_Pahlavi; Phnx Phoenician; Plrd Miao; Prti
Inscriptional_Parthian; Rjng Rejang; Rohg Hanifi_Rohingya; Runr Runic; Samr Samaritan; Sarb Old_South_Arabian; Saur
Saurashtra; Sgnw SignWriting; Shaw Shavian; Shrd Sharada; Sidd Siddham; Sidt Sidetic; Sind Khudawadi; Sinh Sinhala;
Sogd Sogdian; Sogo Old_Sogdian; Sora Sora_Sompeng; Soyo Soyombo; Sund Sundanese; Sunu Sunuwar; Sylo Syloti_Nagri;
Syrc Syriac; Tagb Tagbanwa; Takr Takri; Tale Tai_Le; Talu New_Tai_Lue; Taml Tamil; Tang Tangut; Tavt Tai_Viet; Tayo
Tai_Yo; Telu Telugu; Tfng Tifinagh; Tglg Tagalog; Thaa Thaana; Thai Thai; Tibt Tibetan; Tirh Tirhuta; Tnsa Tangsa;
Todr Todhri; Tols Tolong_Siki; Toto Toto; Tutg Tulu_Tigalari; Ugar Ugaritic; Vaii Vai; Vith Vithkuqi; Wara
Warang_Citi; Wcho Wancho; Xpeo Old_Persian; Xsux Cuneiform; Yezi Yezidi; Yiii Yi; Zanb Zanabazar_Square; Zinh
Inherited Qaai; Zyyy Common
`.trim().replace(/\s+/g, " ").replaceAll("; ", ";");
// Binary properties: names, and the categories that make up most of each. The table has what is to be added and removed.
const BINARY = [
  ["Alphabetic", "Alpha", "Lu Ll Lt Lm Lo Nl"],
  ["Lowercase", "Lower", "Ll"],
  ["Uppercase", "Upper", "Lu"],
  ["White_Space", "space", "Zs Zl Zp"],
  ["ID_Start", "IDS", "Lu Ll Lt Lm Lo Nl"],
  ["ID_Continue", "IDC", "Lu Ll Lt Lm Lo Nl Mn Mc Nd Pc"],
  ["Hex_Digit", "Hex", ""],
  ["ASCII_Hex_Digit", "AHex", ""],
  ["Emoji", "Emoji", ""],
  ["Emoji_Presentation", "EPres", ""],
  ["Extended_Pictographic", "ExtPict", ""],
];

const matcher = (property) => {
  const expression = new RegExp(`^\\p{${property}}$`, "u");
  return (code) => expression.test(String.fromCodePoint(code));
};

/** The runs of equal tags as [count, tag]. */
function runs(tagOf) {
  const made = [];
  for (let code = 0; code <= LAST; ++code) {
    const tag = tagOf(code);
    if (made.length && made.at(-1)[1] === tag) ++made.at(-1)[0];
    else made.push([1, tag]);
  }
  return made;
}

/** Replaces [1, "Lu"], [1, "Ll"], [1, "Lu"], [1, "Ll"] by [2, "LuLl"]. */
function paired(list) {
  const made = [];
  for (let i = 0; i < list.length; ++i) {
    const isPair = i + 1 < list.length && list[i].join("") === "1Lu" && list[i + 1].join("") === "1Ll";
    if (!isPair) {
      made.push(list[i]);
      continue;
    }
    ++i;
    if (made.length && made.at(-1)[1] === "LuLl") ++made.at(-1)[0];
    else made.push([1, "LuLl"]);
  }
  return made;
}

/** The first of the tags whose property has the code point; most neighbours have the same tag. */
function tagger(tags, property, otherwise) {
  const has = tags.map((tag) => matcher(property + tag));
  let last = 0;
  return (code) => {
    if (!has[last](code)) last = has.findIndex((one) => one(code));
    if (last >= 0) return tags[last];
    last = 0;
    return otherwise;
  };
}

const write = (list) => list.map(([count, tag]) => `${count}${tag}`).join("");
/** As string literals of C++, broken into lines. */
const literal = (text) => text.match(/.{1,112}/gs).map((line) => `    "${line}"`).join("\n");

const categoryOf = tagger(CATEGORIES, "gc=");
const scripts = SCRIPTS.split(";").map((names) => names.split(" "));
scripts.flat().forEach((name) => matcher(`sc=${name}`));  // throws if Node.js does not know the name

const binary = BINARY.map(([name, short, categories]) => {
  const has = matcher(name), usual = categories.split(" ").filter(Boolean).map((one) => matcher(`gc=${one}`));
  const change = (code) => {
    const is = has(code), was = usual.some((one) => one(code));
    return is === was ? "n" : is ? "a" : "r";
  };
  return `    {"${name}", "${short}", "${categories}",\n${literal(write(runs(change)))}},\n`;
});

process.stdout.write(`// Written by make_unicode_tables.mjs, which describes the form; do not edit. Unicode ${process.versions.unicode}.
#include "grammar/text/unicode_tables.hpp"

#include <iterator>

namespace skein::grammar {

const char* const unicode_category_runs =
${literal(write(paired(runs(categoryOf))))};

const char* const unicode_script_names =
${literal(SCRIPTS)};

const char* const unicode_script_runs =
${literal(write(runs(tagger(scripts.map(([short]) => short), "sc=", "Zzzz"))))};

const unicode_binary_property unicode_binary_properties[] = {
${binary.join("")}};
const std::size_t unicode_binary_property_count = std::size(unicode_binary_properties);

}  // namespace skein::grammar
`);
