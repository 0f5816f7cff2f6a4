// /metrics of a server that works: the page follows its format to the letter, its numbers are those that clients saw,
// and it can be read while requests run.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { readExposition, total } from './exposition.mjs';
import { serve, within } from './support.mjs';

async function scrape(server, headers = {}) {
  const response = await server.fetch('/metrics', { headers });
  assert.equal(response.status, 200);
  return { type: response.headers.get('content-type'), page: await response.text() };
}
const numbers = async (server) => readExposition((await scrape(server)).page);
/** The first page that is as it shall become. */
async function until(server, good) {
  const look = async () => {
    for (;;) {
      const all = await numbers(server);
      if (good(all)) return all;
    }
  };
  return await within(look(), `a page on which ${good}`);
}

const wish = (text, max_tokens, more = {}) => ({ prompt: text, max_tokens, ignore_eos: true, ...more });

test('the numbers of a server', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-metrics-'));
  const server = await serve('--device', 'fake', '--state-dir', folder, '--set', 'drain.grace_ms=0');
  t.after(async () => {
    await server.stop();
    rmSync(folder, { recursive: true });
  });
  const model = { model: (await server.get('/v1/models')).body.data[0].id };

  await t.test('are all there before anything happened', async () => {
    const all = await numbers(server);
    for (const name of ['skein_requests_running', 'skein_requests_waiting', 'skein_batch_size', 'skein_step_seconds',
      'skein_preemptions_total', 'skein_state_slots', 'skein_state_bytes', 'skein_state_moves_total',
      'skein_state_move_seconds', 'skein_http_requests_total', 'skein_http_connections', 'skein_build_info',
      'skein_model_info', 'process_resident_memory_bytes', 'skein_time_to_first_token_seconds',
      'skein_requests_rejected_total', 'skein_invariant_violations_total', 'skein_num_requests_running',
      'skein_num_requests_waiting', 'skein_num_preemptions_total'])
      assert(all.has(name), name);
    assert(total(all, 'skein_state_slots', { tier: 'vram', state: 'total' }) > 0);
    assert.equal(total(all, 'skein_requests_running', model), 0);
    const [, version, commit, backend] = /^skein (\S+) \(([^,]+?),.* (\S+)\)$/.exec((await server.get('/version')).body.version);
    assert.equal(total(all, 'skein_build_info', { version, commit, backend }), 1);
  });

  await t.test('count what clients got', async () => {
    const before = await numbers(server);
    const usage = [];
    for (const n of [3, 5, 1]) usage.push((await server.post('/v1/completions', wish('abc', n))).body.usage);
    const stream = await server.fetch('/v1/completions', {
      method: 'POST', body: JSON.stringify(wish('abcd', 7, { stream: true })) });
    await stream.text();
    assert.equal((await server.post('/v1/completions', { prompt: 5 })).status, 400);
    assert.equal((await server.fetch('/nowhere')).status, 404);
    // The last bytes of an answer leave before its exchange is counted.
    const after = await until(server, (all) => total(all, 'skein_http_requests_total', { code: '404' }) > 0);
    const grew = (name, labels, ending) => total(after, name, labels, ending) - total(before, name, labels, ending);
    const sum = (what) => usage.reduce((s, u) => s + u[what], 0);
    const prompt = usage[0].prompt_tokens;
    assert.equal(grew('skein_generation_tokens_total', model), sum('completion_tokens') + 7);
    assert.equal(grew('skein_prompt_tokens_total', model), sum('prompt_tokens') + prompt + 1);
    assert.equal(grew('skein_request_success_total', { ...model, finished_reason: 'length' }), 4);
    assert.equal(grew('skein_request_success_total', { ...model, finished_reason: 'abort' }), 0);
    assert.equal(grew('skein_requests_rejected_total', { ...model, reason: 'invalid_argument' }), 1);
    for (const name of ['skein_time_to_first_token_seconds', 'skein_e2e_request_latency_seconds',
      'skein_request_queue_time_seconds', 'skein_request_prefill_time_seconds', 'skein_request_decode_time_seconds',
      'skein_request_prompt_tokens', 'skein_request_generation_tokens'])
      assert.equal(grew(name, model, '_count'), 4, name);
    assert.equal(grew('skein_inter_token_latency_seconds', model, '_count'), 2 + 4 + 0 + 6);
    assert.equal(grew('skein_request_time_per_output_token_seconds', model, '_count'), 3);
    assert.equal(grew('skein_request_generation_tokens', model, '_sum'), 16);
    assert(grew('skein_batch_size', model, '_count') > 0);
    const route = { route: '/v1/completions', method: 'POST' };
    assert.equal(grew('skein_http_requests_total', { ...route, code: '200' }), 4);
    assert.equal(grew('skein_http_requests_total', { ...route, code: '400' }), 1);
  });

  await t.test('show states that move', async () => {
    for (let i = 0; i < 3; ++i)
      await server.post('/v1/completions', wish('hello', 4, { session_id: 's' }));
    const written = { kind: 'session', from: 'ram', to: 'disk' };
    const all = await until(server, (now) => total(now, 'skein_state_moves_total', written) > 0);
    assert(total(all, 'skein_state_moves_total', { from: 'vram', to: 'ram' }) >= 3);
    assert(total(all, 'skein_state_move_seconds', { kind: 'session', from: 'ram', to: 'disk' }, '_count') > 0);
    assert.equal(total(all, 'skein_session_turns_total', { outcome: 'committed' }), 3);
    for (const [what, many] of [['sessions', 1], ['versions', 3]])
      assert.equal(total(all, `skein_stored_${what}`, { tenants: 'all' }), many);
    assert(total(all, 'skein_stored_bytes', { tenants: 'all' }) > 0);
    assert(total(all, 'skein_stored_sessions', { tenants: 'largest' }) <= 1);  // looked up once a second
    assert(total(all, 'skein_state_oldest_use_timestamp_seconds', { tier: 'ram' }) > 1e9);
    assert.equal(total(all, 'skein_invariant_violations_total'), 0);
  });

  await t.test('are OpenMetrics for clients that accept it', async () => {
    const { type, page } = await scrape(server, { accept: 'application/openmetrics-text;version=1.0.0' });
    assert.match(type, /^application\/openmetrics-text; version=1\.0\.0/);
    assert(readExposition(page, true).has('skein_generation_tokens'));
    assert.match((await scrape(server)).type, /^text\/plain; version=0\.0\.4/);
  });

  await t.test('please promtool, where there is one', { skip: spawnSync('promtool', ['--version']).error && 'none' }, async () => {
    const { page } = await scrape(server);
    const told = spawnSync('promtool', ['check', 'metrics'], { input: page, encoding: 'utf8' });
    assert.equal(told.status, 0, told.stdout + told.stderr);
  });
});

