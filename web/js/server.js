// All requests of the page to its server.
import { Refused } from './answer.js';
import { bodyEvents, Broken, socketEvents, tooBig } from './events.js';

const keyName = 'skein.key';
/** Whether the text may be part of a WebSocket subprotocol name. */
const isToken = (text) => /^[A-Za-z0-9!#$%&'*+.^_`|~-]*$/.test(text);

const sleep = (ms, signal) =>
  new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', () => (clearTimeout(timer), done()), { once: true });
  });

export const newConversationId = () => {
  const digits = [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, '0'));
  return `conv_${digits.join('')}`;
};
/** Whether the page can add answers to the session: sessions of other clients may have any name. */
export const isConversation = (id) => /^conv_[0-9a-f]{24}$/.test(id);

export class Server extends EventTarget {
  #sockets = 'untried';
  #key = sessionStorage.getItem(keyName) ?? localStorage.getItem(keyName) ?? '';

  get key() {
    return this.#key;
  }
  /** `keep`: keep the key after the tab is closed. */
  setKey(key, keep) {
    this.#key = key;
    sessionStorage.removeItem(keyName);
    localStorage.removeItem(keyName);
    if (key) (keep ? localStorage : sessionStorage).setItem(keyName, key);
  }

  /** Returns a response with a success status or throws Refused. Waits for an unreachable server unless `patient` is
   * false; then it throws Broken. */
  async fetch(path, { patient = true, signal, headers = {}, ...options } = {}) {
    for (;;) {
      let response;
      try {
        const auth = this.#key ? { authorization: `Bearer ${this.#key}` } : {};
        response = await fetch(path, { ...options, signal, headers: { ...auth, ...headers } });
      } catch (trouble) {
        if (!patient || signal?.aborted) throw new Broken(trouble.message);
        await this.ready(signal);
        continue;
      }
      if (response.ok) return response;
      if (response.status === 401) {
        if (!(await this.#askForKey())) throw new Refused('This server requires a key.', 401);
        continue;
      }
      if (response.status === 503 && patient && !signal?.aborted) {
        await this.ready(signal);
        continue;
      }
      const body = await response.json().catch(() => ({}));
      const why = body.error?.message ?? body.error ?? body.detail ?? `the server answered ${response.status}`;
      throw new Refused(why, response.status, body.error?.param);
    }
  }

  async json(path, options) {
    return await (await this.fetch(path, options)).json();
  }
  post(path, body) {
    return this.json(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  }

  #asking = null;
  /** Asks the listener of 'key' for a key; resolves to false if the user cancelled. */
  #askForKey() {
    this.#asking ??= new Promise((done) => {
      this.dispatchEvent(new CustomEvent('key', { detail: done }));
    }).finally(() => (this.#asking = null));
    return this.#asking;
  }

  /** Waits until the server accepts requests. Dispatches 'away' for each failed check and 'back' at the end. */
  async ready(signal) {
    for (let tries = 0; !signal?.aborted; ++tries) {
      await sleep(Math.min(100 + 100 * tries, 1500), signal);
      const state = await fetch('/readyz', { signal })
        .then(async (r) => ({ ok: r.ok, ...(await r.json().catch(() => ({}))) }))
        .catch(() => ({ ok: false }));
      if (state.ok) return void this.dispatchEvent(new CustomEvent('back'));
      this.dispatchEvent(new CustomEvent('away', { detail: state }));
    }
  }

  // ---- answers (see answer.js)

  async *create(request, signal) {
    if (this.#sockets === 'broken' || !isToken(this.#key)) return yield* this.#post(request, signal);
    const url = new URL('/v1/responses', location.href);
    url.protocol = url.protocol.replace('http', 'ws');
    const protocols = this.#key ? ['realtime', `openai-insecure-api-key.${this.#key}`] : [];
    let opened = false;
    try {
      for await (const event of socketEvents(url.href, protocols, request, signal)) {
        opened = true;
        this.#sockets = 'fine';
        yield event;
      }
    } catch (trouble) {
      if (!opened && !signal.aborted && trouble.code === tooBig) return yield* this.#post(request, signal); // HTTP accepts more
      // Some proxies block WebSockets: fall back to plain HTTP.
      if (!opened && !signal.aborted && this.#sockets !== 'fine')
        this.#sockets = this.#sockets === 'untried' ? 'doubtful' : 'broken';
      throw trouble;
    }
  }

  async *#post(request, signal) {
    const response = await this.fetch('/v1/responses', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...request, stream: true }),
      patient: false,
      signal,
    });
    yield* bodyEvents(response.body);
  }

  async *resume(id, after, signal) {
    const from = after === null ? '' : `&starting_after=${after}`;
    const response = await this.fetch(`/v1/responses/${id}?stream=true${from}`, { patient: false, signal });
    yield* bodyEvents(response.body);
  }

  /** The events of an answer that reached its token limit, continued by `more` tokens. */
  async *goOn(id, more, signal) {
    const response = await this.fetch(`/v1/responses/${id}/continue`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ max_output_tokens: more }),
      patient: false,
      signal,
    });
    yield* bodyEvents(response.body);
  }

  // ---- sessions

  /** All sessions, most recently used first. */
  async sessions() {
    const all = [];
    for (let after = ''; ; ) {
      const page = await this.json(`/v1/sessions?limit=1000${after && `&after=${encodeURIComponent(after)}`}`);
      all.push(...page.data);
      if (!page.has_more || all.length >= 10000) break;
      after = page.last_id;
    }
    return all.sort((a, b) => b.used_at - a.used_at);
  }
  #of(id, rest = '') {
    return `/v1/sessions/${encodeURIComponent(id)}${rest}`;
  }
  /** A session with all its versions; a long tree is fetched in pages. */
  async tree(id) {
    const session = await this.json(this.#of(id, '?tree=true'));
    for (let page = session; page.has_more; ) {
      page = await this.json(this.#of(id, `?tree=true&after=${session.tree.at(-1).version}`));
      session.tree.push(...page.tree);
    }
    return session;
  }
  /** The transcript up to a version, in order; a long one is fetched in pages, the last turns first. */
  async transcript(id, version) {
    const said = [];
    for (let upTo = version; ; upTo = said[0].parent) {
      const page = await this.json(this.#of(id, `?transcript=true&version=${upTo}`));
      said.unshift(...page.transcript);
      if (!page.has_more) return said;
    }
  }
  rename(id, title) {
    return this.post(this.#of(id), { title });
  }
  fork(id, to, version) {
    return this.post(this.#of(id, '/fork'), { to, version });
  }
  rollback(id, version) {
    return this.post(this.#of(id, '/rollback'), { version });
  }
  remove(id) {
    return this.json(this.#of(id), { method: 'DELETE' });
  }
  async exported(id) {
    return await (await this.fetch(this.#of(id, '/export'))).blob();
  }
  imported(id, file) {
    return this.json(this.#of(id), { method: 'PUT', body: file, headers: { 'content-type': 'application/octet-stream' } });
  }

  // ---- models

  models() {
    return this.json('/v1/models');
  }
  loadModel(id) {
    return this.post('/v1/model/load', { model: id });
  }
}
