// The server's first and last moments: the port is bound before the model is read and says so while it is; signals let
// answers finish, or do not wait, or end a start. A named pipe stands in the place of the vocabulary file, so the test
// decides when loading is over.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { binary, serve, short, startServer } from './support.mjs';
import { bytesOfWorld, unfinished } from './unfinished.mjs';

delete process.env.SKEIN_SERVER_PASSWORD;
const fake = ['--device', 'fake', '--set', 'engine.fake_tick_us=2000', '--set', 'drain.grace_ms=0'];
const ask = { prompt: 'x', max_tokens: 3 };
const endless = { prompt: 'x', max_tokens: 1000000, stream: true, ignore_eos: true };

/** Begins a streamed completion; its text so far, and all of it. */
async function stream(server, fields) {
  const response = await server.fetch('/v1/completions', { method: 'POST', body: JSON.stringify({ ...ask, stream: true, ...fields }) });
  assert.equal(response.status, 200);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = (await reader.read()).value;
  const rest = (async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return text;
      text += value;
    }
  })();
  rest.catch(() => {});
  return { rest };
}

test('while the model loads the server answers, and says that it loads', async (t) => {
  const vocabulary = unfinished(t);
  const server = await startServer(...fake, '--vocab', vocabulary.path, '--set', 'server.cors_origins=http://page.example');
  assert.match((await server.says('listening')).version, /^\d+\.\d+\.\d+\+/);
  assert.equal((await server.get('/livez')).status, 200);
  assert.equal(typeof (await server.get('/version')).body.version, 'string');
  assert.equal((await server.get('/status')).body.status, 2);
  for (const path of ['/readyz', '/health', '/healthz', '/healthcheck', '/v1/models']) {
    const answer = await server.get(path);
    assert.equal(answer.status, 503, path);
    assert.equal(answer.headers.get('retry-after'), '1', path);
  }
  assert.equal((await server.get('/nowhere')).status, 404);
  for (const path of ['/livez', '/v1/models']) assert.equal((await server.post(path, {})).status, 405, path);
  assert.match(JSON.stringify((await server.get('/healthz')).body), /loading/);
  const { status, reason } = (await server.get('/readyz')).body;
  assert.deepEqual({ status, reason }, { status: 'unavailable', reason: 'loading' });
  const refused = await server.post('/v1/completions', ask);
  assert.equal(refused.status, 503);
  assert.equal(refused.headers.get('retry-after'), '1');
  assert.equal(refused.body.error.type, 'service_unavailable');

  // Answers have what all answers have.
  const origin = 'http://page.example';
  const named = await server.fetch('/v1/models', { headers: { Origin: origin, 'X-Request-Id': 'mine' } });
  assert.equal(named.headers.get('x-request-id'), 'mine');
  assert.equal(named.headers.get('access-control-allow-origin'), origin);
  assert.match(refused.headers.get('x-request-id'), /^req-/);
  const preflight = await server.fetch('/v1/models', { method: 'OPTIONS', headers: { Origin: origin } });
  assert.deepEqual([preflight.status, preflight.headers.get('access-control-allow-methods') !== null], [204, true]);
  const metrics = await server.fetch('/metrics');
  assert.equal(metrics.status, 200);
  assert.match(await metrics.text(), /^process_resident_memory_bytes \d/m);

  await vocabulary.finish(bytesOfWorld);
  await server.says('ready');
  assert.equal((await server.get('/readyz')).status, 200);
  assert.deepEqual((await server.post('/tokenize', { content: 'xy' })).body.tokens, [121, 122]);
  assert.equal((await server.post('/v1/completions', ask)).status, 200);
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});

test('while the model loads metrics are for who may read them', async (t) => {
  const vocabulary = unfinished(t);
  const server = await startServer(...fake, '--vocab', vocabulary.path, '--password', 'secret');
  const status = async (headers) => (await server.fetch('/metrics', { headers })).status;
  assert.equal(await status({}), 401);
  assert.equal(await status({ Authorization: 'Bearer wrong' }), 401);
  assert.equal(await status({ Authorization: 'Bearer secret' }), 200);
  await vocabulary.finish(bytesOfWorld);
  await server.says('ready');
  assert.equal(await status({ Authorization: 'Bearer secret' }), 200);
  await server.stop();
});

