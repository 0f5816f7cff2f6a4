// The smaller parts of the page that decide something: settings, colours of code, streams of events.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bodyEvents, Broken, socketEvents } from '../../web/js/events.js';
import { highlight } from '../../web/js/highlight.js';
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
