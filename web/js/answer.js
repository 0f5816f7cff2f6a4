// One answer from its request to its end, across reconnects and server restarts. The transport is `line` (see
// server.js); tests use a fake one.
//
//   line.create(request, signal)     events of a new answer
//   line.resume(id, after, signal)   events of a known answer after number `after`; all events if it is null
//   line.find()                      the id of the answer if the server has started it already
//   line.ready(signal)               waits until the server accepts requests again

/** The server rejected the request; retrying would not help. */
export class Refused extends Error {
  constructor(message, status = 0, field = null) {
    super(message);
    this.status = status;
    this.field = field;
  }
}

const away = (status) => status >= 502 && status <= 504;

export class Answer {
  text = '';
  reasoning = '';
  status = 'waiting'; // streaming, reconnecting; then done, stopped or failed
  reason = ''; // why an answer with status 'done' is incomplete: max_output_tokens, ...
  error = '';
  id = null;
  last = -1; // sequence number of the last processed event
  tokens = 0;
  usage = null;
  version = null;
  #began = 0;
  #ended = 0;
  #leave = new AbortController();

  /** `request`: fields of response.create; or null with the `id` of an answer to continue. */
  constructor(line, request, { id = null, before = 0, changed = () => {}, now = () => performance.now() } = {}) {
    this.line = line;
    this.request = request;
    this.id = id;
    this.before = before; // tokens of the conversation so far, which are in its state
    this.changed = changed;
    this.now = now;
  }

  get over() {
    return ['done', 'stopped', 'failed'].includes(this.status);
  }

  /** Tokens per second since the first token; 0 if there are too few to measure. */
  get speed() {
    const seconds = ((this.#ended || this.now()) - this.#began) / 1000;
    return this.tokens > 1 && seconds > 0.02 ? (this.tokens - 1) / seconds : 0;
  }
  /** Input tokens of the answer that were cached: {cached, all}; null until the server reports usage. */
  get memory() {
    if (!this.usage) return null;
    const { input_tokens, input_tokens_details } = this.usage;
    return { cached: this.before + input_tokens_details.cached_tokens, all: this.before + input_tokens };
  }

  stop() {
    this.#leave.abort();
  }

  /** Resolves when the answer is over; never throws. */
  async run() {
    const { signal } = this.#leave;
    let asked = Boolean(this.id);
    while (!this.over) {
      try {
        if (asked && !this.id) this.id = await this.line.find();
        const events = this.#events(signal);
        asked = true;
        const before = this.last;
        for await (const event of events) {
          if (this.#take(event)) break;
        }
        // A killed server may have stored less than it streamed, so that the stored answer ends before `last`.
        if (this.last === before) this.last = -1;
      } catch (trouble) {
        if (!signal.aborted) this.#judge(trouble);
      }
      if (signal.aborted && !this.over) this.#end('stopped');
      if (this.over) break;
      this.#set('reconnecting');
      await this.line.ready(signal).catch(() => {});
    }
    return this;
  }

  #events(signal) {
    if (!this.id) return this.line.create(this.request, signal);
    if (this.last >= 0) return this.line.resume(this.id, this.last, signal);
    this.#clear();
    return this.line.resume(this.id, null, signal);
  }

  #clear() {
    this.last = -1;
    this.text = this.reasoning = '';
    this.tokens = 0;
  }

  #judge(trouble) {
    if (!(trouble instanceof Refused) || away(trouble.status)) return;
    if (trouble.status === 409 && this.id) return; // the previous connection still holds the answer
    if (trouble.status === 404 && this.id && this.request) {
      this.id = null; // the server ended before it stored anything: send the request again
      return this.#clear();
    }
    this.error = trouble.message;
    this.#end('failed');
  }

  /** Processes an event; returns whether it was the last one of its stream. */
  #take(event) {
    if (event.type === 'error') {
      throw new Refused(event.error?.message ?? event.message ?? 'the server refused the request', event.status, event.error?.param);
    }
    if (event.sequence_number <= this.last) return false;
    this.last = event.sequence_number;
    this.id ??= event.response?.id;
    const { response } = event;
    switch (event.type) {
      case 'response.output_text.delta':
      case 'response.reasoning_text.delta':
        this.#began ||= this.now();
        this.tokens += 1;
        this[event.type === 'response.output_text.delta' ? 'text' : 'reasoning'] += event.delta;
        this.#set('streaming');
        return false;
      case 'response.failed':
        this.error = response.error?.message ?? 'the answer failed';
        this.#end('failed');
        return true;
      case 'response.completed':
      case 'response.incomplete':
        this.reason = response.incomplete_details?.reason ?? '';
        if (this.reason === 'drain') return true; // to be resumed on the next server
        this.#settle(response.output);
        this.usage = response.usage;
        this.tokens = response.usage?.output_tokens ?? this.tokens;
        this.version = response.session?.version ?? null;
        this.#end('done');
        return true;
      default:
        return false;
    }
  }

  /** The stored answer replaces the streamed text, which may differ after a server was killed. */
  #settle(output = []) {
    const said = (type) => output.find((item) => item.type === type)?.content.map((part) => part.text).join('');
    this.text = said('message') ?? this.text;
    this.reasoning = said('reasoning') ?? this.reasoning;
  }

  #set(status) {
    this.status = status;
    this.changed(this);
  }

  #end(status) {
    this.#ended = this.now();
    this.#set(status);
  }
}
