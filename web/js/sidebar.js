// The list of conversations with their titles on the server.
import { h } from './dom.js';
import { isConversation } from './server.js';

const day = 86400;

function groupOf(seconds, now = Date.now() / 1000) {
  const midnight = new Date().setHours(0, 0, 0, 0) / 1000;
  if (seconds >= midnight) return 'Today';
  if (seconds >= midnight - day) return 'Yesterday';
  return seconds >= now - 7 * day ? 'This week' : 'Earlier';
}

export class Sidebar {
  constructor(root, server, open) {
    this.root = root;
    this.server = server;
    this.open = open;
  }

  /** `current`: the shown id; `busy`: ids with running answers; `fresh`: conversations not on the server yet. */
  show(sessions, current, busy, fresh) {
    const had_focus = this.root.contains(document.activeElement);
    const known = new Set(sessions.map((s) => s.id));
    const all = [...fresh.filter((f) => !known.has(f.id)), ...sessions];
    const groups = new Map();
    for (const s of all) {
      const name = groupOf(s.used_at);
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(this.#item(s, current, busy));
    }
    this.root.replaceChildren(...[...groups].map(([name, items]) => h('section', {}, h('h2', {}, name), h('ul', {}, items))));
    if (all.length === 0) this.root.replaceChildren(h('p', { class: 'hint' }, 'No conversations yet.'));
    if (had_focus) (this.root.querySelector('[aria-current]') ?? this.root).focus();
  }

  #item(session, current, busy) {
    const button = h('button', {
      type: 'button', 'aria-current': session.id === current ? 'page' : null, class: busy.has(session.id) ? 'busy' : null,
      onclick: () => this.open(session.id),
    }, h('span', { class: 'title' }, session.title || 'Untitled'));
    if (!isConversation(session.id)) button.append(h('span', { class: 'mark' }, session.id));
    return h('li', {}, button);
  }
}
