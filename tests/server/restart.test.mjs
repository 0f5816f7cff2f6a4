// Clients of the Responses API whose server ends in the middle of their answers and comes back: each goes on reading
// behind the last event that it has, and ends with the whole text, no token lost and none twice.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { noOracle, serveTiny, short, within } from './support.mjs';

const options = { skip: noOracle };
const rounds = process.env.SKEIN_LONG ? 10 : 2;
const directory = mkdtempSync(join(tmpdir(), 'skein-restart-'));
// Greedy text is the same however often it broke.
const request = { model: 'tiny', max_output_tokens: short ? 600 : 1500, temperature: 0, alpha_presence: 0, alpha_frequency: 0 };
const inputs = Array.from({ length: 6 }, (_, i) => `Tell me of ${i} things.`);
let server;
let expected;

const start = async (port = '0') =>
  await serveTiny('--port', `${port}`, '--state-dir', directory, '--set', 'drain.timeout_ms=0', '--set', 'drain.grace_ms=0');
const clientOf = (port) => new OpenAI({ apiKey: 'secret', baseURL: `http://127.0.0.1:${port}/v1`, maxRetries: 0 });

before(async () => {
  if (noOracle) return;
  process.env.SKEIN_SERVER_PASSWORD = 'secret';
  server = await start();
  const client = clientOf(server.port);
  expected = await Promise.all(inputs.map(async (input) => {
    const { output_text, usage } = await client.responses.create({ ...request, input });
    return { text: output_text, usage };
  }));
});
after(async () => {
  if (server) assert.equal((await server.stop()).code, 0);
  rmSync(directory, { recursive: true, force: true });
});

/** The part of an answer that one client has received. */
class Reader {
  text = '';
  last = -1;
  over = false;
  take(event) {
    assert.ok(event.sequence_number > this.last, `event ${event.sequence_number} after ${this.last}`);
    this.last = event.sequence_number;
    this.id ??= event.response?.id;
    if (event.type === 'response.output_text.delta') this.text += event.delta;
    const parked = event.response?.incomplete_details?.reason;
    if (['response.completed', 'response.incomplete'].includes(event.type)) this.over = parked !== 'drain';
  }
}

const bySse = (client, input) => client.responses.create({ ...request, input, stream: true });
async function* bySocket(client, input) {
  const socket = new ResponsesWS(client);
  const queue = [];
  let wake = () => {};
  const put = (what) => {
    queue.push(what);
    wake();
  };
  socket.on('event', put);
  socket.on('error', () => put(null));
  socket.on('close', () => put(null));
  socket.send({ type: 'response.create', ...request, input });
  for (;;) {
    while (queue.length === 0) await new Promise((done) => (wake = done));
    const event = queue.shift();
    if (event === null) throw new Error('the socket ended');
    yield event;
    if (['response.completed', 'response.incomplete'].includes(event.type)) return socket.close();
  }
}

/** Reads to the end of the answer, over as many servers as it takes. */
async function read(reader, ask, input, ready) {
  for (;;) {
    const client = clientOf((await ready()).port);
    try {
      const events = reader.id
        ? await client.responses.retrieve(reader.id, { stream: true, starting_after: reader.last })
        : await ask(client, input);
      for await (const event of events) reader.take(event);
    } catch (trouble) {
      if (trouble.status && trouble.status < 500 && trouble.status !== 409) throw trouble;
    }
    if (reader.over) return;
    await new Promise((done) => setTimeout(done, 20));
  }
}

test('the server is restarted in the middle of all answers', options, async () => {
  let current = Promise.resolve(server);
  const readers = inputs.map(() => new Reader());
  const all = Promise.all(inputs.map((input, i) => read(readers[i], i % 2 ? bySse : bySocket, input, () => current)));
  let broken = 0;
  for (let round = 0; round < rounds; ++round) {
    const goal = readers.map((r) => r.last + 40);
    const moved = async () => {
      while (!readers.some((r, i) => r.over || r.last >= goal[i])) await new Promise((done) => setTimeout(done, 2));
    };
    await within(moved(), 'some text');
    broken += readers.filter((r) => !r.over).length;
    const { port } = server;
    let restarted;
    current = new Promise((done) => (restarted = done));
    assert.equal((await server.stop()).code, 0);
    server = await start(port);
    restarted(server);
  }
  await within(all, 'the ends of all answers');
  assert.ok(broken >= inputs.length, `${broken} answers were broken off`);
  const client = clientOf(server.port);
  for (const [i, r] of readers.entries()) {
    assert.equal(r.text, expected[i].text);
    const told = await client.responses.retrieve(r.id);
    assert.equal(told.output_text, expected[i].text);
    for (const name of ['input_tokens', 'output_tokens', 'total_tokens']) assert.equal(told.usage[name], expected[i].usage[name], name);
  }
});

test('the server is killed in the middle of an answer: what it had noted goes on', options, async () => {
  const begun = await clientOf(server.port).responses.create({ ...request, input: inputs[0], stream: true });
  let id;
  try {
    for await (const event of begun) {
      id ??= event.response?.id;
      if (event.sequence_number === 300) server.process.kill('SIGKILL');
    }
  } catch {
    // as it must
  }
  const { port } = server;
  await server.end();
  server = await start(port);
  const reader = new Reader();
  for await (const event of await clientOf(port).responses.retrieve(id, { stream: true })) reader.take(event);
  assert.equal(reader.text, expected[0].text);
});

test('the server is killed: a client that resumes after its last event has the text of an unbroken answer', options, async () => {
  const sampled = { ...request, input: inputs[1], temperature: 1, seed: 7, alpha_presence: 0.5, alpha_frequency: 0.1 };
  const whole = await clientOf(server.port).responses.create(sampled);
  const reader = new Reader();
  try {
    for await (const event of await clientOf(server.port).responses.create({ ...sampled, stream: true })) {
      reader.take(event);
      if (event.sequence_number === 200) server.process.kill('SIGKILL');
    }
  } catch {
    // as it must
  }
  const { port } = server;
  await server.end();
  server = await start(port);
  assert.ok(reader.text.length > 0 && reader.text.length < whole.output_text.length);
  const rest = await clientOf(port).responses.retrieve(reader.id, { stream: true, starting_after: reader.last });
  for await (const event of rest) reader.take(event);
  assert.equal(reader.text, whole.output_text);
});
