// Parses a page of metrics strictly by its format, and checks the further rules of this project.
import assert from 'node:assert/strict';

const name = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
const sample = /^([a-zA-Z_][a-zA-Z0-9_]*)(\{.*\})? (\S+)$/;
const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/y;

function readLabels(text) {
  const labels = {};
  const inside = text.slice(1, -1);
  label.lastIndex = 0;
  while (label.lastIndex < inside.length) {
    const at = label.lastIndex;
    const found = label.exec(inside);
    assert(found, `labels at ${at}: ${text}`);
    assert(!(found[1] in labels), `label ${found[1]} twice: ${text}`);
    labels[found[1]] = found[2];
  }
  return labels;
}

function readNumber(text) {
  const special = { '+Inf': Infinity, '-Inf': -Infinity, NaN: NaN };
  const value = text in special ? special[text] : Number(text);
  assert(text in special || (text !== '' && Number.isFinite(value)), `number ${text}`);
  return value;
}

/** Families by name, each {type, help, samples: [{name, labels, value}]}; throws where the page breaks a rule. */
export function readExposition(page, open = false) {
  assert(page.endsWith('\n'), 'a page ends with a newline');
  const lines = page.slice(0, -1).split('\n');
  if (open) assert.equal(lines.pop(), '# EOF');
  const families = new Map();
  let family;
  for (const line of lines) {
    if (line.startsWith('# HELP ')) {
      const [, , called, ...help] = line.split(' ');
      assert.match(called, name);
      assert(!families.has(called), `${called} comes in two pieces`);
      assert(help.join(' ').endsWith('.'), `help of ${called} is a sentence`);
      family = { name: called, help: help.join(' '), samples: [] };
      families.set(called, family);
    } else if (line.startsWith('# TYPE ')) {
      const [, , called, type] = line.split(' ');
      assert.equal(called, family.name, 'TYPE follows HELP');
      assert.equal(family.type, undefined);
      assert(['counter', 'gauge', 'histogram'].includes(type), type);
      family.type = type;
    } else {
      const found = sample.exec(line);
      assert(found, `a sample: ${line}`);
      assert(family?.type, `a family before ${line}`);
      const endings = { counter: open ? ['_total'] : [''], gauge: [''], histogram: ['_bucket', '_sum', '_count'] };
      assert(endings[family.type].some((e) => found[1] === family.name + e), `${line} belongs to ${family.name}`);
      family.samples.push({ name: found[1], labels: found[2] ? readLabels(found[2]) : {}, value: readNumber(found[3]) });
    }
  }
  for (const f of families.values()) check(f, open);
  return families;
}

const key = (labels) => JSON.stringify(Object.entries(labels).sort());

function check(f, open) {
  if (f.type === 'counter' && !open) assert(f.name.endsWith('_total'), `${f.name} is a counter`);
  if (f.type !== 'counter') assert(!/_(total|count|sum|bucket)$/.test(f.name), `${f.name} is none`);
  assert(/^(skein|process)_/.test(f.name), `${f.name} has our prefix`);
  const seen = new Set();
  for (const s of f.samples) {
    assert(!seen.has(s.name + key(s.labels)), `${s.name} twice with the same labels`);
    seen.add(s.name + key(s.labels));
    if (f.type !== 'gauge') assert(s.value >= 0, `${s.name} counts`);
  }
  if (f.type !== 'histogram') return;
  const series = new Map();
  for (const s of f.samples) {
    const { le, ...rest } = s.labels;
    if (!series.has(key(rest))) series.set(key(rest), { bounds: [], counts: [] });
    const one = series.get(key(rest));
    if (s.name.endsWith('_bucket')) {
      one.bounds.push(readNumber(le));
      one.counts.push(s.value);
    } else {
      one[s.name.slice(f.name.length + 1)] = s.value;
    }
  }
  for (const one of series.values()) {
    assert.equal(one.bounds.at(-1), Infinity, `${f.name} has a last bucket`);
    one.bounds.reduce((a, b) => (assert(a < b, `bounds of ${f.name} rise`), b));
    one.counts.reduce((a, b) => (assert(a <= b, `counts of ${f.name} rise`), b));
    assert.equal(one.count, one.counts.at(-1));
    assert(one.sum !== undefined);
  }
}

/** The sum of a family's samples whose labels are at least these. */
export function total(families, called, labels = {}, ending = '') {
  const f = families.get(called);
  assert(f, `there is ${called}`);
  return f.samples
    .filter((s) => s.name === called + ending && Object.entries(labels).every(([k, v]) => s.labels[k] === v))
    .reduce((sum, s) => sum + s.value, 0);
}
