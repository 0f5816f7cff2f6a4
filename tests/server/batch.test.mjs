// The generating routes of older RWKV servers: one literal request of each, as their documents show it, against the demo
// model; batches of hundreds of prompts, each of which says what it says alone; translation as an extension of browsers
// asks for it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { noOracle, root, serve, serveTiny } from './support.mjs';

const requests = readFileSync(join(root, 'tests/server/requests.jsonl'), 'utf8').trim().split('\n').map((l) => JSON.parse(l));
const extension = 'chrome-extension://bpoadfkcbjbfhfodiogcnhhhpibjhbnh';
let demo;
let tiny;

before(async () => {
  demo = await serve('--password', 'secret', '--set', 'server.open_translation=true', '--set', 'drain.grace_ms=0');
  if (!noOracle) tiny = await serveTiny('--set', 'drain.grace_ms=0');
});
after(async () => {
  for (const server of [demo, tiny]) if (server) assert.equal((await server.stop()).code, 0);
});

/** The events of a stream; the last one must be [DONE], and that only once. */
async function streamed(server, path, body, headers = {}) {
  const response = await server.fetch(path, { method: 'POST', body: JSON.stringify({ ...body, stream: true }), headers });
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type'), /^text\/event-stream/);
  const lines = (await response.text()).split('\n\n').filter((l) => l && !l.startsWith(':'));
  assert.equal(lines.pop(), 'data: [DONE]');
  return lines.map((l) => JSON.parse(l.replace(/^data: /, '')));
}

/** Texts and ends by index. An end comes once, and nothing after it. */
function rowsOf(events) {
  const rows = [];
  for (const choice of events.flatMap((e) => e.choices)) {
    const row = (rows[choice.index] ??= { text: '' });
    assert.equal(row.end, undefined, `index ${choice.index} goes on after its end`);
    row.text += choice.delta?.content ?? choice.text ?? '';
    if (choice.finish_reason) row.end = choice.finish_reason;
  }
  return rows;
}

const answers = (body) => body.contents?.length ?? body.prefix?.length ?? 1;

for (const { name, path, headers, body } of requests.filter((r) => /completions|FIM|translate/.test(r.path))) {
  test(`request ${name}`, async () => {
    if (body.text_list) {
      const { status, body: answer } = await demo.post(path, body, headers);
      assert.equal(status, 200);
      assert.equal(answer.translations.length, body.text_list.length);
      for (const t of answer.translations) {
        assert.equal(t.detected_source_lang, body.source_lang);
        assert.ok(t.text.length > 0 && t.text === t.text.trim());
      }
      return;
    }
    const numbers = [...Array(answers(body)).keys()];
    if (body.stream) {
      const rows = rowsOf(await streamed(demo, path, body, headers));
      assert.deepEqual(Object.keys(rows).map(Number), numbers);
      for (const row of rows) assert.match(row.end, /^(stop|length)$/);
      return;
    }
    const { status, body: answer } = await demo.post(path, body, headers);
    assert.equal(status, 200);
    assert.deepEqual(answer.choices.map((c) => c.index), numbers);
    for (const c of answer.choices) {
      assert.equal(typeof c.message.content, 'string');
      assert.match(c.finish_reason, /^(stop|length)$/);
    }
    assert.ok(answer.usage.completion_tokens >= numbers.length);
  });
}

test('the wrong password is refused in the words of these servers', async () => {
  const { status, body } = await demo.post('/v2/chat/completions', { contents: ['x'], password: 'guess' });
  assert.equal(status, 401);
  assert.deepEqual(body, { error: 'Unauthorized: invalid or missing password' });
});

