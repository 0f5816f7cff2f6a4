// SIGTERM under load, again and again on one directory: every stream gets its end, the process ends with 0, and every
// session that a client was told of is there in the next life. 10 cycles, 100 in the long form. An answer that was cut
// off by a drain or a time limit is continued from its own state.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { serve, short, within } from './support.mjs';

const cycles = process.env.SKEIN_LONG ? 100 : 10;
const streams = 200;
// A tick of 64 rows is at most what one io thread writes meanwhile; a sanitizer without optimisation takes 30 us a token.
const tick_us = short ? 10_000 : 2_000;

/** An endless answer, read to its end: whether it has begun, and all its events. */
function stream(server, body) {
  const agent = new http.Agent();
  let begun, ended;
  const answer = { begun: new Promise((r) => (begun = r)), events: new Promise((r) => (ended = r)) };
  const request = http.request(`${server.url}/v1/completions`, { method: 'POST', agent }, (response) => {
    let text = '';
    response.setEncoding('utf8');
    response.on('data', (piece) => {
      text += piece;
      begun(response.statusCode);
    });
    response.on('end', () => ended({ status: response.statusCode, text }));
    response.on('error', (why) => ended({ trouble: String(why), text }));
  });
  request.on('error', (why) => (begun(0), ended({ trouble: String(why), text: '' })));
  request.end(JSON.stringify(body));
  return answer;
}

test(`SIGTERM under ${streams} streams, ${cycles} times`, { timeout: 1_700_000 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-drain-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const promised = new Map();  // session to the version that its client was told of
  for (let cycle = 0; cycle < cycles; ++cycle) {
    const server = await serve('--device', 'fake', '--state-dir', folder, '--set', `engine.fake_tick_us=${tick_us}`,
      '--set', 'engine.slots=64', '--set', 'drain.grace_ms=0', '--set', `drain.timeout_ms=${cycle % 3 === 0 ? 0 : 200}`,
      '--set', 'queue.turn_tokens=4');
    t.after(() => server.process.kill('SIGKILL'));  // else a failed test waits for its streams
    // What the life before promised is there.
    const seen = new Map();
    for (let after = ''; ; ) {
      const { body } = await server.get(`/v1/sessions?limit=1000&after=${after}`);
      for (const s of body.data) seen.set(s.id, s);
      if (!body.has_more) break;
      after = body.last_id ?? body.data.at(-1).id;
    }
    for (const [id, version] of promised) {
      assert(seen.has(id), `${id} is there`);
      assert(seen.get(id).versions >= version, `${id} has version ${version}: ${JSON.stringify(seen.get(id))}`);
    }
    const all = [];
    for (let i = 0; i < streams; ++i)
      all.push({ id: `s${cycle % 2}-${i}`, ...stream(server, {
        prompt: `cycle ${cycle}, stream ${i}`, session_id: `s${cycle % 2}-${i}`, stream: true, ignore_eos: true,
        max_tokens: i % 4 === 0 ? 20 : 1_000_000 }) });
    await within(Promise.all(all.slice(0, 100).map((s) => s.begun)), 'the first tokens');
    server.process.kill('SIGTERM');
    assert.deepEqual(await server.end(), { code: 0, signal: null }, `cycle ${cycle}`);
    let ended = 0;
    for (const { id, events } of all) {
      const { status, text, trouble } = await events;
      // Who had connected and sent nothing yet may find the door closed; who was answered gets an end.
      if (trouble !== undefined && text === '') continue;
      assert.equal(trouble, undefined, `${id} was cut off: ${text.slice(-200)}`);
      if (status !== 200) {
        assert.equal(status, 503);
        continue;
      }
      assert(text.endsWith('data: [DONE]\n\n'), `${id} has no end: ${text.slice(-200)}`);
      const parts = text.split('\n\n').filter((e) => e.startsWith('data: {')).map((e) => JSON.parse(e.slice(6)));
      if (parts.at(-1).error) continue;  // it waited for a slot, and was told that it will get none
      ++ended;
      const last = parts.findLast((e) => e.choices?.[0]?.finish_reason);
      assert(last, `${id} has a last event`);
      const session = parts.findLast((e) => e.session)?.session ?? parts.findLast((e) => e.rwkv?.session)?.rwkv.session;
      assert(session, `${id} was told its version: ${text.slice(-400)}`);
      assert.equal(session.durable, 'process');
      promised.set(id, session.version);
    }
    assert(ended >= 64, `${ended} streams came to an end of their own`);
  }
});

