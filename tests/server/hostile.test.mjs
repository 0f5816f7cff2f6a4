// What a stranger may send: framing tricks, wrong credentials, junk in every field, starts that cannot work. Each gets
// one clear answer, nothing stops the server, and afterwards it still answers and its counters are back at zero.
import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { binary, noOracle, oracle, serve } from './support.mjs';

let server;
before(async () => {
  process.env.SKEIN_SERVER_PASSWORD = 'secret';
  server = await serve('--device', 'fake', '--set', 'limits.header_timeout_ms=2000', '--set', 'limits.body_bytes_max=100000',
    '--set', 'limits.unauthenticated_body_bytes_max=10000', '--set', 'limits.login_failures_max=1000');
});
after(async () => {
  const health = await server.counters((h) => h.slots.used === 0);
  assert.equal(health.requests.waiting, 0);
  const answer = await server.post('/v1/completions', { prompt: 'x', max_tokens: 3 }, { authorization: 'Bearer secret' });
  assert.equal(answer.status, 200);
  assert.deepEqual(await server.stop('SIGINT'), { code: 0, signal: null });
});

/** Sends bytes as they are and answers with all that comes back until the server closes. */
function raw(bytes) {
  return new Promise((done) => {
    let got = '';
    const socket = connect(server.port, '127.0.0.1', () => socket.write(bytes));
    socket.setEncoding('latin1');
    socket.setTimeout(60000, () => socket.destroy(new Error('the server does not close')));
    socket.on('data', (text) => (got += text));
    socket.on('error', () => done(got));
    socket.on('close', () => done(got));
  });
}
const responses = (text) => text.split('HTTP/1.1 ').slice(1).map((r) => Number(r.slice(0, 3)));

const head = (...fields) => `POST /v1/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\n${fields.map((f) => f + '\r\n').join('')}\r\n`;
const smuggled = '1c\r\n{"prompt":"x","max_tokens":1}\r\n0\r\n\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n';
const framing = {
  'an encoding that is not chunked': head('Transfer-Encoding: gzip', 'Content-Length: 5') + smuggled,
  'an unknown encoding': head('Transfer-Encoding: xchunked') + smuggled,
  'identity': head('Transfer-Encoding: identity') + smuggled,
  'two encodings': head('Transfer-Encoding: chunked, identity') + smuggled,
  'encoding and length': head('Transfer-Encoding: chunked', 'Content-Length: 4') + smuggled,
  'two lengths': head('Content-Length: 4', 'Content-Length: 5') + smuggled,
  'a list of lengths': head('Content-Length: 4, 4') + smuggled,
  'a length that is no number': head('Content-Length: +4') + smuggled,
  'a folded field': head('X-A: b\r\n c') + smuggled,
  'no host': 'GET /health HTTP/1.1\r\n\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n',
  'two hosts': 'GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n',
  'a lower-case method': 'get /health HTTP/1.1\r\nHost: a\r\n\r\n',
  'a bare line feed': 'GET /health HTTP/1.1\nHost: a\n\n',
  'chunked in HTTP/1.0': head('Transfer-Encoding: chunked').replace('HTTP/1.1', 'HTTP/1.0') + smuggled,
  'a path with a NUL': 'GET /a%00b HTTP/1.1\r\nHost: a\r\n\r\n',
};
for (const [what, bytes] of Object.entries(framing)) {
  test(`framing: ${what}`, async () => {
    const got = responses(await raw(bytes));
    assert.deepEqual(got, [400]);
  });
}

test('empty lines before a request have a limit', async () => {
  assert.deepEqual(responses(await raw('\r\n'.repeat(4000) + 'GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')), [200]);
  assert.deepEqual(responses(await raw('\r\n'.repeat(1 << 20))), [400]);
});
test('too many and too long header fields', async () => {
  const many = Array.from({ length: 101 }, (_, i) => `X-${i}: 1`);
  assert.deepEqual(responses(await raw(head(...many, 'Content-Length: 0'))), [431]);
  assert.deepEqual(responses(await raw(head('X-Long: ' + 'x'.repeat(9000)))), [431]);
});
test('a header that never ends is cut by its deadline', async () => {
  assert.ok(responses(await raw('GET /health HTTP/1.1\r\nHost: a\r\n')).every((status) => status === 408));
});
test('an announced body above the limit is refused unread', async () => {
  assert.deepEqual(responses(await raw(head('Content-Length: 100000000'))), [413]);
});
test('trailers are no header fields', async () => {
  const body = '{"prompt":"x","max_tokens":1}';
  const bytes = head('Transfer-Encoding: chunked', 'Connection: close').replace('Authorization: Bearer secret\r\n', '');
  const got = await raw(`${bytes}${body.length.toString(16)}\r\n${body}\r\n0\r\nAuthorization: Bearer secret\r\n\r\n`);
  assert.deepEqual(responses(got), [401]);
});

