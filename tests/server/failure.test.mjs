// The behaviour of the server when a part of it fails or runs full: every request is answered, the reason is logged, and
// the process ends in order with an exit code that says so.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { serve } from './support.mjs';

const servers = [];
async function start(...args) {
  const server = await serve('--device', 'fake', '--log-format', 'json', '--set', 'drain.grace_ms=0', ...args);
  servers.push(server);
  return server;
}
after(() => servers.forEach((server) => server.process.kill('SIGKILL')));  // harmless for those that have ended

const ask = (server, body) =>
  fetch(`${server.url}/v1/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

// Why it ended, from a log in which every line is a record.
function lastWords(server) {
  const last = server.lines.map((line) => JSON.parse(line)).at(-1);
  assert.equal(last.msg, 'ended');
  return last.why;
}

const endless = { prompt: 'x', max_tokens: 100000, ignore_eos: true };

test('an exception in a tick answers waiting requests and ends the process with 70', async () => {
  for (const stream of [true, false]) {
    const server = await start('--set', 'engine.fake_throw_tick=50');  // only this request makes ticks
    const answer = await ask(server, { ...endless, stream, n: 3 });
    const text = await answer.text();
    assert.equal(answer.status, stream ? 200 : 500);
    assert.match(text, /{"error":{"message":"the device failed while it processed this request","type":"server_error"/);
    if (stream) assert.ok(text.endsWith('data: [DONE]\n\n'));
    assert.equal((await server.end()).code, 70);
    const lost = server.lines.filter((line) => line.includes('"msg":"the device is lost"')).map((line) => JSON.parse(line));
    assert.deepEqual(lost.map((line) => line.why), ['the engine failed: tick 50 threw on purpose']);
    assert.equal(lastWords(server), 'the engine failed: tick 50 threw on purpose');
  }
});

test('a device that is lost while it serves ends the process with 70, whatever its engine calls that', async () => {
  const server = await start('--set', 'engine.fake_lost_tick=50');
  assert.equal((await ask(server, endless)).status, 500);
  assert.equal((await server.end()).code, 70);
  assert.equal(lastWords(server), 'fake device lost in tick 50');
});

test('requests that hold too much together are refused with 429 until others end', async () => {
  const server = await start('--set', 'queue.bytes_max=200000', '--set', 'engine.fake_tick_us=1000');
  const body = { ...endless, prompt: 'x'.repeat(15000), stream: true };
  const abort = new AbortController();
  const running = await fetch(`${server.url}/v1/completions`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), signal: abort.signal,
  });
  assert.equal(running.status, 200);
  const refused = await ask(server, body);
  assert.equal(refused.status, 429);
  assert.ok(Number(refused.headers.get('retry-after')) >= 1);
  const { error } = await refused.json();
  assert.equal(error.code, 'rate_limit_exceeded');
  assert.match(error.message, /queue\.key_bytes_max/);
  abort.abort();
  await server.counters((h) => h.memory.held_bytes === 0);
  assert.equal((await ask(server, { ...body, max_tokens: 1, stream: false })).status, 200);
  assert.equal((await server.stop()).code, 0);
});

test('a response that would be too long is refused by its field', async () => {
  const server = await start();
  const content = 'x'.repeat(8000000);
  const refused = await server.post('/tokenize', { content, with_pieces: true });
  assert.equal(refused.status, 400);
  assert.equal(refused.body.error.param, 'with_pieces');
  assert.match(refused.body.error.message, /limits\.response_bytes_max/);
  const echo = await server.post('/v1/completions', { prompt: content.slice(0, 3000000), echo: true, n: 20, max_tokens: 1 });
  assert.equal(echo.status, 400);
  assert.equal(echo.body.error.param, 'echo');
  assert.equal((await server.stop()).code, 0);
});
