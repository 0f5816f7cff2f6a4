// The branches of a conversation as a tree: arrow keys move the focus, Enter shows the version.
import { questionOf } from './conversation.js';
import { h } from './dom.js';

const short = (text, max) => {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > max ? `${line.slice(0, max - 1)}…` : line;
};

/** Indents an element; the indent is limited to the width of the panel. */
function at(depth, element) {
  element.style.setProperty('--depth', Math.min(depth, 8));
  return element;
}

function moveFocus(event, items) {
  const at = items.indexOf(event.target.closest('[role=treeitem]'));
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (to === undefined || !items[to]) return;
  event.preventDefault();
  items[to].focus();
}

/** Fills the panel; missing texts are loaded and the panel is filled again. */
export function showTree(into, conversation, goTo) {
  const { versions } = conversation;
  const on_path = new Set(versions.path(conversation.here));
  const rows = versions.rows();
  if (rows.length === 0) return into.replaceChildren(h('p', { class: 'hint' }, 'No turns yet.'));
  const had_focus = into.contains(document.activeElement);
  const items = rows.map(({ version, depth, rails }) => {
    const known = conversation.texts.get(version);
    const is_here = version === conversation.here;
    const item = h('li', {
      role: 'treeitem', tabindex: is_here ? '0' : '-1', 'aria-level': depth + 1, 'aria-selected': String(is_here),
      class: on_path.has(version) ? 'on-path' : null, 'data-version': version,
      onclick: () => goTo(version),
      onkeydown: (e) => (e.key === 'Enter' || e.key === ' ' ? (e.preventDefault(), goTo(version)) : moveFocus(e, items)),
    },
      rails.map((rail) => at(rail.depth, h('span', { class: `rail ${rail.kind}` }))),
      h('span', { class: 'asked' }, known ? short(questionOf(known), 60) || '…' : `Version ${version}`),
      h('span', { class: 'told' }, known ? short(known.answer ?? '', 90) : ''),
      versions.get(version).unfinished ? h('span', { class: 'mark' }, 'interrupted') : null,
      conversation.session?.head === version ? h('span', { class: 'mark' }, 'head') : null);
    return at(depth, item);
  });
  if (!items.some((item) => item.tabIndex === 0)) items[0].tabIndex = 0;
  into.replaceChildren(h('ul', { role: 'tree', 'aria-label': 'Branches' }, items));
  if (had_focus) items.find((item) => item.tabIndex === 0).focus();
  if (versions.leaves().some((leaf) => !conversation.texts.has(leaf)))
    conversation.readAll().then(() => into.isConnected && showTree(into, conversation, goTo), () => {});
}