test('credentials', async () => {
  const ask = { prompt: 'x', max_tokens: 1 };
  for (const [method, path] of [['GET', '/v1/models'], ['GET', '/openai/v1/models'], ['GET', '/v1/models/fake'], ['POST', '/tokenize'],
    ['POST', '/detokenize'], ['POST', '/infill'], ['POST', '/apply-template'], ['GET', '/v1/conversations/x/items'], ['DELETE', '/v1/conversations/x/items/y'], ['POST', '/v1/completions'], ['POST', '/v1/chat/completions'], ['POST', '/v1/embeddings'], ['GET', '/nowhere']]) {
    for (const headers of [{}, { authorization: 'Bearer wrong' }, { authorization: 'Bearer' }, { authorization: 'Basic secret' }, { 'x-api-key': 'secre' }, { 'api-key': 'secre' }]) {
      const body = method === 'POST' ? JSON.stringify(ask) : undefined;
      const response = await fetch(server.url + path, { method, headers, body });
      assert.equal(response.status, 401, `${method} ${path} ${JSON.stringify(headers)}`);
      assert.equal((await response.json()).error.code, 'invalid_api_key');
    }
  }
  for (const path of ['/health', '/livez', '/readyz', '/version']) assert.equal((await server.get(path)).status, 200);
  assert.equal((await server.post('/v1/completions', { ...ask, password: 'secret' })).status, 200);
  assert.equal((await server.post('/v1/completions', { ...ask, password: 'wrong' })).status, 401);
  assert.equal((await server.post('/v1/completions', ask, { 'x-api-key': 'secret' })).status, 200);
  assert.equal((await server.post('/v1/completions', ask, { 'api-key': 'secret' })).status, 200);
});

