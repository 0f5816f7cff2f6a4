// One conversation: its versions on the server, the version that is shown, and the running answers.
import { Answer, Refused } from './answer.js';
import { isConversation, newConversationId } from './server.js';
import { Versions } from './versions.js';

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** The input of a version as items of a request. */
export const inputOf = (version) => version.messages.map(({ role, content }) => ({ type: 'message', role, content }));
export const questionOf = (version) =>
  version.messages?.findLast((m) => m.role === 'user')?.content ?? version.prompt ?? '';

/** Title of a conversation: the first line of its first question. */
export function titleOf(version) {
  const line = questionOf(version).split('\n').find((l) => l.trim()) ?? '';
  return line.length > 80 ? `${line.slice(0, 79).trimEnd()}…` : line;
}

export class Conversation extends EventTarget {
  versions = new Versions();
  session = null; // session object of the server; null if it does not exist yet
  here = 0; // the version whose end is shown
  asked = null; // the running request: { base, input, answers }
  choice = null; // versions with alternative answers to one question, until the user continues from one of them
  results = new Map(); // finished answers of this page, by id

  constructor(server, id = newConversationId()) {
    super();
    this.server = server;
    this.id = id;
    this.texts = new Map();
  }

  get running() {
    return this.asked?.answers.some((a) => !a.over) ?? false;
  }
  /** The versions that are shown, with their texts. */
  get path() {
    return this.versions.path(this.here).map((v) => this.texts.get(v) ?? this.versions.get(v));
  }

  #changed() {
    this.dispatchEvent(new Event('changed'));
  }

  /** Loads the tree and the transcript up to `version`; a missing session is no error. */
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

  /** Loads the texts of all branches. */
  async readAll(leaves_max = 60) {
    for (const leaf of this.versions.leaves().slice(-leaves_max))
      if (!this.texts.has(leaf)) await this.readTexts(leaf);
  }

  /** Requests `count` answers after version `base`; resolves when all are over. */
  async ask(input, base, settings, count = 1) {
    if (this.running) return;
    // The first turn has its instructions as a message: those of this request replace them.
    if (base === 0 && settings.instructions) input = input.filter((m) => m.role !== 'system');
    const request = { ...settings, input, conversation: this.id, from_version: base };
    if (base > 0) delete request.instructions; // instructions are part of the first turn
    const known = Math.max(0, ...this.versions.all.keys());
    const before = this.versions.get(base)?.total_tokens ?? 0;
    const answers = [];
    for (let i = 0; i < count; ++i) {
      const seed = request.seed === undefined ? {} : { seed: request.seed + i };
      answers.push(new Answer(this.#line(base, known, answers), { ...request, ...seed }, { before, changed: () => this.#moved() }));
    }
    await this.#run({ base, input, answers });
  }

  /** Continues an answer that was interrupted, was stopped, or reached its token limit; in the last case by `more`
   * tokens, or by its original limit. */
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

  /** The transport of an answer (see answer.js). If its first event was lost, it is looked up before it is requested
   * again. */
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

  /** Raises the token limit once; after that an interruption is resumed like that of any answer. */
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

  /** Loads the versions of the finished answers; a failed answer stays visible until the next request. */
  async #settle(asked) {
    const wanted = asked.answers.filter((a) => a.id && a.status !== 'failed');
    let places = [];
    // The server notices a closed connection a moment later and stores the partial answer under its id.
    for (let tries = 0; tries < 20; ++tries) {
      const told = await this.server.tree(this.id).catch((no) => {
        if (no.status === 404) return { tree: [] };
        throw no;
      });
      places = wanted.map((a) => told.tree.findLast((v) => v.response_id === a.id)?.version);
      if (places.every(Boolean) || wanted.every((a) => a.text === '' && a.reasoning === '')) break;
      await pause(100);
    }
    if (!asked.answers.some((a) => a.status === 'failed')) this.asked = null; // otherwise it stays visible
    for (const version of places) this.texts.delete(version); // a continued answer has a new text
    places = places.filter(Boolean);
    this.choice = places.length > 1 ? places : null;
    for (const version of places.slice(1)) await this.readTexts(version);
    await this.load(places[0] ?? asked.base);
    this.dispatchEvent(new CustomEvent('settled', { detail: { asked, places } }));
  }

  /** A new conversation that starts with this one up to `version`. */
  async fork(version) {
    const copy = new Conversation(this.server);
    await this.server.fork(this.id, copy.id, version);
    await copy.load();
    return copy;
  }

  /** Makes that version the head of the session on the server. */
  async rollBack(version) {
    await this.server.rollback(this.id, version);
    await this.load(version);
  }

  get canGoOn() {
    return isConversation(this.id);
  }
}
