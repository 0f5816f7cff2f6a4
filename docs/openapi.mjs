#!/usr/bin/env node
// Converts docs/openapi.yaml to docs/openapi.json, which the server returns at /openapi.json, without npm packages.
//
//     docs/openapi.mjs --write    write docs/openapi.json
//     docs/openapi.mjs --check    exit 1 if docs/openapi.json is not the same document
//
// The subset of YAML: block maps and lists, flow maps and lists on one line, plain, 'single' and "double" quoted
// scalars on one line, comment lines. Anything else (anchors, tags, block scalars) is an error with its line.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const yamlFile = fileURLToPath(new URL('openapi.yaml', import.meta.url));
const jsonFile = fileURLToPath(new URL('openapi.json', import.meta.url));

/** A plain scalar: null, a boolean, a number or text. */
function plain(text) {
  if (text === 'null' || text === '~' || text === '') return null;
  if (text === 'true' || text === 'false') return text === 'true';
  if (/^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$/.test(text)) return Number(text);
  if (/^[&*!|>%@`]/.test(text)) throw new Error(`"${text}" is beyond the subset of YAML`);
  return text;
}

/** Reads a value that ends on its line: quoted, flow or plain. */
class Line {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }
  get next() {
    return this.text[this.at];
  }
  blanks() {
    while (this.next === ' ') ++this.at;
  }
  take(char) {
    this.blanks();
    if (this.next !== char) throw new Error(`"${char}" is expected at "${this.text.slice(this.at)}"`);
    ++this.at;
  }
  quoted() {
    if (this.next === '"') {
      const [found] = /^"(?:[^"\\]|\\.)*"/.exec(this.text.slice(this.at)) ?? [];
      if (!found) throw new Error('a quotation has no end');
      this.at += found.length;
      return JSON.parse(found);
    }
    const [found] = /^'(?:[^']|'')*'/.exec(this.text.slice(this.at)) ?? [];
    if (!found) throw new Error('a quotation has no end');
    this.at += found.length;
    return found.slice(1, -1).replaceAll("''", "'");
  }
  /** A value; inside of flow collections a plain one ends before , ] and }, as a key before its colon. */
  value(inFlow = false, isKey = false) {
    this.blanks();
    if (this.next === '"' || this.next === "'") return this.quoted();
    if (this.next === '[') return this.list();
    if (this.next === '{') return this.map();
    const rest = this.text.slice(this.at);
    const end = rest.search(isKey ? /:( |$)/ : inFlow ? /[,\]}]/ : /$| #/);
    const word = (end < 0 ? rest : rest.slice(0, end)).trim();
    this.at += end < 0 ? rest.length : end;
    return isKey ? word : plain(word);
  }
  list() {
    const all = [];
    this.take('[');
    for (this.blanks(); this.next !== ']'; this.blanks()) {
      all.push(this.value(true));
      this.blanks();
      if (this.next !== ']') this.take(',');
    }
    this.take(']');
    return all;
  }
  map() {
    const all = {};
    this.take('{');
    for (this.blanks(); this.next !== '}'; this.blanks()) {
      const key = this.value(true, true);
      this.take(':');
      if (key in all) throw new Error(`"${key}" is given twice`);
      all[key] = this.value(true);
      this.blanks();
      if (this.next !== '}') this.take(',');
    }
    this.take('}');
    return all;
  }
  whole() {
    const value = this.value();
    this.blanks();
    if (this.at < this.text.length) throw new Error(`"${this.text.slice(this.at)}" is left over`);
    return value;
  }
}

/** Parses a document. */
export function parseYaml(text) {
  const lines = text.split('\n')
    .map((line, i) => ({ number: i + 1, indent: line.search(/\S|$/), text: line.trim() }))
    .filter(({ text }) => text !== '' && !text.startsWith('#'));
  let at = 0;
  let number = 0;  // of the current line

  /** Splits "key: rest" or "key:"; undefined if the line is no such pair. */
  const pair = (text) => {
    const line = new Line(text);
    const key = line.value(false, true);
    return line.next === ':' ? { key, rest: text.slice(line.at + 1).trim() } : undefined;
  };
  const block = (indent) => (lines[at].text.startsWith('- ') || lines[at].text === '-' ? blockList(indent) : blockMap(indent));
  const below = (indent) => (at < lines.length && lines[at].indent > indent ? block(lines[at].indent) : null);
  const blockList = (indent) => {
    const all = [];
    while (at < lines.length && lines[at].indent === indent && lines[at].text.startsWith('-')) {
      const line = lines[at];
      number = line.number;
      const rest = line.text.slice(1).trim();
      if (rest === '') {
        ++at;
        all.push(below(indent));
      } else if (!/^["'[{]/.test(rest) && pair(rest)) {  // a map whose first pair is on the line of the dash
        line.indent += line.text.length - rest.length;
        line.text = rest;
        all.push(blockMap(line.indent));
      } else {
        ++at;
        all.push(new Line(rest).whole());
      }
    }
    return all;
  };
  const blockMap = (indent) => {
    const all = {};
    while (at < lines.length && lines[at].indent === indent) {
      number = lines[at].number;
      const found = pair(lines[at].text);
      if (!found) throw new Error('a key with a colon is expected');
      if (found.key in all) throw new Error(`"${found.key}" is given twice`);
      ++at;
      all[found.key] = found.rest === '' ? below(indent) : new Line(found.rest).whole();
    }
    return all;
  };
  try {
    const document = block(0);
    if (at < lines.length) {
      number = lines[at].number;
      throw new Error('this line belongs to nothing');
    }
    return document;
  } catch (e) {
    e.message = `line ${number}: ${e.message}`;
    throw e;
  }
}

export const readYaml = () => parseYaml(readFileSync(yamlFile, 'utf8'));
export const jsonOf = (document) => JSON.stringify(document) + '\n';
export const readJson = () => readFileSync(jsonFile, 'utf8');

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = jsonOf(readYaml());
  if (process.argv[2] === '--write') {
    writeFileSync(jsonFile, text);
  } else if (process.argv[2] === '--check') {
    if (readJson() !== text) {
      console.error('docs/openapi.json is not docs/openapi.yaml: run docs/openapi.mjs --write');
      process.exit(1);
    }
  } else {
    console.error('usage: docs/openapi.mjs --write|--check');
    process.exit(64);
  }
}
