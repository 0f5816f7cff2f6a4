// Renders the tree of markdown.js as elements.
import { h, iconButton } from './dom.js';
import { highlight } from './highlight.js';
import { parse } from './markdown.js';

const inlines = (list) => list.map(inline);

function inline(node) {
  if (typeof node === 'string') return node;
  switch (node.type) {
    case 'code': return h('code', {}, node.text);
    case 'break': return h('br');
    case 'link':
      return h('a', { href: node.href, target: '_blank', rel: 'noopener noreferrer nofollow' }, inlines(node.children));
    default: return h(node.type, {}, inlines(node.children)); // strong, em, del
  }
}

export async function copy(text, button) {
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else copySelected(text);
  button.dataset.done = 'true';
  setTimeout(() => delete button.dataset.done, 1200);
}

/** Browsers hide navigator.clipboard from pages without TLS, but permit copying the selection. */
function copySelected(text) {
  const box = h('textarea', { class: 'unseen', value: text });
  document.body.append(box);
  box.select();
  document.execCommand('copy');
  box.remove();
}

function code({ lang, text }) {
  const pieces = highlight(text, lang).map(({ kind, text: t }) => (kind === 'plain' ? t : h('span', { class: `code-${kind}` }, t)));
  const button = iconButton('copy', 'Copy code', () => copy(text, button));
  return h('figure', { class: 'code' }, h('figcaption', {}, h('span', {}, lang || 'text'), button),
    h('pre', { tabindex: '0' }, h('code', {}, pieces)));
}

function block(node) {
  switch (node.type) {
    case 'heading': return h(`h${Math.min(node.level + 2, 6)}`, {}, inlines(node.inline));
    case 'paragraph': return h('p', {}, inlines(node.inline));
    case 'rule': return h('hr');
    case 'code': return code(node);
    case 'quote': return h('blockquote', {}, node.blocks.map(block));
    case 'list':
      return h(node.ordered ? 'ol' : 'ul', { start: node.ordered && node.start !== 1 ? node.start : null },
        node.items.map((item) => h('li', {}, item.map((b) => (node.tight && b.type === 'paragraph' ? inlines(b.inline) : block(b))).flat())));
    case 'table': {
      const row = (tag, cells) => h('tr', {}, node.align.map((align, i) => h(tag, { class: align, scope: tag === 'th' ? 'col' : null }, inlines(cells[i] ?? []))));
      return h('div', { class: 'table', tabindex: '0', role: 'region', 'aria-label': 'table' }, h('table', {}, h('thead', {}, row('th', node.head)), h('tbody', {}, node.rows.map((r) => row('td', r)))));
    }
  }
}

/** Renders `text` in `into`. Unchanged leading blocks keep their elements, so a running answer renders only its end. */
export function showMarkdown(into, text) {
  const before = into.shownBlocks ?? [];
  const blocks = parse(text);
  const keys = blocks.map((b) => JSON.stringify(b));
  let same = 0;
  while (same < keys.length && keys[same] === before[same]) ++same;
  while (into.childNodes.length > same) into.lastChild.remove();
  for (const b of blocks.slice(same)) into.append(block(b));
  into.shownBlocks = keys;
}
