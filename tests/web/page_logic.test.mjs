// The smaller parts of the page that decide something: settings, colours of code, streams of events.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Answer, Refused } from '../../web/js/answer.js';
import { Conversation, inputOf } from '../../web/js/conversation.js';
import { bodyEvents, Broken, socketEvents } from '../../web/js/events.js';
import { highlight } from '../../web/js/highlight.js';
import { shortcutOf } from '../../web/js/keys.js';
import { Server } from '../../web/js/server.js';
import { fault, fields, requestFields } from '../../web/js/settings.js';

test('settings become the fields of a request; what is empty or wrong is left out', () => {
  assert.deepEqual(requestFields({}), {});
  assert.deepEqual(
    requestFields({ temperature: '0.5', top_k: '40', seed: '', stop: 'a\n\nb', think: 'high', instructions: 'Be kind.', more: '{"ignore_eos": true}' }),
    { temperature: 0.5, top_k: 40, stop: ['a', 'b'], reasoning: { effort: 'high' }, instructions: 'Be kind.', ignore_eos: true });
  assert.deepEqual(requestFields({ temperature: 'hot', top_p: '2', top_k: '1.5', more: '[1]' }), {});
  const named = (name) => fields.find((f) => f.name === name);
  assert.match(fault(named('top_p'), '2'), /from 0 to 1/);
  assert.match(fault(named('top_k'), '1.5'), /whole/);
  assert.match(fault(named('more'), '{'), /JSON/);
  assert.equal(fault(named('seed'), ''), null);
});

test('colours lose no letter, and know words, strings, numbers and comments', () => {
  const kinds = (code, lang) => highlight(code, lang).filter((p) => p.kind !== 'plain').map((p) => `${p.kind}:${p.text}`);
  assert.deepEqual(kinds('const a = "b\\"c"; // d\n1.5', 'js'), ['word:const', 'string:"b\\"c"', 'comment:// d', 'number:1.5']);
  assert.deepEqual(kinds('def f():\n  """a\nb"""\n  return 1 # c', 'python'), ['word:def', 'string:"""a\nb"""', 'word:return', 'number:1', 'comment:# c']);
  assert.deepEqual(kinds('SELECT a FROM b', 'sql'), ['word:SELECT', 'word:FROM']);
  assert.deepEqual(kinds('/* open', 'cpp'), ['comment:/* open']);
  assert.deepEqual(highlight('a < b', 'klingon'), [{ kind: 'plain', text: 'a < b' }]);
  for (const code of ['"open\nlet x', "it's é 日本 🎉 `a\nb`", '\\', '#', '"""'])
    for (const lang of ['js', 'py', 'sh', 'c++', 'json', 'yaml'])
      assert.equal(highlight(code, lang).map((p) => p.text).join(''), code);
});

test('events of a body, however it is cut', async () => {
  const bytes = new TextEncoder().encode(': hello\n\nevent: a\ndata: {"a":"é"}\n\ndata: {"b":2}\r\n\r\ndata: [DONE]\n\n');
  for (let cut = 1; cut < bytes.length; ++cut) {
    const body = new ReadableStream({
      start(c) {
        c.enqueue(bytes.slice(0, cut));
        c.enqueue(bytes.slice(cut));
        c.close();
      },
    });
    const events = [];
    for await (const e of bodyEvents(body)) events.push(e);
    assert.deepEqual(events, [{ a: 'é' }, { b: 2 }]);
  }
});

test('events of a socket: it is asked once, breaks where it closes, and is closed when no one listens', async () => {
  const sockets = [];
  class Socket {
    sent = [];
    closed = false;
    constructor(url, protocols) {
      Object.assign(this, { url, protocols });
      sockets.push(this);
      queueMicrotask(() => {
        this.onopen();
        this.onmessage({ data: '{"n":1}' });
        this.onmessage({ data: '{"n":2}' });
        this.onclose({ code: 1006 });
      });
    }
    send(text) {
      this.sent.push(JSON.parse(text));
    }
    close() {
      this.closed = true;
    }
  }
  const seen = [];
  await assert.rejects(async () => {
    for await (const e of socketEvents('ws://a', ['b'], { input: 'c' }, null, Socket)) seen.push(e.n);
  }, Broken);
  assert.deepEqual(seen, [1, 2]);
  assert.deepEqual(sockets[0].sent, [{ type: 'response.create', input: 'c' }]);
  for await (const e of socketEvents('ws://a', [], {}, null, Socket)) if (e.n === 1) break;
  assert.ok(sockets[1].closed);
  const left = new AbortController();
  left.abort();
  await assert.rejects(async () => {
    for await (const e of socketEvents('ws://a', [], {}, left.signal, Socket)) assert.fail(e);
  }, Broken);
});

