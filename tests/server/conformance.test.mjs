// The wire contract with clients of older servers, as a table: each of their documented requests, literally and in
// variants, streamed and whole, to the demo model and to a tiny one whose tokens are bytes. Every answer is checked field
// by field and every stream event by event; then the other parts of the contract: stored conversations, two
// writers, branches, hang-ups, tuned states, stop strings. The contract's twelve minimum checks are listed at the end, each
// with the tests that make it. (Single statements: statements.test.mjs; tools and json_schema are not there yet.)
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { anything, hasShape, is, isCount, isReason, isText, like, usage } from './shapes.mjs';
import { noOracle, oracle, root, serve, serveTiny, short } from './support.mjs';

const requests = readFileSync(join(root, 'tests/server/requests.jsonl'), 'utf8').trim().split('\n').map((l) => JSON.parse(l));
const auth = { authorization: 'Bearer secret' };
const folder = mkdtempSync(join(tmpdir(), 'skein-conformance-'));
after(() => rmSync(folder, { recursive: true, force: true }));

// ---------------------------------------------------------------- shapes

const session = { id: isText, version: isCount, durable: isText, 'stored?': anything, 'replayed?': anything };

/** What the answers of one dialect look like. `event` is the frame of a stream's events, `choice` a whole answer's. */
const native = (id, object = 'chat.completion') => ({
  head: { id: is(id), object: is(object), created: isCount, model: isText, 'system_fingerprint?': anything },
  choice: { index: isCount, message: { role: is('assistant'), content: isText }, finish_reason: isReason },
  event: { id: isText, object: is('chat.completion.chunk'), created: isCount, model: isText, 'system_fingerprint?': anything },
  begins: false,
});
const chat = {
  head: { id: like(/^chatcmpl-[0-9a-f]{24}$/), object: is('chat.completion'), created: isCount, model: isText, system_fingerprint: like(/^skein-[0-9a-f]{12}-[a-z0-9]+-\d+\.\d+\.\d+\+[0-9a-z]+$/) },
  choice: {
    index: isCount, message: { role: is('assistant'), content: isText, 'reasoning_content?': isText },
    logprobs: is(null), finish_reason: isReason, 'stop_reason?': anything,
  },
  event: { id: like(/^chatcmpl-[0-9a-f]{24}$/), object: is('chat.completion.chunk'), created: isCount, model: isText, system_fingerprint: like(/^skein-[0-9a-f]{12}-[a-z0-9]+-\d+\.\d+\.\d+\+[0-9a-z]+$/) },
  begins: true,
};
const text = {
  head: { id: like(/^cmpl-[0-9a-f]+$/), object: is('text_completion'), created: isCount, model: isText, system_fingerprint: like(/^skein-[0-9a-f]{12}-[a-z0-9]+-\d+\.\d+\.\d+\+[0-9a-z]+$/) },
  choice: { index: isCount, text: isText, logprobs: is(null), finish_reason: isReason, 'stop_reason?': anything },
  event: { id: like(/^cmpl-[0-9a-f]+$/), object: is('text_completion'), created: isCount, model: isText, system_fingerprint: like(/^skein-[0-9a-f]{12}-[a-z0-9]+-\d+\.\d+\.\d+\+[0-9a-z]+$/) },
  begins: false,
};
const shapes = {
  '/FIM/v1/batch-FIM': native('rwkv7-batch', 'FIM.completion'),
  '/v1/chat/completions': native('rwkv7-batch'),
  '/v2/chat/completions': native('rwkv7-batch'),
  '/v3/chat/completions': native('rwkv7-batch-v3'),
  '/big_batch/completions': native('rwkv7-batch'),
  '/state/chat/completions': native('rwkv7-batch'),
  '/openai/v1/chat/completions': chat,
  '/v1/batch/completions': native('rwkv7-fast-batch'),
  '/chat/completions': chat,
  '/completions': text,
  '/api/oai/v1/chat/completions': chat,
  '/api/oai/completions': text,
  '/v1/completions': text,
};