test('what a connection refuses by itself has a name, and pages can read it', async () => {
  const server = await serve(...fake, '--set', 'limits.body_bytes_max=1024', '--set', 'server.cors_origins=http://page.example');
  const large = await server.fetch('/v1/completions', { method: 'POST', body: 'x'.repeat(2000),
    headers: { Origin: 'http://page.example', 'X-Request-Id': 'mine' } });
  assert.equal(large.status, 413);
  assert.equal(large.headers.get('x-request-id'), 'mine');
  assert.equal(large.headers.get('access-control-allow-origin'), 'http://page.example');
  const long = await server.fetch('/v1/models', { headers: { 'X-Long': 'x'.repeat(9000) } });
  assert.equal(long.status, 431);
  assert.match(long.headers.get('x-request-id'), /^req-/);
  await server.stop();
});

test('a port in use ends the start before the model is read', async (t) => {
  const first = await serve(...fake);
  t.after(() => first.stop());
  const vocabulary = unfinished(t);
  const second = spawnSync(binary, ['serve', '--device', 'fake', '--vocab', vocabulary.path, '--port', String(first.port)], { encoding: 'utf8', timeout: 60000 });
  assert.equal(second.status, 74, second.stderr);
  assert.match(second.stderr, new RegExp(`: server.port: cannot listen on 127.0.0.1 port ${first.port}: Address already in use`));
});

test('a state directory that another server has ends the start with 75, so that it is tried again', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'skein-in-use-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const first = await serve(...fake, '--state-dir', directory);
  const second = spawnSync(binary, ['serve', ...fake, '--port', '0', '--state-dir', directory], { encoding: 'utf8', timeout: 60000 });
  assert.equal(second.status, 75, second.stderr);
  assert.match(second.stderr, new RegExp(`skein: ${directory}.* is in use by another process`));
  assert.deepEqual(await first.stop(), { code: 0, signal: null });
  const third = await serve(...fake, '--state-dir', directory);
  assert.deepEqual(await third.stop(), { code: 0, signal: null });
});

test('a model that cannot be read ends the start with the code for it', async (t) => {
  const vocabulary = unfinished(t);
  const server = await startServer(...fake, '--vocab', vocabulary.path);
  await vocabulary.finish('no vocabulary\n');
  assert.deepEqual(await server.end(), { code: 65, signal: null });
  assert.match(server.lines.join('\n'), /vocabulary line 1/);
});