const key = { authorization: 'Bearer secret' };
test('a body that brings the password itself is short', async () => {
  const long = { prompt: 'x'.repeat(20000), max_tokens: 1, password: 'secret' };
  const refused = await server.post('/v1/completions', long);
  assert.equal(refused.status, 413);
  assert.equal(refused.body.error.code, 'request_too_large');
  assert.equal((await server.post('/v1/completions', long, key)).status, 200);
  const chunked = head('Transfer-Encoding: chunked').replace('Authorization: Bearer secret\r\n', '');
  assert.deepEqual(responses(await raw(`${chunked}4e20\r\n`)), [413]);
});
test('an address that guesses passwords is refused, and its right password is accepted', async (t) => {
  const guarded = await serve('--device', 'fake', '--set', 'limits.login_failures_max=4', '--set', 'drain.grace_ms=0');
  t.after(() => guarded.stop());
  const ask = { prompt: 'x', max_tokens: 1 };
  for (let i = 0; i < 10; ++i) assert.equal((await guarded.get('/v1/models')).status, 401);  // no password is no guess
  for (let i = 0; i < 2; ++i) assert.equal((await guarded.get('/v1/models', { 'x-api-key': `guess ${i}` })).status, 401);
  for (let i = 0; i < 2; ++i) assert.equal((await guarded.post('/v1/completions', { ...ask, password: `guess ${i}` })).status, 401);
  const wrong = { authorization: 'Bearer guess' };
  const refusals = [await guarded.get('/v1/models', wrong), await guarded.get('/nowhere', wrong),
    await guarded.post('/v1/completions', ask, wrong), await guarded.post('/v1/completions', { ...ask, password: 'guess' })];
  for (const refused of refusals) {
    assert.equal(refused.status, 429);
    const wait = Number(refused.headers.get('retry-after'));
    assert.ok(wait >= 1 && wait <= 30);
    assert.equal(refused.body.error.type, 'rate_limit_error');
  }
  assert.equal((await guarded.get('/v1/models', key)).status, 200);
  assert.equal((await guarded.post('/v1/completions', { ...ask, password: 'secret' })).status, 200);
  assert.equal((await guarded.get('/v1/models')).status, 401);
  for (const path of ['/health', '/livez', '/readyz']) assert.equal((await guarded.get(path)).status, 200);
  const long = '/' + 'x'.repeat(6000);
  for (let i = 0; i < 20; ++i) await guarded.get(long);
  const told = guarded.lines.length;
  const visit = await guarded.get(long);  // five times as many as wrong passwords
  assert.equal(visit.status, 429);
  assert.match(visit.body.error.message, /without a password/);
  assert.equal((await guarded.get('/v1/models', key)).status, 200);
  assert.ok(guarded.lines.every((line) => line.length < 1000), 'a line of the log has the beginning of a path');
  assert.ok(!guarded.lines.slice(told).some((line) => line.includes('xxx')), 'what the limiter refuses fills no log');
});
test('pages of other origins are not let in', async (t) => {
  const { SKEIN_SERVER_PASSWORD } = process.env;
  delete process.env.SKEIN_SERVER_PASSWORD;
  const open = await serve('--device', 'fake', '--set', 'server.cors_origins=http://mine', '--set', 'drain.grace_ms=0');
  process.env.SKEIN_SERVER_PASSWORD = SKEIN_SERVER_PASSWORD;
  t.after(() => open.stop());
  const allowed = async (origin, method = 'GET') => {
    const response = await open.fetch('/v1/models', { method, headers: { origin, 'access-control-request-method': 'GET' } });
    await response.arrayBuffer();
    return ['access-control-allow-origin', 'access-control-allow-methods'].map((name) => response.headers.get(name));
  };
  for (const origin of ['http://other', 'http://mine.other', 'https://mine', 'http://mine:80', 'null', 'HTTP://MINE']) {
    assert.deepEqual(await allowed(origin), [null, null], origin);
    assert.deepEqual(await allowed(origin, 'OPTIONS'), [null, null], origin);
  }
  assert.equal((await allowed('http://mine'))[0], 'http://mine');
  assert.match((await allowed('http://mine', 'OPTIONS'))[1], /POST/);
});

test('what a connection refuses has the form of the route', async () => {
  const told = async (path, ...fields) => JSON.parse((await raw(head(...fields).replace('/v1/completions', path))).split('\r\n\r\n')[1]).error;
  for (const fields of [['Content-Encoding: gzip', 'Content-Length: 0'], ['Content-Length: 99999999999']]) {
    assert.equal(typeof await told('/api/oai/chat/completions?x=1', ...fields), 'string', fields[0]);
    assert.equal(typeof (await told('/v1/chat/completions', ...fields)).message, 'string', fields[0]);
  }
});
test('routes and methods', async () => {
  assert.equal((await server.get('/nowhere', key)).status, 404);
  const wrong = await server.get('/v1/completions', key);
  assert.equal(wrong.status, 405);
  assert.match(wrong.headers.get('allow'), /POST/);
  assert.equal((await fetch(`${server.url}/health`, { method: 'HEAD' })).status, 200);
  const preflight = await fetch(`${server.url}/v1/completions`, { method: 'OPTIONS', headers: { origin: 'http://page', 'access-control-request-headers': 'x-a' } });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get('access-control-allow-headers'), 'x-a');
});