function checkWhole(shape, body, count) {
  hasShape(body, { ...shape.head, choices: Array.isArray, usage, 'session?': session });
  assert.deepEqual(body.choices.map((c) => c.index), [...Array(count).keys()]);
  for (const choice of body.choices) hasShape(choice, shape.choice, 'choice');
  assert.equal(body.usage.total_tokens, body.usage.prompt_tokens + body.usage.completion_tokens);
  return body.choices.map(({ message, text: raw, finish_reason: end }) => ({ text: raw ?? (message.reasoning_content ?? '') + message.content, end }));
}

/** The events of a stream, in their order: per index a beginning where the shape has one, texts, one end; [DONE] last. */
function checkStream(shape, text, count) {
  const lines = text.split('\n\n').filter((l) => l !== '' && !l.startsWith(':'));
  assert.equal(lines.pop(), 'data: [DONE]');
  assert.ok(text.endsWith('\n\n'));
  const rows = Array.from({ length: count }, () => ({ text: '', begun: false, end: undefined }));
  const heads = new Set();
  for (const line of lines) {
    assert.ok(line.startsWith('data: {') && !line.includes('\n'), line);
    assert.doesNotMatch(line, /(?<!\\)\\u(?!00[01]|007f)/i, 'text is sent as UTF-8');
    const event = JSON.parse(line.slice(6));
    hasShape(event, { ...shape.event, choices: Array.isArray, 'session?': session, 'usage?': anything }, 'event');
    heads.add(`${event.id} ${event.created} ${event.model}`);
    const indexes = event.choices.map((c) => c.index);
    assert.deepEqual(indexes, [...new Set(indexes)].sort((a, b) => a - b));
    for (const { index, text: raw, delta = raw ? { content: raw } : {}, finish_reason } of event.choices) {
      const row = rows[index];
      assert.equal(row.end, undefined, `index ${index} goes on after its end`);
      if (delta.role) {
        assert.ok(shape.begins && !row.begun && row.text === '');
        row.begun = true;
      }
      row.text += (delta.reasoning_content ?? '') + (delta.content ?? '');
      if (finish_reason) {
        isReason(finish_reason);
        assert.deepEqual(delta, {});
        row.end = finish_reason;
      }
    }
  }
  assert.equal(heads.size, 1, 'all events share id, created and model');
  for (const row of rows) {
    assert.ok(row.end, 'every index ends');
    assert.equal(row.begun, shape.begins);
  }
  return rows.map(({ text: t, end }) => ({ text: t, end }));
}

// ---------------------------------------------------------------- the table of requests

// What clients of the other servers send.
const password = 'secret';
const additions = [
  { name: 'cuda-batch', path: '/v1/batch/completions', body: { contents: ['User: One.\n\nAssistant:', 'User: Two.\n\nAssistant:'], max_tokens: 24, stop_tokens: [0, 261, 24281], password } },
  { name: 'infer-chat', path: '/chat/completions', body: { model: 'anything', messages: [{ role: 'System', content: 'Be brief.' }, { role: 'user', content: 'Hello.' }], max_tokens: 24, temperature: '1.0', top_p: '0.3', state: '', password } },
  { name: 'infer-completion', path: '/completions', body: { model: 'anything', prompt: ['Once upon a time', 'The end'], max_tokens: 24, presence_penalty: '0.5', password } },
  { name: 'ai-chat', path: '/api/oai/v1/chat/completions', body: { messages: [{ role: 'User', content: 'Hello.' }], max_tokens: 24, sampler: { type: 'Nucleus', top_p: 0.5, top_k: 128 }, names: { user: 'User', assistant: 'Assistant' }, state: '', password } },
  { name: 'ai-completion', path: '/api/oai/completions', body: { prompt: ['Once upon a time'], max_tokens: 24, top_k: 128, password } },
  { name: 'con-prompt', path: '/v1/completions', body: { model: 'rwkv7', prompt: 'Once upon a time', max_tokens: 24, temperature: 0.5, password } },
];
const generating = requests.filter((r) => shapes[r.path]).concat(additions);
const prompts = ['contents', 'messages', 'prompt', 'prefix', 'suffix', 'password', 'model'];
const answers = (body) => [body.contents, body.prefix, body.prompt].find(Array.isArray)?.length ?? 1;
const kept = (body, names) => Object.fromEntries(Object.entries(body).filter(([k]) => names.includes(k)));
const greedy = { temperature: 0, top_k: 1, top_p: 0, alpha_presence: 0, alpha_frequency: 0 };