/** A WebSocket that closes with a code as soon as it was asked. */
const closing = (code, asked) => class {
  constructor() {
    queueMicrotask(() => (this.onopen(), this.onclose({ code })));
  }
  send(text) {
    asked.push(JSON.parse(text));
  }
  close() {}
};

test('a socket that is closed with a refusal is not asked again', async () => {
  for (const code of [1002, 1003, 1007]) {
    const next = async () => await socketEvents('ws://a', [], {}, null, closing(code, [])).next();
    await assert.rejects(next, (no) => no instanceof Refused && no.message.includes(code));
  }
  // 1008: its key is no longer valid. The next attempt asks for another.
  for (const code of [1001, 1005, 1006, 1008, 1009, 1011, 1012, 1013]) {
    const next = async () => await socketEvents('ws://a', [], {}, null, closing(code, [])).next();
    await assert.rejects(next, (no) => no instanceof Broken && no.code === code);
  }
});

test('a message that is too long for a socket goes over HTTP', async (t) => {
  const asked = [];
  const posted = [];
  const before = { ...globalThis };
  t.after(() => Object.assign(globalThis, { WebSocket: before.WebSocket, fetch: before.fetch }));
  const storage = { getItem: () => null };
  Object.assign(globalThis, { sessionStorage: storage, localStorage: storage, location: { href: 'http://a/' } });
  globalThis.WebSocket = closing(1009, asked);
  globalThis.fetch = async (path, { body }) => {
    posted.push(JSON.parse(body));
    const ended = { type: 'response.completed', sequence_number: 0, response: { id: 'resp_1', output: [] } };
    return new Response(`data: ${JSON.stringify(ended)}\n\n`);
  };
  const server = new Server();
  const line = { create: (request, signal) => server.create(request, signal), ready: () => assert.fail('no retry') };
  const answer = await new Answer(line, { input: 'x' }).run();
  assert.equal(answer.status, 'done');
  assert.deepEqual([asked.length, posted], [1, [{ input: 'x', stream: true }]]);
});

test('a first turn that is asked again has its instructions once, as they are now', async () => {
  const requests = [];
  const server = {
    async *create(request) {
      requests.push(request);
      yield { type: 'response.completed', sequence_number: 0, response: { id: 'resp_1', output: [] } };
    },
    tree: async () => {
      throw new Refused('no session', 404);
    },
  };
  const user = { type: 'message', role: 'user', content: 'Hi' };
  const system = { type: 'message', role: 'system', content: 'Old.' };
  const recorded = { messages: [{ role: 'system', content: 'Old.' }, { role: 'user', content: 'Hi' }] };
  const ask = async (base, settings) => {
    await new Conversation(server, 'conv_1').ask(inputOf(recorded), base, settings);
    return requests.pop();
  };
  assert.deepEqual((await ask(0, { instructions: 'New.' })).input, [user]);
  assert.deepEqual((await ask(0, {})).input, [system, user]);
  const later = await ask(3, { instructions: 'New.' });
  assert.deepEqual([later.input, later.instructions], [[system, user], undefined]);
});

test('shortcuts leave what is typed alone', () => {
  assert.equal(shortcutOf({ code: 'KeyN', key: 'n' }, true), 'KeyN');
  assert.equal(shortcutOf({ code: 'KeyN', key: 'N' }, true), 'KeyN');
  assert.equal(shortcutOf({ code: 'KeyN', key: 'Dead' }, true), null); // macOS: a tilde for the next letter
  assert.equal(shortcutOf({ code: 'KeyS', key: 'ß' }, true), null);
  assert.equal(shortcutOf({ code: 'ArrowLeft', key: 'ArrowLeft' }, true), null);
  assert.equal(shortcutOf({ code: 'KeyS', key: 'ß' }, false), 'KeyS');
  assert.equal(shortcutOf({ code: 'ArrowLeft', key: 'ArrowLeft' }, false), 'ArrowLeft');
});
