// Markdown as models write it: a table of texts and trees; every prefix of every text is read without trouble, as a
// running answer is one; and hostile texts cost no more than their length allows.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inline, parse, safeLink } from '../../web/js/markdown.js';

const paragraph = (...inline) => ({ type: 'paragraph', inline });
const strong = (...children) => ({ type: 'strong', children });
const em = (...children) => ({ type: 'em', children });
const code = (text) => ({ type: 'code', text });
const link = (href, ...children) => ({ type: 'link', href, children });
const br = { type: 'break' };

const blocks = {
  'a\nb\n\nc': [paragraph('a', br, 'b'), paragraph('c')],
  '# One\n### Three ###': [{ type: 'heading', level: 1, inline: ['One'] }, { type: 'heading', level: 3, inline: ['Three'] }],
  '#no': [paragraph('#no')],
  '```js\nlet a = `1`;\n\n  b\n```\nc': [{ type: 'code', lang: 'js', text: 'let a = `1`;\n\n  b' }, paragraph('c')],
  '~~~\n```\n~~~': [{ type: 'code', lang: '', text: '```' }],
  'text\n```\nopen': [paragraph('text'), { type: 'code', lang: '', text: 'open' }],
  '---\n***': [{ type: 'rule' }, { type: 'rule' }],
  '> a\n> > b\nc': [{ type: 'quote', blocks: [paragraph('a'), { type: 'quote', blocks: [paragraph('b', br, 'c')] }] }],
  '- a\n- b\n  - c\n- d': [{ type: 'list', ordered: false, start: 1, tight: true, items: [
    [paragraph('a')], [paragraph('b'), { type: 'list', ordered: false, start: 1, tight: true, items: [[paragraph('c')]] }], [paragraph('d')]] }],
  '3. a\n\n4. b': [{ type: 'list', ordered: true, start: 3, tight: false, items: [[paragraph('a')], [paragraph('b')]] }],
  '- a\n\ntext': [{ type: 'list', ordered: false, start: 1, tight: true, items: [[paragraph('a')]] }, paragraph('text')],
  '1. a\n   ```\n   x\n   ```': [{ type: 'list', ordered: true, start: 1, tight: true, items: [[paragraph('a'), { type: 'code', lang: '', text: 'x' }]] }],
  '| a | b |\n|---|--:|\n| 1 \\| 2 | *3* |\nend': [
    { type: 'table', head: [['a'], ['b']], align: ['left', 'right'], rows: [[['1 | 2'], [em('3')]]] }, paragraph('end')],
  '<b>no</b>': [paragraph('<b>no</b>')],
};
const lines = {
  '**a** and *b* and ***c***': [strong('a'), ' and ', em('b'), ' and ', strong(em('c'))],
  '2 * 3 * 4 and a_b_c': ['2 * 3 * 4 and a_b_c'],
  '__a__ _b_ ~~c~~': [strong('a'), ' ', em('b'), ' ', { type: 'del', children: ['c'] }],
  '`a *b*` ``c`d``': [code('a *b*'), ' ', code('c`d')],
  '**open': ['**open'],
  '`open': ['`open'],
  '\\*a\\* \\<': ['*a* <'],
  '[a](https://b.example/c_(d "t")': ['[a](', link('https://b.example/c_(d', 'https://b.example/c_(d'), ' "t")'],
  '[*a*](https://b.example/ "t")': [link('https://b.example/', em('a'))],
  '[a](javascript:alert(1))': ['[a](javascript:alert(1))'],
  '[a](data:text/html,x)': ['[a](data:text/html,x)'],
  'see https://a.example/b?c=d.': ['see ', link('https://a.example/b?c=d', 'https://a.example/b?c=d'), '.'],
};

for (const [text, tree] of Object.entries(blocks))
  test(`blocks: ${JSON.stringify(text)}`, () => assert.deepEqual(parse(text), tree));
for (const [text, tree] of Object.entries(lines))
  test(`inline: ${JSON.stringify(text)}`, () => assert.deepEqual(inline(text), tree));

const textOf = (node) =>
  typeof node === 'string' ? node : node.text ?? [...(node.children ?? node.inline ?? node.blocks ?? []), ...(node.items ?? []).flat()].map(textOf).join('');

test('every prefix is read, and no letter is lost', () => {
  for (const text of [...Object.keys(blocks), ...Object.keys(lines)])
    for (let n = 0; n <= text.length; ++n) {
      const letters = (t) => t.replace(/[^a-zA-Z0-9]/g, '');
      const prefix = text.slice(0, n);
      if (/[|~`"<\d]|https?|^#/.test(prefix)) parse(prefix); // marks that hide letters: languages, titles, numbers
      else assert.equal(letters(parse(prefix).map(textOf).join('')), letters(prefix), prefix);
    }
});

test('hostile texts are read in steps that grow with their length alone', () => {
  const times = 20000;
  for (const piece of ['*a ', '**a', '_a ', '`', '` ``', '[', '[a](', '~~a ', '> ', '- ', '#', 'http', '|', '\\', '* * '])
    assert.ok(parse(piece.repeat(times)).length > 0, piece);
  parse('> '.repeat(500) + 'a');
  parse(Array.from({ length: 500 }, (_, i) => `${'  '.repeat(i)}- a`).join('\n'));
});

test('links lead to the web or to a letter', () => {
  for (const good of ['https://a.example', 'http://a', 'mailto:a@b.example']) assert.equal(safeLink(good), good);
  for (const bad of ['javascript:alert(1)', 'JaVaScRiPt:1', 'data:text/html,x', 'file:///etc/passwd', '/v1/models', 'vbscript:x', ' https://a'])
    assert.equal(safeLink(bad), null);
});
