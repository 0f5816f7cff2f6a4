// The page: its parts and the actions of the user.
import { Conversation, inputOf, questionOf, titleOf } from './conversation.js';
import { askForKey, askForTitle, confirmed, showKeys } from './dialogs.js';
import { h, icon, iconButton } from './dom.js';
import { shortcutOf } from './keys.js';
import { ModelChoice } from './models.js';
import { isConversation, newConversationId, Server } from './server.js';
import { loadSettings, requestFields } from './settings.js';
import { showSettings } from './settings_view.js';
import { Sidebar } from './sidebar.js';
import { ThreadView } from './thread_view.js';
import { showTree } from './tree_view.js';

const $ = (id) => document.getElementById(id);
const server = new Server();
const settings = loadSettings();
const running = new Map(); // conversations of this page with running answers, by id
let sessions = [];
let current = new Conversation(server);
let opening = null; // while the conversation of the address is loaded: { sends: whether to send the message then }
let panel = null; // 'tree' or 'settings'

const models = new ModelChoice($('model'), server, notice);
const sidebar = new Sidebar($('list'), server, (id) => go(id));
const thread = new ThreadView($('thread'), {
  edit: (version, text) => ask([...inputOf(version).filter((m) => m.role !== 'user'), said(text)], version.parent),
  again: (version) => ask(inputOf(version), version.parent),
  goOn: (version) => attempt(() => run(current, () => current.goOn(version.version, requestFields(settings).max_output_tokens))),
  goTo: (version) => attempt(() => current.goTo(version)),
  fork: (version) => attempt(() => fork(version)),
  rollBack: (version) => attempt(() => current.rollBack(version)),
  retry: () => ask(current.asked.input, current.asked.base, current.asked.answers.length),
});

// ---------------------------------------------------------------- actions

const said = (content) => ({ type: 'message', role: 'user', content });

function notice(text) {
  const line = h('p', {}, text);
  $('notice').append(line);
  setTimeout(() => line.remove(), 6000);
}

/** Runs `work` and shows its error as a notice. */
async function attempt(work) {
  try {
    return await work();
  } catch (trouble) {
    notice(trouble.message);
  }
}

async function run(conversation, work) {
  if (conversation.running) return;
  running.set(conversation.id, conversation);
  showSidebar();
  try {
    await work();
  } finally {
    running.delete(conversation.id);
    await refreshSessions();
  }
}

/** Sends a request in the shown conversation; a conversation of another client is forked first. */
function ask(input, base, count = 1) {
  return attempt(async () => {
    if (!current.canGoOn) {
      await fork(base);
      notice('This conversation belongs to another client; it continues in a copy.');
    }
    const conversation = current;
    if (location.hash !== hashOf(conversation.id)) history.pushState(null, '', hashOf(conversation.id));
    conversation.title ??= titleOf({ messages: input });
    const fields = { ...requestFields(settings), model: models.chosen };
    const done = run(conversation, () => conversation.ask(input, base, fields, count));
    thread.follow();
    await done;
  });
}

async function fork(version) {
  const copy = await current.fork(version);
  await refreshSessions();
  await show(copy);
  history.pushState(null, '', hashOf(copy.id));
}

const hashOf = (id) => `#/c/${encodeURIComponent(id)}`;
function go(id) {
  $('page').classList.remove('with-sidebar');
  if (location.hash === hashOf(id)) return;
  location.hash = hashOf(id);
}
function startNew() {
  $('page').classList.remove('with-sidebar');
  history.pushState(null, '', '#');
  show(new Conversation(server));
  $('message').focus();
}

