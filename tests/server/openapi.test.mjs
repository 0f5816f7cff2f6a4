// docs/openapi.yaml against the program: it has the routes of the route table and no others; every operation is sent a
// real request, and each answer, event and socket message must be what its schema says, with no member that the schema
// lacks. The documented requests of the older servers must fit the request schemas.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import WebSocket from 'ws';
import { jsonOf, parseYaml, readJson, readYaml } from '../../docs/openapi.mjs';
import { Schemas } from './json_schema.mjs';
import { noOracle, oracle, root, serve, within } from './support.mjs';

const document = readYaml();
const schemas = new Schemas(document);
const folder = mkdtempSync(join(tmpdir(), 'skein-openapi-'));

// ---------------------------------------------------------------- the document

/** "post /v1/chat/completions" of every operation; the names of what a path leaves open do not matter. */
const nameless = (path) => path.replace(/\{[^}]*\}/g, '{}');
const operations = new Map(
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => [`${method} ${nameless(path)}`, { path, method, operation }])),
);

/** The same of the route table in the source. HEAD stands beside every GET, and OpenAPI need not say so. */
function tableOperations() {
  const source = readFileSync(join(root, 'actors/request/service/api_service.cpp'), 'utf8');
  const rows = [...source.matchAll(/(?:\{|speaks\()"(\/[^"]*)", ("[A-Z, ]+"|get|post|dialects)/g)];
  return rows.flatMap(([, path, allowed]) => {
    const list = { get: 'GET', post: 'POST', dialects: 'POST' }[allowed] ?? allowed.replaceAll('"', '');
    return list.split(', ').map((method) => `${method.toLowerCase()} ${nameless(path)}`);
  });
}

test('the reader of YAML reads its subset and refuses the rest', () => {
  const text = 'a: 1\n# note\nb:\n  - x: [1, "two, 2", {c: \'it\'\'s\'}]\n    y: {}\n  - [nested]\n  - plain: text\n\'200\':\n  d: null\n';
  const wanted = { a: 1, b: [{ x: [1, 'two, 2', { c: "it's" }], y: {} }, ['nested'], { plain: 'text' }], 200: { d: null } };
  assert.throws(() => parseYaml('a: &x 1\n'), /line 1/);
  assert.throws(() => parseYaml('a: |\n  text\n'), /line 1/);
  assert.throws(() => parseYaml('a: 1\na: 2\n'), /twice/);
  assert.throws(() => parseYaml('a: [1, 2\n'), /expected/);
  assert.deepEqual(parseYaml(text), wanted);
});

test('the checker of values finds what is wrong', () => {
  const s = new Schemas({ a: { type: 'object', required: ['n'], properties: { n: { type: 'integer', minimum: 1 }, t: { anyOf: [{ type: 'string' }, { type: 'null' }] } } } });
  const count = (value, closed = false) => s.faults({ $ref: '#/a' }, value, { closed }).length;
  assert.equal(count({ n: 1, t: null }), 0);
  assert.equal(count({ n: 1, more: 1 }), 0);
  for (const [value, closed] of [[{}], [{ n: 0 }], [{ n: 1.5 }], [[]], [{ n: 1, more: 1 }, true]]) assert.equal(count(value, closed), 1);
  assert.ok(count({ n: 1, t: 1 }) > 0);
  assert.throws(() => s.faults({ pattern: 'x' }, 'x'), /does not know/);
});

test('openapi.json is openapi.yaml', () => assert.equal(readJson(), jsonOf(document), 'run docs/openapi.mjs --write'));

test('every route of the table is documented, and no other', () => {
  const table = [...new Set(tableOperations().filter((o) => !o.startsWith('head ')))].sort();
  assert.ok(table.length >= 95, `${table.length} operations were read`);
  assert.deepEqual([...operations.keys()].sort(), table);
});

test('references lead somewhere, every schema is used, every operation has an id of its own', () => {
  const used = new Set();
  const walk = (node) => {
    if (node?.$ref) {
      used.add(node.$ref);
      schemas.at(node.$ref);
    }
    if (node && typeof node === 'object') Object.values(node).forEach(walk);
  };
  walk(document);
  for (const kind of ['schemas', 'parameters', 'responses'])
    for (const name of Object.keys(document.components[kind])) assert.ok(used.has(`#/components/${kind}/${name}`), name);
  const ids = [...operations.values()].map(({ operation }) => operation.operationId);
  assert.equal(new Set(ids).size, ids.length);
  for (const { path, operation } of operations.values()) {
    const open = [...path.matchAll(/\{(\w+)\}/g)].map((m) => m[1]);
    const named = (operation.parameters ?? []).filter((p) => p.in === 'path').map((p) => p.name);
    assert.deepEqual(named, open, path);
  }
});

// Fields that are read only to be refused, and one of the log's own records.
const undocumented = new Set(['structured_outputs', 'modalities', 'stop_ids']);
test('every field that a reader of bodies reads is documented', () => {
  const documented = new Set();
  const walk = (node) => {
    if (!node || typeof node !== 'object') return;
    for (const name of Object.keys(node.properties ?? {})) documented.add(name);
    Object.values(node).forEach(walk);
  };
  walk(document.components.schemas);
  const folder = join(root, 'src/protocol');
  const files = readdirSync(folder, { recursive: true }).filter((name) => /_(request|fields|messages|api)\.cpp$/.test(name));
  const read = /(?:\w(?:\.|->)(?:text|integer|number|boolean|bits|array|object|value)\(|\b(?:read_\w+|lenient_\w+|required_text)\(\*?\w+, )"(\w+)"/g;
  const fields = files.flatMap((name) => [...readFileSync(join(folder, name), 'utf8').matchAll(read)].map((m) => m[1]));
  assert.ok(new Set(fields).size >= 120, `${new Set(fields).size} fields`);
  assert.deepEqual([...new Set(fields)].filter((name) => !documented.has(name) && !undocumented.has(name)), []);
});

test('documented requests of the older servers fit their schemas', () => {
  const lines = readFileSync(join(root, 'tests/server/requests.jsonl'), 'utf8').trim().split('\n').map((l) => JSON.parse(l));
  let checked = 0;
  for (const { path, method, body, name } of lines) {
    const found = operations.get(`${(method ?? 'POST').toLowerCase()} ${nameless(path ?? '')}`);
    const schema = found?.operation.requestBody?.content['application/json']?.schema;
    if (!schema || typeof body !== 'object') continue;
    assert.deepEqual(schemas.faults(schema, body), [], `${name} ${path}`);
    ++checked;
  }
  assert.ok(checked >= 10, `${checked} requests`);
});

// ---------------------------------------------------------------- real answers

const asked = new Set();  // operations that were sent a request
const succeeded = new Set();  // and that answered 2xx

/** The documented answer to a status: its own, or that of its hundred. */
const documented = (operation, status) =>
  schemas.resolved(operation.responses[status] ?? operation.responses[`${Math.floor(status / 100)}XX`]);

function checkAnswer(key, operation, { status, type, text }) {
  const answer = documented(operation, status);
  assert.ok(answer, `${key}: ${status} is not documented`);
  if (status === 304 || status === 101) return;
  const kind = type?.split(';')[0];
  const media = answer.content?.[kind];
  assert.ok(media, `${key}: ${status} with ${type} is not documented`);
  if (kind === 'application/json') {
    assert.deepEqual(schemas.faults(media.schema, JSON.parse(text), { closed: true }), [], `${key} ${status}`);
  } else if (kind === 'text/event-stream') {
    const events = text.split('\n').filter((line) => line.startsWith('data: ')).map((line) => line.slice(6));
    assert.ok(events.length > 0, key);
    for (const event of events.filter((e) => e !== '[DONE]'))
      assert.deepEqual(schemas.faults(media['x-event'], JSON.parse(event), { closed: true }), [], `${key} event`);
  }
}

/** Sends a request for real; the answer must have that status and be as documented. */
async function ask(server, method, path, body, status = 200, headers = {}, parts = undefined) {
  const template = parts ?? path.split('?')[0];
  const key = `${method} ${nameless(template)}`;
  const found = operations.get(key);
  assert.ok(found, `no operation ${key}`);
  asked.add(key);
  const isJson = body !== undefined && typeof body === 'object' && !Buffer.isBuffer(body);
  const schema = found.operation.requestBody?.content['application/json']?.schema;
  if (isJson && status < 300 && schema) {
    assert.deepEqual(schemas.faults(schema, body), [], `${key} body`);
    const known = schemas.members(schema);
    for (const name of Object.keys(body)) assert.ok(known.has(name), `${key}: the field ${name} is not documented`);
  }
  const response = await server.fetch(path, {
    method: method.toUpperCase(), headers: { ...(isJson ? { 'content-type': 'application/json' } : {}), ...headers },
    body: isJson ? JSON.stringify(body) : body,
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  const text = bytes.toString();
  assert.equal(response.status, status, `${key}: ${text.slice(0, 300)}`);
  checkAnswer(key, found.operation, { status, type: response.headers.get('content-type'), text });
  if (status < 300) succeeded.add(key);
  return { text, bytes, json: () => JSON.parse(text) };
}

const talk = [{ role: 'user', content: 'Hi' }];
const few = { max_tokens: 4, ignore_eos: true };

let server;
let models;
before(async () => {
  server = await serve('--device', 'fake', '--set', 'drain.grace_ms=0', '--state-dir', join(folder, 'state'));
  const demo = join(root, 'models/demo');
  models = await serve('--device', 'cpu', '--set', 'drain.grace_ms=0', '--model-root', demo, '--model', join(demo, 'skein-demo.safetensors'),
    ...(oracle ? ['--states-dir', oracle] : []));
});
after(async () => {
  for (const each of [server, models]) if (each) assert.equal((await each.stop()).code, 0);
  rmSync(folder, { recursive: true, force: true });
});

test('probes, metrics, the page and models', async () => {
  for (const path of ['/livez', '/readyz', '/health', '/v1/health', '/healthz', '/healthcheck', '/status', '/version', '/', '/v1/server/status',
    '/v1/models', '/openai/v1/models', '/api/oai/v1/models', '/api/oai/models', '/models'])
    await ask(server, 'get', path);
  await ask(server, 'get', '/web/js/app.js', undefined, 200, {}, '/web/{}');
  await ask(server, 'get', '/metrics');
  await ask(server, 'get', '/metrics', undefined, 200, { accept: 'application/openmetrics-text; version=1.0.0' });
  for (const path of ['/v1/models/', '/openai/v1/models/']) {
    await ask(server, 'get', `${path}fake`, undefined, 200, {}, `${path}{}`);
    await ask(server, 'get', `${path}none`, undefined, 404, {}, `${path}{}`);
  }
});

test('only operations documented as open answer without a password', async () => {
  const guarded = await serve('--device', 'fake', '--password', 'secret', '--set', 'drain.grace_ms=0');
  for (const [key, { path, method, operation }] of operations) {
    if (operation.tags.includes('Admin')) continue;  // another socket
    const response = await guarded.fetch(path.replace(/\{[^}]*\}/g, 'x'), {
      method: method.toUpperCase(), headers: { 'content-type': 'application/json' }, body: method === 'get' ? undefined : '{}',
    });
    await response.body?.cancel();
    const open = operation.security?.length === 0;
    assert.equal(response.status === 401, !open, `${key}: ${response.status}, ${open ? 'documented as open' : 'not documented as open'}`);
  }
  assert.equal((await guarded.stop()).code, 0);
});

test('the document itself', async () => {
  const { text } = await ask(server, 'get', '/openapi.json');
  assert.equal(text, readJson());
  const { headers } = await server.fetch('/openapi.json');
  const etag = headers.get('etag');
  assert.equal(headers.get('cache-control'), 'no-cache');
  await ask(server, 'get', '/openapi.json', undefined, 304, { 'if-none-match': etag });
});

test('chats, whole, streamed, with every member of an answer', async () => {
  const chat = { messages: talk, ...few };
  for (const path of ['/v1/chat/completions', '/openai/v1/chat/completions']) {
    await ask(server, 'post', path, { ...chat, logprobs: true, top_logprobs: 2, n: 2, seed: 3, think_type: 'free' });
    await ask(server, 'post', path, { ...chat, stream: true, stream_options: { include_usage: true }, queue_events: true });
    await ask(server, 'post', path, { ...chat, session_id: 'chat', stream: true }, 200, { 'idempotency-key': path });
    await ask(server, 'post', path, { ...chat, session_id: 'chat' }, 409, { 'if-match': '77' });
    await ask(server, 'post', path, { ...chat, temperature: 'hot' }, 400);
    await ask(server, 'post', path, '{', 400);
  }
  await ask(server, 'post', '/v1/chat/completions', { contents: ['a', 'b'], ...few });
  await ask(server, 'post', '/v1/chat/completions', { contents: ['a', 'b'], stream: true, chunk_size: 2, ...few });
  await ask(server, 'post', '/v1/chat/completions', { contents: 1 }, 400);
  await ask(server, 'post', '/v1/chat/completions', { contents: Array(5000).fill('x') }, 400);
  await ask(server, 'post', '/v1/chat/completions', { prompt: 'a', ...few });
  for (const path of ['/chat/completions', '/api/oai/v1/chat/completions', '/api/oai/chat/completions']) {
    await ask(server, 'post', path, { ...chat, temperature: '0.5', top_p: 1.5, user_name: 'Bob' });
    await ask(server, 'post', path, { ...chat, stream: true });
    await ask(server, 'post', path, { messages: 3 }, 400);
  }
});

test('completions', async () => {
  for (const path of ['/v1/completions', '/openai/v1/completions', '/completions', '/api/oai/v1/completions', '/api/oai/completions']) {
    await ask(server, 'post', path, { prompt: 'ab', ...few, logprobs: 2, echo: true, n: 2 });
    await ask(server, 'post', path, { prompt: [65, 66], stream: true, stream_options: { include_usage: true }, ...few });
    await ask(server, 'post', path, {}, 400);
  }
  await ask(server, 'post', '/v1/completions', { messages: talk, ...few });
  for (const path of ['/api/oai/v1/chooses', '/api/oai/chooses']) {
    await ask(server, 'post', path, { input: ['a', 'b'], choices: ['c', 'd'], calibrate: true });
    await ask(server, 'post', path, { choices: [] }, 400);
  }
  await ask(server, 'post', '/infill', { input_prefix: 'a', input_suffix: 'b', n_predict: 4 });
  await ask(server, 'post', '/infill', { input_prefix: 'a', input_suffix: 'b', n_predict: 4, stream: true });
  await ask(server, 'post', '/infill', { input_prefix: 'a' }, 400);
});

test('batches and turns', async () => {
  const batch = { contents: ['a', 'b'], ...few };
  for (const path of ['/v2/chat/completions', '/v3/chat/completions', '/big_batch/completions', '/v1/batch/completions']) {
    await ask(server, 'post', path, { ...batch, stream: false });
    await ask(server, 'post', path, { ...batch, stream: true });
    await ask(server, 'post', path, {}, 400);
  }
  await ask(server, 'post', '/v3/chat/completions', { messages: talk, ...few });
  await ask(server, 'post', '/FIM/v1/batch-FIM', { prefix: ['a'], suffix: ['b'], ...few });
  await ask(server, 'post', '/FIM/v1/batch-FIM', { prefix: ['a'], suffix: ['b'], stream: true, ...few });
  await ask(server, 'post', '/FIM/v1/batch-FIM', { prefix: ['a'], suffix: [] }, 400);
  await ask(server, 'post', '/translate/v1/batch-translate', { target_lang: 'de', text_list: ['Good morning.'], max_tokens: 4 });
  await ask(server, 'post', '/translate/v1/batch-translate', { target_lang: 'Elvish', text_list: [] }, 400);
  await ask(server, 'post', '/state/chat/completions', { contents: ['a'], session_id: 'turns', ...few });
  await ask(server, 'post', '/state/chat/completions', { contents: ['a'], session_id: 'turns', stream: true, ...few });
  await ask(server, 'post', '/state/chat/completions', { contents: ['a', 'b'], session_id: 'turns' }, 500);
  await ask(server, 'post', '/multi_state/chat/completions', { contents: ['a'], session_id: 'tree', dialogue_idx: 0, ...few });
  await ask(server, 'post', '/multi_state/chat/completions', { contents: ['a'], session_id: 'tree', dialogue_idx: 1, stream: true, ...few });
  await ask(server, 'post', '/multi_state/chat/completions', { contents: ['a'] }, 400);
});

test('tokens', async () => {
  await ask(server, 'post', '/tokenize', { content: 'ab' });
  await ask(server, 'post', '/tokenize', { content: 'ä', with_pieces: true });
  await ask(server, 'post', '/tokenize', {}, 400);
  await ask(server, 'post', '/detokenize', { tokens: [65, 66] });
  await ask(server, 'post', '/detokenize', { tokens: [1e6] }, 400);
  await ask(server, 'post', '/apply-template', { messages: talk });
  for (const body of [{ text: 'ab', return_tokens: true }, { messages: talk }, { contents: ['a', 'b'] }]) await ask(server, 'post', '/v1/tokens/count', body);
  await ask(server, 'post', '/v1/tokens/count', {}, 400);
  await ask(server, 'post', '/v1/responses/input_tokens', { input: 'Hi' });
});

test('responses and conversations', async () => {
  const conversation = (await ask(server, 'post', '/v1/conversations', { metadata: { topic: 'x' } })).json();
  const made = (await ask(server, 'post', '/v1/responses', { input: 'Hi', max_output_tokens: 4, conversation: conversation.id, instructions: 'Be brief.' })).json();
  await ask(server, 'post', '/v1/responses', { input: talk, max_output_tokens: 4, stream: true, reasoning: { effort: 'low' } });
  const behind = (await ask(server, 'post', '/v1/responses', { input: 'x', max_output_tokens: 4, background: true, previous_response_id: made.id })).json();
  await ask(server, 'post', '/v1/responses', {}, 400);
  const one = `/v1/responses/${made.id}`;
  await ask(server, 'get', one, undefined, 200, {}, '/v1/responses/{}');
  await ask(server, 'get', `${one}?stream=true&starting_after=2`, undefined, 200, {}, '/v1/responses/{}');
  await ask(server, 'get', '/v1/responses/none', undefined, 404, {}, '/v1/responses/{}');
  await ask(server, 'get', `${one}/input_items?order=asc&limit=5`, undefined, 200, {}, '/v1/responses/{}/input_items');
  await ask(server, 'post', `${one}/continue`, { max_output_tokens: 4 }, 200, {}, '/v1/responses/{}/continue');
  await ask(server, 'post', `/v1/responses/${behind.id}/cancel`, undefined, 200, {}, '/v1/responses/{}/cancel');
  await ask(server, 'post', `${one}/cancel`, undefined, 400, {}, '/v1/responses/{}/cancel');
  const of = `/v1/conversations/${conversation.id}`;
  const it = '/v1/conversations/{}';
  await ask(server, 'get', of, undefined, 200, {}, it);
  await ask(server, 'post', of, { metadata: {} }, 200, {}, it);
  const items = (await ask(server, 'get', `${of}/items`, undefined, 200, {}, `${it}/items`)).json();
  await ask(server, 'get', `${of}/items/${items.data[0].id}`, undefined, 200, {}, `${it}/items/{}`);
  await ask(server, 'post', `${of}/items`, { items: [] }, 400, {}, `${it}/items`);
  await ask(server, 'delete', `${of}/items/${items.data[0].id}`, undefined, 400, {}, `${it}/items/{}`);
  await ask(server, 'delete', one, undefined, 200, {}, '/v1/responses/{}');
  await ask(server, 'delete', of, undefined, 200, {}, it);
  await ask(server, 'get', of, undefined, 404, {}, it);
});

test('messages of the WebSocket are events', async () => {
  await ask(server, 'get', '/v1/responses', undefined, 426);
  const socket = new WebSocket(`ws://127.0.0.1:${server.port}/v1/responses`);
  const events = [];
  const over = new Promise((done, fail) => {
    socket.on('error', fail);
    socket.on('message', (text) => {
      const event = JSON.parse(text);
      events.push(event);
      if (['response.completed', 'response.incomplete', 'response.failed'].includes(event.type)) done();
    });
  });
  await within(new Promise((done) => socket.on('open', done)), 'the socket');
  socket.send(JSON.stringify({ type: 'response.create', input: 'Hi', max_output_tokens: 4, reasoning: { effort: 'high' } }));
  await within(over, 'the end of the response');
  socket.close();
  for (const event of events)
    assert.deepEqual(schemas.faults({ $ref: '#/components/schemas/ResponseEvent' }, event, { closed: true }), []);
});

test('sessions', async () => {
  await ask(server, 'post', '/v1/chat/completions', { messages: talk, session_id: 'anna', ...few });
  const it = '/v1/sessions/{}';
  await ask(server, 'get', '/v1/sessions?limit=5');
  await ask(server, 'get', '/v1/sessions?limit=0', undefined, 400);
  for (const query of ['', '?transcript=true&version=1', '?tree=true']) await ask(server, 'get', `/v1/sessions/anna${query}`, undefined, 200, {}, it);
  await ask(server, 'get', '/v1/sessions/none', undefined, 404, {}, it);
  await ask(server, 'post', '/v1/sessions/anna', { title: 'Anna', metadata: { a: 'b' } }, 200, {}, it);
  await ask(server, 'get', '/v1/sessions/anna/versions', undefined, 200, {}, `${it}/versions`);
  await ask(server, 'get', '/v1/sessions/anna/state', undefined, 200, {}, `${it}/state`);
  const file = await ask(server, 'get', '/v1/sessions/anna/export', undefined, 200, {}, `${it}/export`);
  await ask(server, 'put', '/v1/sessions/carl', file.bytes, 200, { 'content-type': 'application/octet-stream' }, it);
  await ask(server, 'post', '/v1/sessions/anna/fork', { to: 'bob', version: 1 }, 200, {}, `${it}/fork`);
  await ask(server, 'post', '/v1/sessions/anna/rollback', { version: 1 }, 200, {}, `${it}/rollback`);
  await ask(server, 'delete', '/v1/sessions/bob', undefined, 200, {}, it);
  await ask(server, 'delete', '/v1/sessions/bob', undefined, 404, {}, it);
  for (const path of ['/state', '/multi_state']) {
    await ask(server, 'post', `${path}/status`, {});
    await ask(server, 'post', `${path}/delete`, { session_id: 'none' }, 404);
    await ask(server, 'post', `${path}/delete`, { session_id: path === '/state' ? 'anna' : 'carl' });
    await ask(server, 'post', `${path}/delete`, {}, 400);
  }
});

test('actions on the admin socket', async () => {
  await ask(server, 'post', '/admin/state/list', undefined, 404, {}, '/admin/state/{}');
  for (const method of ['post', 'put']) {
    const answer = await new Promise((done, fail) => {
      const sent = httpRequest({ socketPath: join(folder, 'state/admin.socket'), path: '/admin/state/list?json=true', method: method.toUpperCase() }, (r) => {
        let text = '';
        r.setEncoding('utf8').on('data', (more) => (text += more)).on('end', () => done({ status: r.statusCode, type: r.headers['content-type'], text }));
      });
      sent.on('error', fail).end();
    });
    const key = `${method} /admin/state/{}`;
    assert.equal(answer.status, 200);
    checkAnswer(key, operations.get(key).operation, answer);
    asked.add(key);
    succeeded.add(key);
  }
});

test('stop, pause and resume', async () => {
  await ask(server, 'post', '/v1/server/stop', { request_id: 'none' });
  await ask(server, 'post', '/v1/server/pause', { request_id: 'none' });
  await ask(server, 'post', '/v1/server/resume', { request_id: 'none' }, 404);
  const slow = await serve('--device', 'fake', '--set', 'drain.grace_ms=0', '--set', 'engine.fake_tick_us=2000');
  try {
    const long = slow.fetch('/v1/chat/completions', {
      method: 'POST', headers: { 'x-request-id': 'long' },
      body: JSON.stringify({ messages: talk, max_tokens: 2000, ignore_eos: true, stream: true }),
    }).then((r) => r.text());
    await slow.counters((c) => c.tokens.generated > 5);
    await ask(slow, 'get', '/v1/server/status');
    await ask(slow, 'post', '/v1/server/pause', { request_id: 'long' });
    const text = await long;
    checkAnswer('pause', operations.get('post /v1/chat/completions').operation, { status: 200, type: 'text/event-stream', text });
    assert.match(text, /"stop_reason":"paused"/);
    await ask(slow, 'post', '/v1/server/resume', { request_id: 'long', max_tokens: 8 });
  } finally {
    await slow.stop();
  }
});

test('models that come and go', async () => {
  const id = 'skein-demo';
  const file = 'skein-demo.safetensors';
  await ask(models, 'post', '/v1/model/load', { model: id });
  await ask(models, 'post', '/v1/model/load', { model: 'none' }, 404);
  await ask(models, 'post', '/loadmodel', { model_filename: file, model_viewname: 'demo', default_temperature: '0.5' });
  await ask(models, 'post', '/loadmodel', { model_filename: '/etc/passwd' }, 403);
  await ask(models, 'post', '/update-config', { temperature: '0.7', top_k: 5 });
  await ask(models, 'post', '/update-config', { temperature: -1 }, 400);
  await ask(models, 'post', '/switch-model', { model: file, strategy: 'cpu fp32' });
  await ask(models, 'post', '/switch-model', { model: file, strategy: 'cuda fp16 *3' }, 400);
  await ask(models, 'get', '/v1/models');
  await ask(models, 'post', '/removemodel', {});
  await ask(models, 'get', '/health', undefined, 503);
  await ask(models, 'get', '/readyz', undefined, 503);
});

const states = ['/loadstatemodel', '/mrss_loadstatemodel', '/mrss_set_gatingweight', '/removestatemodel'];
test('tuned states', { skip: noOracle }, async (t) => {
  const tiny = await serve('--device', 'cpu', '--model', join(oracle, 'models/tiny-7v0.pth'), '--states-dir', join(oracle, 'models'), '--set', 'drain.grace_ms=0');
  t.after(() => tiny.stop());
  const state = 'state-tiny-7v0.pth';
  await ask(tiny, 'post', states[0], { state_filename: state, state_viewname: 'poet' });
  await ask(tiny, 'post', states[0], { state_filename: 'none.pth', state_viewname: 'poet' }, 404);
  await ask(tiny, 'get', '/v1/models');
  await ask(tiny, 'get', '/models');
  await ask(tiny, 'post', states[1], { state_filenames: [state], state_viewname: 'duo', contain_originalstate: 'True' });
  await ask(tiny, 'post', states[2], { state_viewname: 'duo', state_gatingweight: [1, 2] });
  await ask(tiny, 'post', '/v1/chat/completions', { messages: talk, state_name: 'duo', mrss_gatingweight: [1, 1], max_tokens: 2 });
  await ask(tiny, 'post', states[3], { state_viewname: 'poet' });
});

test('what is not supported answers 400', async () => {
  for (const { path, method, operation } of operations.values())
    if (operation.tags[0] === 'Not supported' && method === 'post' && !path.startsWith('/v1/conversations'))
      await ask(server, 'post', path.replace('{engine}', 'x'), { input: 'x' }, 400, {}, path);
});

test('every operation was asked, and every one that can succeed did', () => {
  const never = [...operations].filter(([, { operation }]) => !operation.responses['200']).map(([key]) => key);
  const withoutOracle = noOracle ? states.map((path) => `post ${path}`) : [];
  const missing = (from) => [...operations.keys()].filter((key) => !from.has(key) && !withoutOracle.includes(key));
  assert.deepEqual(missing(asked), []);
  assert.deepEqual(missing(succeeded).filter((key) => !never.includes(key)), []);
});