const junk = [
  ['{', undefined], ['', undefined], ['[]', undefined], ['{"prompt":"x"} x', undefined], ['{"prompt":"\\ud800"}', undefined],
  ['{"prompt":"x","prompt":"y"}', undefined], ['['.repeat(5000), undefined], [Buffer.from('{"prompt":"\xff"}', 'latin1'), undefined],
  [{ prompt: 5 }, 'prompt'], [{ prompt: [] }, 'prompt'], [{ prompt: [[]] }, /^prompt/], [{ prompt: [-1] }, /^prompt/], [{ prompt: [256] }, 'prompt'],
  [{ prompt: [1e300] }, /^prompt/], [{}, 'prompt'], [{ max_tokens: -1 }, 'max_tokens'], [{ max_tokens: '5' }, 'max_tokens'],
  [{ n: 0 }, 'n'], [{ n: 129 }, 'n'], [{ n: 1.5 }, 'n'], [{ temperature: 1001 }, 'temperature'], [{ temperature: 'hot' }, 'temperature'],
  [{ top_p: {} }, 'top_p'], [{ stop: Array(17).fill('x') }, /^stop/], [{ stop: ['x'.repeat(257)] }, /^stop/], [{ stop: [['x']] }, /^stop/],
  [{ logit_bias: { x: 1 } }, /^logit_bias/], [{ logit_bias: { 1: 101 } }, /^logit_bias/], [{ logit_bias: { 70000: 1 } }, /^logit_bias/],
  [{ logprobs: 6 }, 'logprobs'], [{ best_of: 2, n: 3 }, 'best_of'], [{ best_of: 2, stream: true }, 'best_of'], [{ stream: 'yes' }, 'stream'],
  [{ stream: true, temperature: -1 }, 'temperature'], [{ seed: 'x' }, 'seed'], [{ alpha_decay: 0 }, 'alpha_decay'], [{ min_p: 2 }, 'min_p'],
];
test('junk in every field', async () => {
  for (const [fields, param] of junk) {
    const body = typeof fields === 'string' || Buffer.isBuffer(fields) ? fields : { ...('prompt' in fields || Object.keys(fields).length === 0 ? {} : { prompt: 'x' }), ...fields };
    const answer = await server.post('/v1/completions', body, key);
    const what = JSON.stringify(fields).slice(0, 80);
    assert.equal(answer.status, 400, what);
    assert.equal(answer.body.error.type, 'invalid_request_error', what);
    if (param instanceof RegExp) assert.match(answer.body.error.param ?? '', param, what);
    else if (param) assert.equal(answer.body.error.param, param, what);
  }
});
const nested = (depth) => `{"prompt":"x","max_tokens":1,"metadata":${'['.repeat(depth - 1)}1${']'.repeat(depth - 1)}}`;
test('a body is nested up to its limit', async () => {
  assert.equal((await server.post('/v1/completions', nested(64), key)).status, 200);
  assert.equal((await server.post('/v1/completions', nested(65), key)).status, 400);
});

const user = { role: 'user', content: 'x' };
const chatJunk = [
  [{ messages: [] }, 'messages'], [{ messages: null }, 'messages'], [{ messages: 'x' }, 'messages'], [{ messages: {} }, 'messages'],
  [{ messages: [null] }, /^messages/], [{ messages: ['x'] }, /^messages/], [{ messages: [{}] }, /^messages/],
  [{ messages: [{ role: 'king', content: 'x' }] }, /^messages/], [{ messages: [{ role: 5, content: 'x' }] }, /^messages/],
  [{ messages: [{ role: 'user' }] }, /^messages/], [{ messages: [{ role: 'user', content: 5 }] }, /^messages/],
  [{ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }] }, /^messages/],
  [{ messages: [{ role: 'user', content: [5] }] }, /^messages/],
  [{ logprobs: true, top_logprobs: 21 }, 'top_logprobs'], [{ logprobs: true, top_logprobs: -1 }, 'top_logprobs'],
  [{ logprobs: 'yes' }, 'logprobs'], [{ max_tokens: -1 }, 'max_tokens'], [{ max_tokens: 1.5 }, 'max_tokens'],
  [{ max_tokens: 1e300 }, 'max_tokens'], [{ max_tokens: '9' }, 'max_tokens'], [{ max_completion_tokens: -1 }, 'max_completion_tokens'],
  [{ model: 5 }, 'model'], [{ stream: 1 }, 'stream'], [{ stream_options: 5 }, /^stream_options/], [{ stop: 5 }, /^stop/],
  [{ stop: [5] }, /^stop/], [{ n: -1 }, 'n'], [{ n: 1e9 }, 'n'], [{ seed: 1.5 }, 'seed'], [{ presence_penalty: 'x' }, 'presence_penalty'],
  [{ frequency_penalty: [] }, 'frequency_penalty'], [{ logit_bias: [1] }, 'logit_bias'], [{ temperature: -1 }, 'temperature'],
];
test('junk in every field of a chat', async () => {
  for (const [fields, param] of chatJunk) {
    const answer = await server.post('/v1/chat/completions', { messages: [user], max_tokens: 1, ...fields }, key);
    const what = JSON.stringify(fields);
    assert.equal(answer.status, 400, what);
    if (param instanceof RegExp) assert.match(answer.body.error.param ?? '', param, what);
    else assert.equal(answer.body.error.param, param, what);
  }
});
test('extremes of a chat that are legal', async () => {
  for (const fields of [{ max_tokens: 2, temperature: null, top_p: null, n: null, stop: null, seed: null, user: null, stream: null, logit_bias: null },
    { max_tokens: 2, logprobs: true, top_logprobs: 20 }, { max_tokens: 2, messages: [{ role: 'user', content: '' }] }]) {
    const answer = await server.post('/v1/chat/completions', { messages: [user], ...fields }, key);
    assert.equal(answer.status, 200, JSON.stringify(fields));
  }
  const cut = await server.fetch('/v1/chat/completions', {
    method: 'POST', headers: key, body: JSON.stringify({ messages: [user], max_tokens: 1e9, stream: true }) });
  assert.equal(cut.status, 200);  // cut to the limit, and never reserved
  await cut.body.cancel();
});