/** Variants of a documented body that must be answered. Those that are `certain` say the same streamed and whole. */
const variants = {
  'as documented': { change: (b) => b },
  'nothing but the prompt': { change: (b) => ({ ...kept(b, prompts), max_tokens: 12 }) },
  'with a seed': { change: (b) => ({ ...b, seed: 7, max_tokens: 24 }), certain: true },
  'greedy, token by token': { change: (b) => ({ ...b, ...greedy, chunk_size: 1, max_tokens: 24 }), certain: true },
  'stops as strings': { change: (b) => ({ ...b, ...greedy, stop_tokens: ['\nUser:', 'e'], max_tokens: 24 }), certain: true, never: 'e' },
  'stops of both kinds': { change: (b) => ({ ...b, ...greedy, stop_tokens: [0, 11, ' '], stop: 'never', max_tokens: 24 }), certain: true, never: ' ' },
  'no stops': { change: (b) => ({ ...b, ...greedy, stop_tokens: [], ignore_eos: true, max_tokens: 9 }), certain: true, end: 'length' },
  'nulls and unknown fields': {
    change: (b) => ({ ...b, ...greedy, stop: null, session_id: b.session_id ?? null, noise: 1.5, nonsense: { a: [1] }, max_tokens: 9 }),
    certain: true,
  },
  'odd values that the older servers take': { change: (b) => ({ ...b, ...greedy, top_p: 1, top_k: 1, chunk_size: 0, max_tokens: 9 }), certain: true },
};

/** Changes to a documented request that must be refused: status, and what the message names. */
const refusals = {
  'a text for a number': { change: (b) => ({ ...b, max_tokens: 'many' }), status: 400, names: 'max_tokens' },
  'a number out of range': { change: (b) => ({ ...b, max_tokens: -1 }), status: 400, names: 'max_tokens' },
  'a NaN by its name': { change: (b) => JSON.stringify(b).replace(/"max_tokens":\d+/, '"max_tokens":NaN'), status: 400 },
  'a cut body': { change: (b) => JSON.stringify(b).slice(0, -1), status: 400 },
  'no body': { change: () => '', status: 400 },
  'a list for a body': { change: (b) => [b], status: 400 },
  'a field twice': { change: (b) => JSON.stringify(b).replace('"max_tokens"', '"max_tokens":1,"max_tokens"'), status: 400, names: 'max_tokens' },
  'stops of no kind': { change: (b) => ({ ...b, stop_tokens: [true] }), status: 400, names: 'stop_tokens' },
  'no prompt': { change: (b) => kept(b, ['password', 'max_tokens']), status: 400 },
};

async function send(server, path, body, headers) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await server.fetch(path, { method: 'POST', body: text, headers });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Sends a request in one of its forms and checks all of the answer. */
async function ask(server, { path, headers }, body, stream) {
  const { status, headers: got, text } = await send(server, path, { ...body, stream }, headers);
  assert.equal(status, 200, text);
  assert.ok(got.get('x-request-id'));
  assert.match(got.get('content-type'), stream ? /^text\/event-stream/ : /^application\/json/);
  return stream ? checkStream(shapes[path], text, answers(body)) : checkWhole(shapes[path], JSON.parse(text), answers(body));
}

