// The list of conversations. Titles are read as they come into sight: a list of thousands costs one request.
import { titleOf } from './conversation.js';
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
  #titles = new Map();
  #seen = new IntersectionObserver((entries) => {
    for (const e of entries) if (e.isIntersecting) this.#readTitle(e.target);
  });

  constructor(root, server, open) {
    this.root = root;
    this.server = server;
    this.open = open;
  }

  /** `current`: the id that is shown; `busy`: ids where answers run; `fresh`: conversations that the server has not yet. */
  show(sessions, current, busy, fresh) {
    this.#seen.disconnect();
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
    for (const button of this.root.querySelectorAll('button')) this.#seen.observe(button);
    if (had_focus) (this.root.querySelector('[aria-current]') ?? this.root).focus();
  }

  #key = (s) => `${s.id} ${s.created_at}`;

  #item(session, current, busy) {
    const title = session.title ?? this.#titles.get(this.#key(session));
    const button = h('button', {
      type: 'button', 'aria-current': session.id === current ? 'page' : null, class: busy.has(session.id) ? 'busy' : null,
      onclick: () => this.open(session.id),
    }, h('span', { class: 'title' }, title ?? '…'));
    if (!isConversation(session.id)) button.append(h('span', { class: 'mark' }, session.id));
    if (!title) button.session = session;
    return h('li', {}, button);
  }

  /** The first version alone says what a conversation is about. */
  async #readTitle(button) {
    const { session } = button;
    this.#seen.unobserve(button);
    if (!session) return;
    const [first] = await this.server.transcript(session.id, 1).catch(() => []);
    const title = (first && titleOf(first)) || 'Untitled';
    this.#titles.set(this.#key(session), title);
    button.querySelector('.title').textContent = title;
  }
}