test('a refusal is written as the route and the body would have it', async () => {
  const ask = async (path, body) => {
    const { status, body: answer } = await demo.post(path, body, { authorization: 'Bearer secret' });
    assert.equal(status, 400, path);
    return answer.error;
  };
  for (const path of ['/v2/chat/completions', '/v3/chat/completions', '/big_batch/completions', '/v1/batch/completions'])
    assert.equal(await ask(path, { contents: [] }), 'Empty prompts list');
  assert.equal(await ask('/v1/chat/completions', { contents: [] }), 'Empty prompts list');
  assert.match(await ask('/v2/chat/completions', '{'), /^Invalid JSON: /);
  assert.match(await ask('/FIM/v1/batch-FIM', { prefix: ['a', 'b'], suffix: ['c'] }), /prefix has 2/);
  assert.match(await ask('/v2/chat/completions', { contents: ['x'], temperature: 'hot' }), /temperature/);
  assert.equal((await ask('/v1/chat/completions', {})).param, 'messages');
  assert.equal((await ask('/openai/v1/chat/completions', {})).param, 'messages');
});

test('one path, three forms', async () => {
  const ask = async (body) =>
    (await demo.post('/v1/chat/completions', { max_tokens: 4, ...body }, { authorization: 'Bearer secret' })).body;
  assert.equal((await ask({ contents: ['User: Hello\n\nAssistant:'] })).id, 'rwkv7-batch');
  assert.equal((await ask({ prompt: 'User: Hello' })).object, 'text_completion');
  const messages = [{ role: 'user', content: 'Hello' }];
  assert.match((await ask({ messages })).id, /^chatcmpl-/);
  assert.match((await ask({ messages, contents: ['What is Skein?'] })).id, /^chatcmpl-/);
});

test('chunk_size, ids and events of one row', async () => {
  const body = { contents: ['User: Hello\n\nAssistant:', 'User: Count to five.\n\nAssistant:'], max_tokens: 12, temperature: 0, stop_tokens: [0] };
  const auth = { authorization: 'Bearer secret' };
  const fine = await streamed(demo, '/v1/chat/completions', { ...body, chunk_size: 1 }, auth);
  const coarse = await streamed(demo, '/v1/chat/completions', { ...body, chunk_size: 100 }, auth);
  assert.ok(fine.some((e) => e.choices.length === 2), 'rows share events');
  assert.ok(fine.length > coarse.length);
  assert.deepEqual(rowsOf(fine), rowsOf(coarse));
  const single = await streamed(demo, '/v1/batch/completions', { ...body, chunk_size: 1 }, { ...auth, 'x-request-id': 'req-7' });
  assert.deepEqual(rowsOf(single), rowsOf(fine));
  for (const e of single) {
    assert.equal(e.choices.length, 1);
    assert.equal(e.id, 'req-7');
  }
  const whole = await demo.post('/v1/batch/completions', body, auth);
  assert.equal(whole.body.id, 'rwkv7-fast-batch');
  assert.deepEqual(whole.body.choices.map((c) => c.message.content), rowsOf(fine).map((r) => r.text));
});

const many = (count) => [...Array(count).keys()].map((i) => `${(i * 7919 + 31).toString(36)}${"ab .,:=("[i % 8]}`);
const free = { temperature: 1, top_k: 0, top_p: 1, alpha_presence: 0, alpha_frequency: 0, seed: 7, max_tokens: 6, stop_tokens: [] };
const contentsOf = ({ body }) => body.choices.map((c) => c.message.content);

test('320 prompts in a stream: every index once and whole, as it is alone', { skip: noOracle }, async () => {
  const contents = many(320);
  const rows = rowsOf(await streamed(tiny, '/v1/chat/completions', { ...free, contents, chunk_size: 2 }));
  assert.equal(rows.length, 320);
  for (const row of rows) assert.equal(row.end, 'length');
  const texts = rows.map((r) => r.text);
  assert.ok(new Set(texts).size > 40, 'prompts have answers of their own');
  assert.deepEqual(contentsOf(await tiny.post('/v2/chat/completions', { ...free, contents, pad_zero: false })), texts);
  const padded = contentsOf(await tiny.post('/v2/chat/completions', { ...free, contents }));
  assert.notDeepEqual(padded, texts);
  for (const i of [0, 1, 63, 64, 200, 319])
    assert.deepEqual(contentsOf(await tiny.post('/v1/chat/completions', { ...free, contents: [contents[i]] })), [texts[i]]);
  const plain = { contents, max_tokens: 6, seed: 7, stop_tokens: [], stream: false };
  assert.deepEqual(contentsOf(await tiny.post('/big_batch/completions', plain)), texts);
});