for (const device of ['fake', 'cpu']) test(`an answer that a drain cut off is continued from its state (${device})`, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-drain-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const start = async () => {
    const server = await serve('--device', device, '--state-dir', folder, '--set', 'engine.fake_tick_us=2000',
      '--set', 'drain.grace_ms=0', '--set', 'drain.timeout_ms=0');
    t.after(() => server.process.kill('SIGKILL'));
    return server;
  };
  const first = await start();
  const asked = { session_id: 'cut', prompt: 'A long story', temperature: 0, ignore_eos: true };
  const whole = stream(first, { ...asked, stream: true, max_tokens: 1_000_000 });
  await within(whole.begun, 'the first token');
  await new Promise((done) => setTimeout(done, 300));
  first.process.kill('SIGTERM');
  assert.deepEqual(await first.end(), { code: 0, signal: null });
  const { text } = await whole.events;
  const parts = text.split('\n\n').filter((e) => e.startsWith('data: {')).map((e) => JSON.parse(e.slice(6)));
  const begun = parts.flatMap((e) => e.choices ?? []).map((c) => c.text ?? '').join('');
  assert(begun.length > 20, begun);

  const second = await start();
  const { body } = await second.post('/v1/completions', { session_id: 'cut', continue: true, temperature: 0, ignore_eos: true, max_tokens: 10 });
  const { prompt_tokens, prompt_tokens_details } = body.usage;
  assert.equal(prompt_tokens_details.cached_tokens, prompt_tokens - 1, 'only the last token is fed again');
  const answer = begun + body.choices[0].text;
  const again = await second.post('/v1/completions', { ...asked, session_id: 'other', max_tokens: prompt_tokens + 10 });
  assert(again.body.choices[0].text.startsWith(answer), `${answer} / ${again.body.choices[0].text}`);
});

for (const device of ['fake', 'cpu']) test(`an answer that a time limit cut off is continued from its state (${device})`, async (t) => {
  const server = await serve('--device', device, '--set', 'engine.fake_tick_us=2000', '--set', 'drain.grace_ms=0',
    '--set', 'queue.total_timeout_ms=1000', '--set', 'queue.queue_timeout_ms=1000');
  t.after(() => server.process.kill('SIGKILL'));
  const greedy = { temperature: 0, ignore_eos: true };
  const asked = { session_id: 'cut', prompt: 'A long story', ...greedy };
  const cut = (await server.post('/v1/completions', { ...asked, max_tokens: 1_000_000 })).body;
  assert(cut.session.unfinished);
  const more = (await server.post('/v1/completions', { session_id: 'cut', continue: true, ...greedy, max_tokens: 10 })).body;
  const { prompt_tokens, prompt_tokens_details } = more.usage;
  assert.equal(prompt_tokens, cut.usage.total_tokens);
  assert.equal(prompt_tokens_details.cached_tokens, prompt_tokens - 1, 'only the last token is fed again');
  const whole = await serve('--device', device, '--set', 'drain.grace_ms=0');
  t.after(() => whole.process.kill('SIGKILL'));
  const { body } = await whole.post('/v1/completions', { ...asked, max_tokens: prompt_tokens + 10 });
  assert(body.choices[0].text.startsWith(cut.choices[0].text + more.choices[0].text));
});