const shared = ['with a seed', 'stops as strings'];

function playTable(server, names = Object.keys(variants), translations = requests.filter((r) => r.body?.text_list)) {
  for (const request of generating)
    for (const [name, { change, certain, never, end }] of names.map((n) => [n, variants[n]]))
      test(`${request.name}: ${name}`, async () => {
        const body = change(structuredClone(request.body));
        if (body.session_id) delete body.session_id;  // each a first turn; sessions come below
        const said = [await ask(server(), request, body, false), await ask(server(), request, body, true)];
        if (certain) assert.deepEqual(said[1], said[0]);
        for (const row of said.flat()) {
          if (never) assert.ok(!row.text.includes(never), row.text);
          if (end) assert.equal(row.end, end);
        }
      });

  for (const request of generating.filter((r) => !r.name.endsWith('-whole')))
    test(`${request.name}: refusals`, async () => {
      for (const [name, { change, status, names }] of Object.entries(refusals)) {
        const answer = await send(server(), request.path, change(structuredClone(request.body)), auth);
        assert.equal(answer.status, status, `${name}: ${answer.text}`);
        const { error } = JSON.parse(answer.text);
        if (request.path.startsWith('/openai')) hasShape(error, { message: isText, type: is('invalid_request_error'), param: anything, code: anything });
        // A path of several forms has the style of the form that it was taken for.
        const message = typeof error === 'string' ? error : error.message;
        if (names) assert.ok(message.includes(names) || error.param === names, `${name}: ${message}`);
      }
      const { password, ...open } = request.body;
      const stranger = await send(server(), request.path, open, {});
      assert.equal(stranger.status, 401);
      if (Array.isArray(open.contents ?? open.prefix) && !request.path.startsWith('/openai'))
        assert.deepEqual(JSON.parse(stranger.text), { error: 'Unauthorized: invalid or missing password' });
      const { status } = await server().get(request.path, auth);
      assert.equal(status, 405);
    });

  for (const request of translations)
    test(`${request.name}: whole, other languages, refusals`, async () => {
      const rows = [
        { change: (b) => b },
        { change: (b) => ({ ...b, source_lang: 'auto', placeholders: null }) },
        { change: (b) => ({ ...b, target_lang: 'Latin', text_list: ['', 'x'] }) },
        { change: (b) => ({ ...b, target_lang: 'Klingon' }), status: 400 },
        { change: (b) => ({ ...b, target_lang: undefined }), status: 400 },
        { change: (b) => ({ ...b, text_list: [1] }), status: 400 },
        { change: () => '{', status: 400 },
      ];
      for (const { change, status = 200 } of rows) {
        const body = change(structuredClone(request.body));
        const answer = await send(server(), request.path, body, auth);
        assert.equal(answer.status, status, answer.text);
        const json = JSON.parse(answer.text);
        if (status !== 200) {
          hasShape(json, { error: isText });
          continue;
        }
        hasShape(json, { translations: Array.isArray });
        assert.equal(json.translations.length, body.text_list.length);
        for (const t of json.translations) {
          hasShape(t, { detected_source_lang: isText, text: isText });
          assert.equal(t.text, t.text.trim());
        }
      }
    });
}

