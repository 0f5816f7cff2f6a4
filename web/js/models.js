// The selection of a model, with or without one of its tuned states.
import { h } from './dom.js';

const place = 'skein.model';
const isLoaded = (model) => model.status === 'loaded';

export class ModelChoice {
  #list = { data: [], available: [] };

  constructor(select, server, notice) {
    this.select = select;
    this.server = server;
    this.notice = notice;
    select.addEventListener('change', () => this.#choose(select.value));
  }

  get chosen() {
    return this.select.value || undefined;
  }

  async refresh() {
    this.#list = await this.server.models();
    // A mixture of states has no identity and cannot have sessions.
    this.#list.data = this.#list.data.filter((m) => !m.parent || m.rwkv.initial_state);
    const loaded = this.#list.data.filter(isLoaded).map((m) => m.id);
    const all = new Set([...this.#list.data.map((m) => m.id), ...this.#list.available]);
    const others = [...all].filter((id) => !loaded.includes(id));
    const options = (ids) => ids.map((id) => h('option', { value: id }, id));
    const group = (label, ids) => (ids.length ? h('optgroup', { label }, options(ids)) : null);
    const before = this.select.value || localStorage.getItem(place);
    this.select.replaceChildren(...[group('Loaded', loaded), group('Not loaded', others)].filter(Boolean));
    this.select.value = loaded.includes(before) ? before : loaded[0] ?? '';
  }

  async #choose(id) {
    localStorage.setItem(place, id);
    if (this.#isLoaded(id)) return;
    this.notice(`Loading ${id}…`);
    try {
      await this.server.loadModel(id);
      this.notice(`${id} is loaded.`);
    } catch (trouble) {
      this.notice(trouble.message);
    }
    await this.refresh();
    if (this.#isLoaded(id)) this.select.value = id;
  }

  #isLoaded(id) {
    return this.#list.data.some((m) => m.id === id && isLoaded(m));
  }

  stateBytes(session) {
    return this.#list.data.find((m) => m.rwkv.identity === session.model_identity)?.rwkv.state_bytes ?? 0;
  }

  /** Selects the model and the tuned state with which the conversation was started. */
  fit(session) {
    if (!session) return;
    const fits = (m) =>
      m.rwkv.identity === session.model_identity && (m.rwkv.initial_state ?? null) === session.initial_state;
    const chosen = this.#list.data.find((m) => m.id === this.select.value);
    const own = chosen && fits(chosen) ? chosen : this.#list.data.find(fits);
    if (own) this.select.value = own.id;
  }
}