test('all ways to ask for the best token', { skip: noOracle }, async () => {
  const ask = async (path, more) => contentsOf(await tiny.post(path, { ...free, contents: many(8), stream: false, ...more }));
  const best = await ask('/v1/chat/completions', { top_k: 1 });
  for (const more of [{ temperature: 0 }, { top_p: 0 }]) assert.deepEqual(await ask('/v1/chat/completions', more), best);
  assert.deepEqual(await ask('/v2/chat/completions', { temperature: 0, pad_zero: false }), best);
  assert.deepEqual(await ask('/big_batch/completions', { temperature: 0 }), best);
  assert.deepEqual(await ask('/big_batch/completions', { temperature: -1 }), best);
});

test('1,024 prompts in one call, queued in waves', { skip: noOracle }, async () => {
  const contents = many(1024);
  const { status, body } = await tiny.post('/big_batch/completions', { contents, max_tokens: 2, temperature: 0, stop_tokens: [], stream: false });
  assert.equal(status, 200);
  assert.deepEqual(body.choices.map((c) => c.index), [...contents.keys()]);
  for (const c of body.choices) assert.equal(c.finish_reason, 'length');
  assert.equal(body.usage.completion_tokens, 2048);
  const { body: health } = await tiny.get('/health');
  assert.equal(health.waiting ?? 0, 0);
});

test('translation for an extension of browsers', async () => {
  const preflight = await demo.fetch('/translate/v1/batch-translate', {
    method: 'OPTIONS',
    headers: { origin: extension, 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' },
  });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get('access-control-allow-origin'), '*');
  assert.equal(preflight.headers.get('access-control-allow-headers'), 'content-type');
  assert.match(preflight.headers.get('access-control-allow-methods'), /POST/);

  const ask = (body) => demo.post('/translate/v1/batch-translate', body, { origin: extension });
  const first = 'Good morning.';
  const { status, headers, body } = await ask({
    source_lang: 'auto', target_lang: 'zh-CN', placeholders: null,
    text_list: [first, '', `${first}\n\n${first}`, ' \n'],
  });
  assert.equal(status, 200);
  assert.equal(headers.get('access-control-allow-origin'), '*');
  const [one, empty, two, blank] = body.translations;
  assert.equal(one.detected_source_lang, 'en');
  assert.ok(one.text.length > 0);
  assert.equal(empty.text, '');
  assert.equal(two.text, `${one.text}\n\n${one.text}`);
  assert.equal(blank.text, '');
  assert.equal((await ask({ target_lang: 'en', text_list: ['早上好'] })).body.translations[0].detected_source_lang, 'zh-CN');
  assert.deepEqual((await ask({ target_lang: 'en', text_list: [] })).body, { translations: [] });
  assert.deepEqual((await ask({ target_lang: 'en', text_list: [''] })).body.translations, [{ detected_source_lang: 'en', text: '' }]);
  const wrong = await ask({ text_list: ['x'] });
  assert.equal(wrong.status, 400);
  assert.match(wrong.body.error, /target_lang/);
});

test('a page of an origin that is not listed may not translate', { skip: noOracle }, async () => {
  const { status, headers } = await tiny.post('/translate/v1/batch-translate', { target_lang: 'zh', text_list: [''] }, { origin: extension });
  assert.equal(status, 403);
  assert.equal(headers.get('access-control-allow-origin'), null);
});