describe('the demo model', () => {
  let server;
  before(async () => {
    server = await serve('--device', 'cpu', '--password', 'secret', '--set', 'drain.grace_ms=0', '--set', 'server.strict_model_names=true');
  });
  after(async () => assert.equal((await server.stop()).code, 0));
  // Where tokens are dear, the two share the table: this one ends translations, which the tiny one never does.
  playTable(() => server, short ? shared : undefined);

  test('Chinese and emoji, token by token, are whole characters', async () => {
    const body = { contents: ['English: Good morning.\n\nChinese:', 'English: See you tomorrow.\n\nChinese:'], ...greedy, stop_tokens: [0], max_tokens: 24, chunk_size: 1, password: 'secret' };
    const request = { path: '/v1/chat/completions', headers: {} };
    const rows = await ask(server, request, body, true);
    assert.deepEqual(rows, await ask(server, request, body, false));
    for (const { text } of rows) {
      assert.match(text, /[\u4e00-\u9fff]/);
      assert.ok(!text.includes('\ufffd'));
    }
    const echoed = await server.post('/v1/completions', { prompt: '你好😀', echo: true, max_tokens: 0 }, auth);
    assert.equal(echoed.body.choices[0].text, '你好😀');
  });

  test('the official client on the older path', async () => {
    const client = new OpenAI({ apiKey: 'secret', baseURL: `${server.url}/openai/v1`, maxRetries: 0 });
    const question = { model: 'rwkv7', messages: [{ role: 'user', content: 'What is a skein of geese?' }], temperature: 0, max_tokens: 32 };
    const whole = await client.chat.completions.create(question);
    let streamed = '';
    let counted;
    for await (const chunk of await client.chat.completions.create({ ...question, stream: true, stream_options: { include_usage: true } })) {
      streamed += chunk.choices[0]?.delta.content ?? '';
      counted = chunk.usage ?? counted;
    }
    assert.equal(streamed, whole.choices[0].message.content);
    assert.equal(counted.total_tokens, whole.usage.total_tokens);
    const two = await client.chat.completions.create({ ...question, n: 2, stop: ['e', 'i'], logprobs: true, top_logprobs: 2 });
    assert.deepEqual(two.choices.map((c) => c.index), [0, 1]);
    for (const c of two.choices) {
      assert.ok(!/[ei]/.test(c.message.content));
      for (const t of c.logprobs.content) assert.equal(t.top_logprobs.length, 2);
    }
    await assert.rejects(client.chat.completions.create({ ...question, model: 'nobody' }), OpenAI.NotFoundError);
    await assert.rejects(client.models.retrieve('nobody'), OpenAI.NotFoundError);
    await assert.rejects(new OpenAI({ apiKey: 'x', baseURL: `${server.url}/v1`, maxRetries: 0 }).models.list(), OpenAI.AuthenticationError);
  });
});

// ---------------------------------------------------------------- what is kept, and who may interrupt

