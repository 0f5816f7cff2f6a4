// Answers to one prompt that are drawn at the same time: eight responses behind one, and eight that begin a conversation.
// On the fake engine, whose text tells every token that was ever fed, so that a state which two answers had shared would
// show. The server is killed in their middle, and each goes on.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { serve, within } from './support.mjs';

const directory = mkdtempSync(join(tmpdir(), 'skein-parallel-'));
const count = 8;
const each = Array.from({ length: count }, (_, i) => i);
const conversation = (n) => `conv_${String(n).padStart(24, '0')}`;
// Without penalties, which forget what was drawn before a break.
const greedy = { model: 'fake', max_output_tokens: 60, temperature: 0, alpha_presence: 0, alpha_frequency: 0 };
const endless = { ...greedy, max_output_tokens: 1_000_000, ignore_eos: true, stream: true };
let server;
let client;

async function start() {
  server = await serve('--device', 'fake', '--state-dir', directory, '--set', 'engine.slots=12', '--set',
    'engine.fake_tick_us=1000', '--set', 'drain.grace_ms=0', '--set', 'drain.timeout_ms=0');
  client = new OpenAI({ apiKey: 'any', baseURL: `${server.url}/v1`, maxRetries: 0 });
}
before(start);
after(async () => {
  assert.equal((await server.stop()).code, 0);
  rmSync(directory, { recursive: true, force: true });
});

const create = (more) => client.responses.create({ ...greedy, ...more });
const tree = async (id) => (await server.get(`/v1/sessions/${id}?tree=true`)).body;
const children = async (id, base) => (await tree(id)).tree.filter((v) => v.parent === base);

/** An answer that is read until its reader leaves or its server does. */
class Endless {
  text = '';
  constructor(more) {
    this.over = this.#read(more);
  }
  async #read(more) {
    try {
      this.stream = await client.responses.create({ ...endless, ...more });
      for await (const event of this.stream) {
        this.id ??= event.response?.id;
        if (event.type === 'response.output_text.delta') this.text += event.delta;
      }
    } catch {
      // as it must
    }
  }
  async has(bytes) {
    while (this.text.length < bytes) await new Promise((done) => setTimeout(done, 5));
  }
}
const allRun = () => server.counters(({ requests, sessions }) => requests.running === count && sessions.leases === count);
const noneRuns = () => server.counters(({ requests, sessions }) => requests.running === 0 && sessions.leases === 0);

test('eight answers behind one response have the text of one alone', async () => {
  const first = await create({ input: 'Hello.', conversation: conversation(1) });
  const alone = await create({ input: 'And now?', previous_response_id: first.id });
  const all = await Promise.all(each.map(() => create({ input: 'And now?', previous_response_id: first.id })));
  for (const one of all) {
    assert.equal(one.output_text, alone.output_text);
    assert.equal(one.usage.input_tokens, alone.usage.input_tokens);
  }
  assert.equal(new Set(all.map((one) => one.id)).size, count);
  const behind = await children(conversation(1), 1);
  assert.deepEqual(behind.map((v) => v.version), [2, 3, 4, 5, 6, 7, 8, 9, 10]);
  assert.deepEqual(new Set(behind.slice(1).map((v) => v.response_id)), new Set(all.map((one) => one.id)));
  assert.equal((await tree(conversation(1))).head, 10);
});

test('they run at the same time; who goes on at the head waits for them', async () => {
  const first = await create({ input: 'Hello.', conversation: conversation(2) });
  const running = each.map(() => new Endless({ input: 'And now?', previous_response_id: first.id }));
  await allRun();
  const atHead = create({ input: 'At the head.', conversation: conversation(2) });
  await server.counters(({ sessions }) => sessions.waiting === 1);
  const rolled = await server.post(`/v1/sessions/${conversation(2)}/rollback`, { version: 1 });
  assert.equal(rolled.status, 409);
  await within(Promise.all(running.map((r) => r.has(50))), 'some text');
  running.forEach((r) => r.stream.controller.abort());
  const { id } = await atHead;
  assert.equal((await tree(conversation(2))).tree.find((v) => v.response_id === id).parent, 1);
  const behind = (await children(conversation(2), 1)).filter((v) => v.response_id !== id);
  assert.equal(behind.length, count);
  assert.ok(behind.every((v) => v.unfinished));
});

test('eight answers begin a conversation; killed in their middle, each is there once and goes on', async () => {
  const id = conversation(3);
  const running = each.map((i) => new Endless({ input: `Tell me of ${i} things.`, conversation: id, from_version: 0 }));
  await allRun();
  await within(Promise.all(running.map((r) => r.has(200))), 'some text');
  for (let lives = 0; lives < 2; ++lives) {
    assert.equal((await server.stop('SIGKILL')).signal, 'SIGKILL');
    await Promise.all(running.map((r) => r.over));
    await start();
    const { tree: versions, head } = await tree(id);
    assert.equal(head, 0);
    assert.deepEqual(versions.map((v) => [v.version, v.parent, v.unfinished]), each.map((i) => [i + 1, 0, true]));
    assert.deepEqual(new Set(versions.map((v) => v.response_id)), new Set(running.map((r) => r.id)));
  }
  const goOn = running.map(async (r) => {
    let text = '';
    let status;
    const events = await client.responses.retrieve(r.id, { stream: true });
    for await (const event of events) {
      if (event.type === 'response.output_text.delta') text += event.delta;
      if (text.length > r.text.length) break;
      status = event.response?.status;
    }
    assert.ok(text.startsWith(r.text), `${text.length} of ${r.text.length} bytes, ${status}`);
  });
  await within(Promise.all(goOn), 'the rest of all answers');
  await noneRuns();
});