test('extremes that are legal', async () => {
  for (const fields of [{ max_tokens: 0 }, { seed: -1 }, { seed: 2 ** 53 - 1 }, { max_tokens: 2, top_k: -5 }, { max_tokens: 2, user: null, stop: null },
    { max_tokens: 3, temperature: 0.0001 }, { max_tokens: 1, n: 128 }]) {
    const answer = await server.post('/v1/completions', { prompt: 'x', max_tokens: 2, ...fields }, key);
    assert.equal(answer.status, 200, JSON.stringify(fields));
  }
});

/** Runs the program with arguments that it cannot work with. */
function expectFailures(cases) {
  const { SKEIN_SERVER_PASSWORD: _, ...environment } = process.env;
  for (const [args, codes, words] of cases) {
    const port = args[0] === 'serve' && !args.includes('--port') ? ['--port', '0'] : [];
    const ran = spawnSync(binary, [...args, ...port], { env: environment, encoding: 'utf8', timeout: 60000 });
    assert.ok([codes].flat().includes(ran.status), `${args.join(' ')}: ${ran.status} ${ran.stderr}`);
    assert.match(ran.stderr, words);
    assert.ok(!ran.stderr.includes('secret'));
  }
}
test('starts that cannot work say why and leave with the code for it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-'));
  const empty = mkdtempSync(join(tmpdir(), 'skein-'));
  writeFileSync(join(folder, 'broken.pth'), 'PK\x03\x04 and nothing else');
  expectFailures([
    [['serve', '--no-such-flag'], 64, /no-such-flag/],
    [['serve', '--device', 'fake', '--host', '0.0.0.0'], 78, /password/],
    [['serve', '--device', 'fake', '--port', '70000'], 64, /port/],
    [['serve', '--model', join(folder, 'none.pth')], 66, /none\.pth/],
    [['serve', '--model', join(folder, 'broken.pth')], 65, /broken\.pth/],
    [['serve', '--model', folder], 65, /broken\.pth: at byte/],  // the one model in it
    [['serve', '--model', empty], 66, /the folder has no model file/],
    [['serve', '--device', 'fake', '--vocab', join(folder, 'broken.pth')], 65, /broken\.pth line 1/],
    [['serve', '--device', 'fake', '--vocab', join(folder, 'none.txt')], 66, /none\.txt/],
    [['serve', '--device', 'cuda:0', '--model', join(folder, 'broken.pth')], [65, 69], /./],
    [['serve', '--device', 'fake', '--port', String(server.port)], [69, 74], /./],
    [['nonsense'], 64, /./],
  ]);
});
test('models that cannot be served say why', { skip: noOracle }, () => {
  const model = (name) => join(oracle, 'models', name);
  expectFailures([
    [['serve', '--model', model('quirk-legacy.pth')], 65, /quirk-legacy\.pth.*torch/],
    [['serve', '--model', model('state-tiny-7v0.pth')], 65, /state-tiny-7v0\.pth/],
    [['serve', '--model', model('tiny-7v0.pth'), '--vocab', join(oracle, 'rwkv_vocab_v20230424.txt')], 65, /65530 tokens/],
    [['serve', '--model', model('tiny-7v0.pth'), '--vocab', model('tiny-7v0.pth')], 65, /tiny-7v0\.pth line 1/],
    [['serve', '--model', model('tiny-7v0.pth'), '--vocab', model('')], 74, /vocabulary/],
  ]);
});
