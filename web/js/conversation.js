// One conversation: its versions on the server, where the reader stands in them, and the answers that run.
import { Answer, Refused } from './answer.js';
import { isConversation, newConversationId } from './server.js';
import { Versions } from './versions.js';

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** What a version was asked with, as items of a request. */
export const inputOf = (version) => version.messages.map(({ role, content }) => ({ type: 'message', role, content }));
export const questionOf = (version) =>
  version.messages?.findLast((m) => m.role === 'user')?.content ?? version.prompt ?? '';

/** A title is how a conversation begins. */
export function titleOf(version) {
  const line = questionOf(version).split('\n').find((l) => l.trim()) ?? '';
  return line.length > 80 ? `${line.slice(0, 79).trimEnd()}…` : line;
}

export class Conversation extends EventTarget {
  versions = new Versions();
  session = null; // as the server tells it; null: there is none yet
  here = 0; // the version that the reader sees the end of
  asked = null; // what runs: { base, input, answers }
  choice = null; // versions that answer one question side by side, until the reader went on from one of them
  results = new Map(); // the answers of this page that are over, by id

  constructor(server, id = newConversationId()) {
    super();
    this.server = server;
    this.id = id;
    this.texts = new Map();
  }

  get running() {
    return this.asked?.answers.some((a) => !a.over) ?? false;
  }
  /** The versions that the reader sees, with their texts. */
  get path() {
    return this.versions.path(this.here).map((v) => this.texts.get(v) ?? this.versions.get(v));
  }

  #changed() {
    this.dispatchEvent(new Event('changed'));
  }

  /** Reads the tree and what is said up to `version`; nothing there is no error. */
  async load(version) {
    let told;
    try {
      told = await this.server.tree(this.id);
    } catch (no) {
      if (!(no instanceof Refused) || no.status !== 404) throw no;
      return this.#changed();
    }
    this.session = told;
    this.versions = new Versions(told.tree);
    await this.goTo(version !== undefined && this.versions.has(version) ? version : this.versions.start(told.head));
  }

  /** Shows the conversation up to that version. */
  async goTo(version) {
    const missing = this.versions.path(version).some((v) => !this.texts.has(v));
    if (missing) await this.readTexts(version);
    this.here = version;
    this.#changed();
  }

  async readTexts(version) {
    for (const v of await this.server.transcript(this.id, version)) this.texts.set(v.version, v);
  }

  /** The texts of all branches, for who shows them all. */
  async readAll(leaves_max = 60) {
    for (const leaf of this.versions.leaves().slice(-leaves_max))
      if (!this.texts.has(leaf)) await this.readTexts(leaf);
  }

  /** Asks behind `base`; ends when all answers do. */
  async ask(input, base, settings, count = 1) {
    if (this.running) return;
    const request = { ...settings, input, conversation: this.id, from_version: base };
    if (base > 0) delete request.instructions; // what was instructed at the beginning stays said
    const known = Math.max(0, ...this.versions.all.keys());
    const before = this.versions.get(base)?.total_tokens ?? 0;
    const answers = [];
    for (let i = 0; i < count; ++i) {
      const seed = request.seed === undefined ? {} : { seed: request.seed + i };
      answers.push(new Answer(this.#line(base, known, answers), { ...request, ...seed }, { before, changed: () => this.#moved() }));
    }
    await this.#run({ base, input, answers });
  }

  /** Goes on with an answer that broke off, was stopped, or ended at its limit of tokens: then by `more` of them, or by
   * as many as it was to have. */
  async goOn(version, more) {
    if (this.running) return;
    const known = this.texts.get(version);
    const line = this.#line(known.parent, version, []);
    const answer = new Answer(known.unfinished ? line : this.#beyond(line, more), null, {
      id: known.response_id,
      before: this.versions.get(known.parent)?.total_tokens ?? 0,
      changed: () => this.#moved(),
    });
    await this.#run({ base: known.parent, input: inputOf(known), answers: [answer] });
  }

  stop() {
    for (const answer of this.asked?.answers ?? []) answer.stop();
  }

  /** How answers reach the server. One whose beginning was lost is looked for before it is asked for again. */
  #line(base, known, others) {
    const { server, id } = this;
    return {
      create: (request, signal) => server.create(request, signal),
      resume: (answer, after, signal) => server.resume(answer, after, signal),
      ready: (signal) => server.ready(signal),
      find: async () => {
        const tree = await server.tree(id).then((told) => told.tree, (no) => {
          if (no.status === 404) return [];
          throw no;
        });
        const taken = new Set(others.map((a) => a.id));
        return tree.find((v) => v.parent === base && v.version > known && v.response_id && !taken.has(v.response_id))
          ?.response_id ?? null;
      },
    };
  }

  /** The limit is lifted once: what breaks after that goes on like any answer. */
  #beyond(line, more) {
    const { server } = this;
    let lifted = false;
    return {
      ...line,
      async *resume(id, after, signal) {
        for await (const event of lifted ? line.resume(id, after, signal) : server.goOn(id, more, signal)) {
          lifted = true;
          yield event;
        }
      },
    };
  }

  #moved() {
    this.dispatchEvent(new Event('moved'));
  }

  async #run(asked) {
    this.asked = asked;
    this.here = asked.base;
    this.#changed();
    await Promise.all(asked.answers.map((a) => a.run()));
    for (const a of asked.answers) if (a.id) this.results.set(a.id, a);
    try {
      await this.#settle(asked);
    } catch (trouble) {
      this.asked = null;
      this.#changed();
      throw trouble;
    }
  }

  /** Takes up the versions that the answers became; what failed stays in sight until something else is asked. */
  async #settle(asked) {
    const wanted = asked.answers.filter((a) => a.id && a.status !== 'failed');
    let places = [];
    // The server hears of a reader who left a moment later, and keeps what there is under the answer's id.
    for (let tries = 0; tries < 20; ++tries) {
      const told = await this.server.tree(this.id).catch((no) => {
        if (no.status === 404) return { tree: [] };
        throw no;
      });
      places = wanted.map((a) => told.tree.findLast((v) => v.response_id === a.id)?.version);
      if (places.every(Boolean) || wanted.every((a) => a.text === '' && a.reasoning === '')) break;
      await pause(100);
    }
    if (!asked.answers.some((a) => a.status === 'failed')) this.asked = null; // else it stays in sight
    for (const version of places) this.texts.delete(version); // an answer that went on has another text
    places = places.filter(Boolean);
    this.choice = places.length > 1 ? places : null;
    for (const version of places.slice(1)) await this.readTexts(version);
    await this.load(places[0] ?? asked.base);
    this.dispatchEvent(new CustomEvent('settled', { detail: { asked, places } }));
  }

  /** A conversation of its own that begins like this one up to `version`. */
  async fork(version) {
    const copy = new Conversation(this.server);
    await this.server.fork(this.id, copy.id, version);
    await copy.load();
    return copy;
  }

  /** The server too goes on from that version from now on. */
  async rollBack(version) {
    await this.server.rollback(this.id, version);
    await this.load(version);
  }

  get canGoOn() {
    return isConversation(this.id);
  }
}