test('a server can be asked while it works, and its streams are counted', async (t) => {
  const server = await serve('--device', 'fake', '--set', 'engine.fake_tick_us=2000', '--set', 'engine.slots=4', '--set', 'queue.turn_tokens=1000000', '--set', 'drain.grace_ms=0');
  t.after(() => server.stop());
  const stop = new AbortController();
  const body = (i) => JSON.stringify(wish(`prompt ${i}`, 100000, { stream: true, stream_options: { include_usage: true } }));
  const streams = [0, 1, 2, 3, 4, 5].map((i) =>
    server.fetch('/v1/completions', { method: 'POST', signal: stop.signal, body: body(i) }).catch(() => undefined));
  const busy = await until(server, (all) => total(all, 'skein_requests_running') === 4 &&
    total(all, 'skein_requests_waiting') === 2 && total(all, 'skein_num_requests_running') === 4 &&
    total(all, 'skein_num_requests_waiting') === 2);
  assert.equal(total(busy, 'skein_state_slots', { tier: 'vram', state: 'used' }), 4);
  assert(total(busy, 'skein_http_connections', { kind: 'open' }) >= 6);
  let tokens = 0;
  for (let i = 0; i < 50; ++i) {  // what only counts never falls
    const all = await numbers(server);
    const now = total(all, 'skein_generation_tokens_total');
    assert(now >= tokens);
    tokens = now;
  }
  assert(tokens > 0);
  await until(server, (all) => total(all, 'skein_http_connections', { kind: 'stream' }) >= 4);
  stop.abort();
  await Promise.all(streams);
  const idle = await until(server, (all) => total(all, 'skein_requests_running') + total(all, 'skein_requests_waiting') === 0 &&
    total(all, 'skein_http_connections', { kind: 'stream' }) === 0);
  // Who waited may have had the slot of one that left, for a moment.
  const aborted = total(idle, 'skein_request_success_total', { finished_reason: 'abort' });
  assert(aborted >= 4 && aborted <= 6, `${aborted} were aborted`);
  assert.equal(total(idle, 'skein_state_slots', { tier: 'vram', state: 'used' }), 0);
});

test('no time is negative if prompts of a request get their slots one after another', async (t) => {
  const server = await serve('--device', 'fake', '--slots', '1', '--set', 'drain.grace_ms=0');
  t.after(() => server.stop());
  assert.equal((await server.post('/v1/completions', wish(['a', 'b', 'c'], 5))).status, 200);
  assert.equal(total(await numbers(server), 'skein_request_success_total'), 1);  // and the page keeps its rules
});

test('a password guards them, unless they are open', async (t) => {
  const guarded = await serve('--device', 'fake', '--password', 'word', '--set', 'drain.grace_ms=0');
  t.after(() => guarded.stop());
  assert.equal((await guarded.fetch('/metrics')).status, 401);
  await scrape(guarded, { authorization: 'Bearer word' });
  const open = await serve('--device', 'fake', '--password', 'word', '--set', 'server.open_metrics=true', '--set', 'drain.grace_ms=0');
  t.after(() => open.stop());
  await scrape(open);
  assert.equal((await open.fetch('/v1/models')).status, 401);
});