describe('a tiny model', { skip: noOracle }, () => {
  // Few places on each level, so that 49 conversations need all three.
  const start = () =>
    serveTiny('--password', 'secret', '--state-dir', join(folder, 'states'), '--states-dir', oracle ?? '', '--set', 'drain.grace_ms=0',
              '--set', 'engine.slots=8', '--set', 'engine.vram_states_max=4', '--set', 'sessions.ram_states_max=8',
              '--set', 'prefix_cache.enabled=false', '--set', 'sessions.write_behind_ms=0');
  let server;
  before(async () => {
    server = await start();
  });
  after(async () => assert.equal((await server.stop()).code, 0));
  playTable(() => server, ...(short ? [Object.keys(variants).filter((name) => !shared.includes(name)), []] : []));

  const plain = { ...greedy, stop_tokens: [], ignore_eos: true, max_tokens: 12, password: 'secret' };
  const post = async (path, body) => {
    const answer = await server.post(path, { password: 'secret', ...body });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body;
  };
  const state = async (content, session_id, more = {}) =>
    (await post('/state/chat/completions', { ...plain, contents: [content], session_id, ...more })).choices[0].message.content;
  const versions = async (id) => (await server.get(`/v1/sessions/${encodeURIComponent(id)}/versions`, auth)).body;

  test('two turns say what one prompt with both says, also after a restart', async () => {
    const first = 'User: One.\n\nAssistant:', second = '\n\nUser: Two.\n\nAssistant:', third = '\n\nUser: Three.\n\nAssistant:';
    const one = await state(first, 'kept');
    const two = await state(second, 'kept');
    assert.equal(two, await state(first + one + second));
    assert.equal((await server.stop()).code, 0);
    server = await start();
    assert.equal(await state(third, 'kept'), await state(first + one + second + two + third));
  });

  test('a stop text that tokens cut is neither told nor kept, unless that is asked for', async () => {
    const prompt = 'User: Tell.\n\nAssistant:', next = '\n\nUser: More.\n\nAssistant:';
    const full = await state(prompt, undefined, { max_tokens: 24 });
    const stop = full.slice(6, 10);
    const cut = await state(prompt, 'cut', { max_tokens: 24, stop_tokens: [stop] });
    assert.equal(cut, full.slice(0, full.indexOf(stop)));
    assert.equal(await state(next, 'cut'), await state(prompt + cut + next));
    const shown = await state(prompt, 'shown', { max_tokens: 24, stop_tokens: [stop], include_stop_str_in_output: true });
    assert.equal(shown, cut + stop);
    assert.equal(await state(next, 'shown'), await state(prompt + shown + next));
  });

  test('49 conversations on three levels, counted right, and deleted once', async () => {
    const ids = [...Array(49).keys()].map((i) => `crowd-${i}`);
    await Promise.all(ids.map((id, i) => state(`${i}:`, id, { max_tokens: 2 })));
    // States move in their own time, and what was used last is on the fastest level until others need its place.
    const levels = ['L1 (VRAM)', 'L2 (RAM)', 'Database (Disk)'];
    let body;
    for (let tries = 0; tries < 100; ++tries) {
      ({ body } = await server.post('/state/status', { password: 'secret' }));
      if (levels.every((level) => body.sessions.some((s) => s.cache_level === level))) break;
      await state('again:', 'crowd-0', { max_tokens: 1 });
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const listed = body.sessions.filter((s) => s.session_id.startsWith('crowd-'));
    assert.deepEqual(new Set(listed.map((s) => s.session_id)), new Set(ids));
    assert.equal(listed.length, 49);
    assert.equal(body.total_sessions, body.sessions.length);
    assert.equal(body.l1_cache_count + body.l2_cache_count + body.database_count, body.total_sessions);
    for (const level of levels)
      assert.ok(body.sessions.some((s) => s.cache_level === level), `nothing on ${level}: ${JSON.stringify(body).slice(0, 200)}`);
    const gone = { session_id: 'crowd-7', password: 'secret' };
    assert.deepEqual((await server.post('/state/delete', gone)).body, { status: 'success', message: 'Session crowd-7 deleted successfully' });
    const again = await server.post('/state/delete', gone);
    assert.equal(again.status, 404);
    assert.deepEqual(again.body, { status: 'not_found', message: 'Session crowd-7 not found in database' });
    assert.equal((await server.post('/state/delete', { password: 'secret' })).status, 400);
  });

  test('two calls at once on one conversation follow each other', async () => {
    await state('Begin:', 'shared');
    const both = await Promise.all(['a', 'b'].map((c) => post('/state/chat/completions', { ...plain, contents: [c], session_id: 'shared' })));
    assert.deepEqual(both.map((b) => b.session.version).sort(), [2, 3]);
    const list = (await versions('shared')).data ?? (await versions('shared')).versions;
    assert.deepEqual(list.map((v) => v.parent).sort(), [0, 1, 2]);
  });

  test('branches of one conversation', async () => {
    const branch = (content, dialogue_idx) => post('/multi_state/chat/completions', { ...plain, contents: [content], session_id: 'tree', dialogue_idx });
    const trunk = await branch('A tree', 0);
    assert.equal(trunk.dialogue_idx, 1);
    const [left, right] = [await branch(' left', 1), await branch(' right', 1)];
    assert.deepEqual([left.dialogue_idx, right.dialogue_idx], [2, 3]);
    const streamed = await send(server, '/multi_state/chat/completions', { ...plain, contents: [' up'], session_id: 'tree', dialogue_idx: 1, stream: true }, auth);
    const told = JSON.parse(streamed.text.trim().split('\n\n').at(-2).slice(6));
    assert.deepEqual([told.object, told.session_id, told.dialogue_idx], ['multi_state.dialogue_idx', 'tree:4', 4]);
    const again = await branch(' left', 1);
    assert.equal(again.choices[0].message.content, left.choices[0].message.content);
    assert.equal((await server.post('/multi_state/chat/completions', { ...plain, contents: ['x'], session_id: 'tree', dialogue_idx: 99 })).status, 404);
    assert.equal((await server.post('/multi_state/chat/completions', { ...plain, contents: ['x'], session_id: 'tree' })).status, 400);
  });

  test('who hangs up in prefill, in decode or in the queue leaves its place and no turn', async () => {
    await state('Stay:', 'left');
    const before_ = await versions('left');
    const open = (content, session_id) => {
      const abort = new AbortController();
      const body = JSON.stringify({ ...plain, contents: [content], session_id, max_tokens: 1000000, stream: true, chunk_size: 1 });
      const path = '/state/chat/completions';
      const begun = server.fetch(path, { method: 'POST', body, signal: abort.signal }).then((r) => r.body.getReader().read());
      return { abort, begun: begun.catch(() => undefined) };
    };
    const decoding = open('x', 'left');
    await decoding.begun;
    const prefilling = open('long '.repeat(100000));
    const queued = [...Array(12).keys()].map((i) => open(`wait ${i}`));
    await server.counters((h) => h.requests.running + h.requests.waiting >= 13);
    for (const { abort } of [decoding, prefilling, ...queued]) abort.abort();
    await Promise.all([decoding, prefilling, ...queued].map((q) => q.begun));
    await server.counters((h) => h.slots.used === 0 && h.requests.running === 0 && h.requests.waiting === 0);
    assert.deepEqual(await versions('left'), before_);
  });

  test('tuned states by name', async () => {
    const load = requests.find((r) => r.name === 'loadstatemodel');
    const scores = async (more) => (await post('/v1/completions', { prompt: 'User: Hello', max_tokens: 4, temperature: 0, logprobs: 3, ...more })).choices[0].logprobs.token_logprobs;
    const base = await scores({ model: 'tiny' });
    assert.deepEqual(await post(load.path, load.body), { status: 'success' });
    const { body: models } = await server.get('/models', auth);
    assert.deepEqual(models, [{ object: 'models', id: 'tiny' }, { object: 'models', id: 'tiny State Test' }]);
    const named = await scores({ model: 'tiny State Test' });
    assert.notDeepEqual(named, base);
    assert.deepEqual(await scores({ model: 'tiny', state_name: 'State Test' }), named);
    const wrong = await server.post(load.path, { ...load.body, state_filename: 'models/state-gen-7.pth', password: 'secret' });
    assert.ok(wrong.status === 400 || wrong.status === 500, `${wrong.status}`);
    assert.ok(wrong.body.error && wrong.body.detail);
    const remove = requests.find((r) => r.name === 'removestatemodel');
    assert.deepEqual(await post(remove.path, remove.body), { status: 'success' });
    assert.deepEqual((await server.get('/models', auth)).body, [{ object: 'models', id: 'tiny' }]);
  });

  test('a paused chat goes on where it broke off', async () => {
    const question = { messages: [{ role: 'user', content: 'Hello' }], ...greedy, ignore_eos: true, stop_tokens: [], max_tokens: 20000 };
    const shown = (text) => text.split('\n\n').filter((l) => l.startsWith('data: {')).map((l) => JSON.parse(l.slice(6)));
    const said = (events) => events.map((e) => e.choices[0]?.delta.content ?? '').join('');
    const running = send(server, '/v1/chat/completions', { ...question, stream: true }, { ...auth, 'x-request-id': 'pause-me' });
    for (;;) {
      const { body } = await server.get('/v1/server/status', auth);
      if (body.active_requests.some((r) => r.id === 'pause-me' && r.generated_tokens > 0)) break;
    }
    const { body: paused } = await server.post('/v1/server/pause', { request_id: 'pause-me' }, auth);
    assert.equal(paused.paused, true);
    const first = shown((await running).text);
    assert.deepEqual(first.at(-1).rwkv, { stop_reason: 'paused', request_id: 'pause-me' });
    assert.equal(first.at(-1).choices[0].finish_reason, 'stop');
    const rest = shown((await send(server, '/v1/server/resume', { request_id: 'pause-me', max_tokens: 40, chunk_size: 0 }, auth)).text);
    assert.equal(rest.at(-1).choices[0].finish_reason, 'length');
    const whole = await post('/v1/chat/completions', { ...question, max_tokens: paused.active_request.generated_tokens + 40 });
    assert.equal(said(first) + said(rest), whole.choices[0].message.content);
    assert.equal((await server.post('/v1/server/resume', { request_id: 'pause-me' }, auth)).status, 404);
  });
});

// ---------------------------------------------------------------- the twelve least checks

/** By their numbers in the contract: what must be shown, and the tests of it, each behind its file. */
const here = 'server/conformance.test.mjs';
const checks = {
  1: ['every documented request, byte for byte, streamed and whole', ['server/batch.test.mjs', 'request ${name}'], [here, 'as documented'], ['server/managing.test.mjs', 'each documented request and three others of its path']],
  2: ['320 prompts in a stream', ['server/batch.test.mjs', '320 prompts in a stream: every index once and whole, as it is alone']],
  3: ['all ways to be greedy are one', ['server/batch.test.mjs', 'all ways to ask for the best token']],
  4: ['Chinese and emoji with chunk_size 1', [here, 'Chinese and emoji, token by token, are whole characters']],
  5: ['two turns as one prompt, a restart, 49 sessions, delete', [here, 'two turns say what one prompt with both says, also after a restart'], [here, '49 conversations on three levels, counted right, and deleted once']],
  6: ['two calls on one session', [here, 'two calls at once on one conversation follow each other']],
  7: ['branches', [here, 'branches of one conversation']],
  8: ['hanging up in prefill, in decode, in the queue', [here, 'who hangs up in prefill, in decode or in the queue leaves its place and no turn']],
  9: ['a penalty of 2, then of 6', ['sampling/sampler_test.cpp', 'worked_example_of_two_samples']],
  10: ['tuned states by name', [here, 'tuned states by name']],
  11: ['the official client', [here, 'the official client on the older path'], ['server/openai.test.mjs', 'chat: whole and streamed answers agree']],
  12: ['a stop text over several tokens', [here, 'a stop text that tokens cut is neither told nor kept, unless that is asked for']],
};

test('each of the twelve checks has its tests', () => {
  assert.deepEqual(Object.keys(checks).map(Number), [...Array(12).keys()].map((i) => i + 1));
  for (const [number, [what, ...tests]] of Object.entries(checks))
    for (const [file, title] of tests) {
      const text = readFileSync(join(root, 'tests', file), 'utf8');
      const spellings = [`test('${title}'`, `test(\`${title}\``, `  '${title}': {`, `CASE(${title})`];
      assert.ok(spellings.some((s) => text.includes(s)), `${number}, ${what}: ${file} has no test '${title}'`);
    }
});

test('each documented request that makes text is in the table, with variants and refusals', () => {
  assert.ok(Object.keys(variants).length >= 4 && Object.keys(refusals).length >= 4);
  const elsewhere = /^\/(translate\/|state\/(status|delete)|loadmodel|loadstatemodel|removestatemodel|models)/;  // managing.test.mjs, and above
  for (const { name, path } of requests) assert.ok(generating.some((r) => r.name === name) || elsewhere.test(path), name);
});