for (const signal of ['SIGTERM', 'SIGINT']) {
  test(`${signal} while the model loads ends the server`, async (t) => {
    const vocabulary = unfinished(t);
    const server = await startServer(...fake, '--vocab', vocabulary.path);
    const waiting = server.fetch('/livez', { headers: { connection: 'keep-alive' } });
    assert.equal((await waiting).status, 200);
    assert.deepEqual(await server.stop(signal), { code: 0, signal: null });
  });

  test(`${signal} lets a running answer finish`, async () => {
    const server = await serve(...fake);
    const answer = await stream(server, { max_tokens: 300, ignore_eos: true });
    assert.deepEqual(await server.stop(signal), { code: 0, signal: null });
    const text = await answer.rest;
    assert.match(text, /"finish_reason":"length"/);
    assert.match(text, /data: \[DONE\]\n\n$/);
    assert.equal(text.match(/"text":"[^"]/g).length > 3, true);
    assert.ok(!text.includes('"drain"'));
  });

  test(`a second ${signal} ends the server at once, also with a reader that has stopped`, async (t) => {
    const server = await serve(...fake, '--set', 'engine.fake_tick_us=0', '--set', 'drain.timeout_ms=600000', '--set', 'limits.outbound_bytes_max=16384');
    const body = JSON.stringify(endless);
    const stuck = connect(server.port, '127.0.0.1', () => {
      stuck.pause();
      stuck.write(`POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    });
    stuck.on('error', () => {});
    t.after(() => stuck.destroy());
    // Its buffers are full when it gets no more tokens. A slow machine may look as if: the end is then only easier.
    let before = 0;
    for (let same = 0; same < 10; ) {
      const { tokens } = await server.counters((h) => h.tokens.generated > 0);
      same = tokens.generated === before ? same + 1 : 0;
      before = tokens.generated;
      await new Promise((r) => setTimeout(r, 20));
    }
    server.process.kill(signal);
    await server.says('draining');
    const start = Date.now();
    assert.deepEqual(await server.stop(signal), { code: 0, signal: null });
    assert.ok(Date.now() - start < 5000, `took ${Date.now() - start} ms`);
  });
}

test('a device that hangs cannot keep the process from ending', async () => {
  const hung = ['--device', 'fake', '--log-format', 'json', '--set', 'engine.fake_tick_us=10000000'];
  for (const [timeout, signals] of [['600000', 2], ['0', 1]]) {
    const server = await serve(...hung, '--set', 'drain.grace_ms=0', '--set', `drain.timeout_ms=${timeout}`);
    const answer = server.post('/v1/completions', ask).catch(() => {});
    await server.counters((h) => h.requests.running > 0);
    server.process.kill('SIGTERM');
    await server.says('draining');
    if (signals > 1) server.process.kill('SIGTERM');
    // Ticks take 10 s and two are on their way: an orderly end would come with 0.
    assert.deepEqual(await server.end(), { code: 70, signal: null });
    await server.says('a thread does not end; exiting without it');
    await answer;
  }
});

test('a device lost during the time of grace ends it, with 70', async () => {
  const server = await serve(...fake, '--set', 'drain.grace_ms=600000', '--set', 'engine.fake_lost_tick=400');
  const answer = await stream(server, endless);
  server.process.kill('SIGTERM');
  await server.says('draining');
  assert.deepEqual(await server.end(), { code: 70, signal: null });
  assert.match(await answer.rest, /the device failed[^]*data: \[DONE\]\n\n$/);
});

test('a background response whose prompt is not read yet gives its session back at a hurried end', async () => {
  const server = await serve(...fake);
  const long = 'x'.repeat(900_000);  // read by the one thread of the worker pool, one after another
  const reads = [];
  for (let i = 0; i < (short ? 30 : 60); ++i)
    reads.push(server.post('/tokenize', { prompt: long }).catch(() => {}));
  await server.counters((c) => c.connections.open >= reads.length);
  const input = 'y'.repeat(100_000);
  const begun = await server.post('/v1/responses', { model: 'fake', input, background: true });
  assert.equal(begun.body.status, 'queued');
  server.process.kill('SIGTERM');
  await server.says('draining');
  server.process.kill('SIGTERM');
  assert.deepEqual(await server.end(), { code: 0, signal: null });
  await Promise.all(reads);
});

test('after SIGTERM new work is refused for the time of grace', async () => {
  const server = await serve(...fake, '--set', 'drain.grace_ms=600000');
  const answer = await stream(server, endless);
  server.process.kill('SIGTERM');
  await server.says('draining');
  assert.deepEqual((await server.get('/readyz')).body, { status: 'unavailable', reason: 'draining' });
  assert.equal((await server.get('/livez')).status, 200);
  const refused = await server.post('/v1/completions', ask);
  assert.equal(refused.status, 503);
  assert.ok(Number(refused.headers.get('retry-after')) <= 30);
  assert.deepEqual(await server.stop(), { code: 0, signal: null });  // the second one does not wait
  assert.match(await answer.rest, /"stop_reason":"drain"[^]*data: \[DONE\]\n\n$/);
});

test('a queue that stays full makes the server unready, until it has room', async () => {
  const server = await serve(...fake, '--set', 'engine.slots=1', '--set', 'queue.waiting_max=2', '--set', 'queue.full_unready_ms=1',
    '--set', 'queue.turn_tokens=1000000000', '--set', 'drain.timeout_ms=0');
  const until = async (status) => {
    for (;;) {
      const told = await server.get('/readyz');
      if (told.status === status) return told.body;
    }
  };
  await stream(server, endless);
  const going = new AbortController();
  const waiting = [1, 2].map(() => server.fetch('/v1/completions', { method: 'POST', body: JSON.stringify(endless), signal: going.signal }));
  assert.deepEqual(await until(503), { status: 'unavailable', reason: 'the queue is full' });
  assert.equal((await server.get('/livez')).status, 200);
  const refused = await server.post('/v1/completions', ask);
  assert.deepEqual([refused.status, refused.headers.has('retry-after')], [429, true]);
  going.abort();
  await Promise.allSettled(waiting);
  assert.deepEqual(await until(200), { status: 'ok' });
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});