async function openFromAddress() {
  const id = decodeURIComponent(/^#\/c\/(.+)$/.exec(location.hash)?.[1] ?? '');
  if (!id) return show(new Conversation(server));
  const known = running.get(id) ?? (id === current.id ? current : null);
  if (known) return show(known);
  const next = new Conversation(server, id);
  const loading = (opening = { sends: false });
  try {
    await next.load();
  } catch (trouble) {
    if (opening === loading) opening = null;
    throw trouble;
  }
  if (opening !== loading) return; // another conversation was chosen meanwhile
  await show(next);
  if (loading.sends) send();
}

async function show(conversation) {
  opening = null;
  current.removeEventListener('changed', showAll);
  current.removeEventListener('moved', showMoved);
  current.removeEventListener('settled', showSettled);
  current = conversation;
  current.addEventListener('changed', showAll);
  current.addEventListener('moved', showMoved);
  current.addEventListener('settled', showSettled);
  showAll();
  thread.follow();
}

async function refreshSessions() {
  sessions = await server.sessions();
  showSidebar();
}

async function renameCurrent() {
  const title = await askForTitle(currentTitle() ?? '');
  if (!title) return;
  current.session = { ...current.session, ...(await server.rename(current.id, title)) };
  await refreshSessions();
  showAll();
}

async function removeCurrent() {
  if (!(await confirmed('Delete this conversation?', 'All its branches are deleted too.', 'Delete'))) return;
  await server.remove(current.id);
  startNew();
  await refreshSessions();
}

async function exportCurrent() {
  const url = URL.createObjectURL(await server.exported(current.id));
  h('a', { href: url, download: `${(currentTitle() || 'conversation').replace(/[^\p{L}\p{N} _-]+/gu, '').slice(0, 60)}.session` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

async function importFile(file) {
  const id = newConversationId();
  await server.imported(id, file);
  await refreshSessions();
  go(id);
}

// ---------------------------------------------------------------- display

const currentTitle = () => current.session?.title ?? current.title;

function showSidebar() {
  const fresh = [...running.values()].map((c) => ({ id: c.id, created_at: 0, used_at: Date.now() / 1000, title: c.title }));
  sidebar.show(sessions, current.id, new Set(running.keys()), fresh);
}

function bytes(n) {
  return n < 1024 * 1024 ? `${Math.round(n / 1024)} KiB` : `${(n / 1024 / 1024).toFixed(1)} MiB`;
}

function showFacts() {
  const { session } = current;
  const size = session && (session.state_bytes || models.stateBytes(session));
  const where = { vram: ' on the device', ram: ' in memory', disk: ' on disk' }[session?.tier] ?? ''; // else in transfer
  $('facts').textContent = session ? `${session.total_tokens} tokens · state ${bytes(size)}${where}` : '';
}

function showAll() {
  const title = currentTitle() || 'New conversation';
  $('title').textContent = title;
  document.title = `${title} · Skein`;
  thread.show(current);
  showSidebar();
  showFacts();
  showSend();
  models.fit(current.session);
  for (const id of ['rename', 'export', 'delete']) $(id).disabled = !current.session;
  if (panel === 'tree') showTree($('panel-body'), current, (version) => attempt(() => current.goTo(version)));
}
function showMoved() {
  thread.moved();
  showSend();
}
function showSettled({ detail: { asked, places } }) {
  showSend();
  const told = asked.answers.map((a) => a.text).join(' ');
  $('spoken').textContent = told.length > 300 ? `The answer is complete: ${told.slice(0, 300)}…` : told;
  if (places.length === 0 && asked.answers.every((a) => a.status === 'stopped') && !$('message').value) {
    $('message').value = asked.input.at(-1).content; // stopped before any text: let the user edit the message
    fitMessage();
  }
}

function showSend() {
  const stops = current.running;
  const button = $('send');
  if (button.dataset.stops === String(stops)) return;
  button.dataset.stops = String(stops);
  button.replaceChildren(icon(stops ? 'stop' : 'send'));
  button.setAttribute('aria-label', stops ? 'Stop' : 'Send');
  button.title = stops ? 'Stop (Esc)' : 'Send (Enter)';
}

function openPanel(which) {
  panel = panel === which ? null : which;
  $('panel').hidden = !panel;
  for (const name of ['tree', 'settings']) $(`open-${name}`).setAttribute('aria-expanded', String(panel === name));
  if (!panel) return;
  $('panel-title').textContent = panel === 'tree' ? 'Branches' : 'Settings';
  $('panel').setAttribute('aria-label', $('panel-title').textContent);
  if (panel === 'tree') showAll();
  else showSettings($('panel-body'), settings, () => {});
}

function fitMessage() {
  const box = $('message');
  box.style.height = 'auto';
  box.style.height = `${box.scrollHeight}px`;
}

// ---------------------------------------------------------------- keys and buttons

function send() {
  if (opening) {
    opening.sends = true; // the message belongs to the conversation that is being loaded
    return;
  }
  if (current.running) return current.stop();
  const text = $('message').value.trim();
  if (!text) return;
  const count = Number($('count').value);
  $('message').value = '';
  $('count').value = '1'; // the number of answers applies to one prompt only
  fitMessage();
  ask([said(text)], current.here, count);
}

function nextTheme() {
  const order = ['auto', 'light', 'dark'];
  const theme = order[(order.indexOf(document.documentElement.dataset.theme) + 1) % 3];
  document.documentElement.dataset.theme = theme;
  localStorage.setItem('skein.theme', theme);
  notice(theme === 'auto' ? 'Theme: same as the system.' : `Theme: ${theme}.`);
}

async function changeKey() {
  const given = await askForKey();
  if (!given) return;
  server.setKey(given.key, given.keep);
  await attempt(begin);
}

/** Clicks the button of that name in the last turn. */
const pressLast = (name) => [...document.querySelectorAll(`.turn [data-key$="-${name}"]`)].at(-1)?.click();

function onKey(event) {
  const typing = /^(TEXTAREA|INPUT|SELECT)$/.test(event.target.tagName);
  if (document.querySelector('dialog[open]')) return;
  if (event.key === 'Escape') {
    if (current.running) current.stop();
    else if (panel) openPanel(panel);
    else $('page').classList.remove('with-sidebar');
  } else if (event.altKey && !event.ctrlKey && !event.metaKey) {
    const act = {
      KeyN: startNew, KeyT: () => openPanel('tree'), KeyS: () => openPanel('settings'), KeyR: () => pressLast('again'),
      ArrowLeft: () => pressLast('left'), ArrowRight: () => pressLast('right'),
    }[shortcutOf(event, typing)];
    if (!act) return;
    event.preventDefault();
    act();
  } else if (!typing && event.key === '?') {
    showKeys();
  } else if (!typing && event.key === '/') {
    event.preventDefault();
    $('message').focus();
  }
}

function build() {
  $('new').append(icon('plus'), 'New');
  $('new').addEventListener('click', startNew);
  $('sidebar-tools').append(
    iconButton('load', 'Import a conversation', () => $('file').click()), iconButton('key', 'Change the key', changeKey),
    iconButton('theme', 'Switch theme', nextTheme), iconButton('help', 'Keyboard shortcuts', showKeys));
  $('open-sidebar').append(iconButton('menu', 'Conversations', () => $('page').classList.toggle('with-sidebar')));
  $('bar-tools').append(
    iconButton('tree', 'Branches', () => openPanel('tree'), { id: 'open-tree', 'aria-expanded': 'false' }),
    iconButton('sliders', 'Settings', () => openPanel('settings'), { id: 'open-settings', 'aria-expanded': 'false' }),
    iconButton('edit', 'Rename this conversation', () => attempt(renameCurrent), { id: 'rename', disabled: true }),
    iconButton('save', 'Export this conversation', () => attempt(exportCurrent), { id: 'export', disabled: true }),
    iconButton('bin', 'Delete this conversation', () => attempt(removeCurrent), { id: 'delete', disabled: true }));
  $('close-panel').append(iconButton('close', 'Close', () => openPanel(panel)));
  for (let n = 1; n <= 8; ++n) $('count').append(h('option', { value: n }, String(n)));
  $('file').addEventListener('change', async ({ target }) => {
    const [file] = target.files;
    if (file) await attempt(() => importFile(file));
    target.value = '';
  });
  $('composer').addEventListener('submit', (event) => {
    event.preventDefault();
    send();
  });
  $('message').addEventListener('input', fitMessage);
  $('message').addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      if (opening || !current.running) send();
    } else if (event.key === 'ArrowUp' && !event.target.value) {
      event.preventDefault();
      pressLast('edit');
    }
  });
  // The URL fragment names the conversation: the link must not change it.
  document.querySelector('.skip').addEventListener('click', (event) => {
    event.preventDefault();
    $('message').focus();
  });
  document.addEventListener('keydown', onKey);
  window.addEventListener('hashchange', () => attempt(openFromAddress));
  server.addEventListener('key', async ({ detail: done }) => {
    const given = await askForKey();
    if (given) server.setKey(given.key, given.keep);
    done(Boolean(given));
  });
  server.addEventListener('away', ({ detail }) => {
    $('banner').hidden = false;
    $('banner').textContent = detail.reason ? `The server is not ready yet: ${detail.reason}` : 'The server is unreachable. Answers resume when it is back.';
  });
  server.addEventListener('back', () => ($('banner').hidden = true));
}

async function begin() {
  await Promise.all([models.refresh(), refreshSessions(), openFromAddress()]);
  models.fit(current.session);
  showFacts();
}

build();
showSend();
if (!location.hash) $('message').focus();
attempt(begin);
