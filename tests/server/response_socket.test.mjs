// The WebSocket of the Responses API by the official client: events, several answers side by side, cancelling, signs of
// life, limits, and the end of the server.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { closing, open, pong, text } from './raw_socket.mjs';
import { noOracle, serveTiny, within } from './support.mjs';

const options = { skip: noOracle };
let server;
let client;

before(async () => {
  if (noOracle) return;
  process.env.SKEIN_SERVER_PASSWORD = 'secret';
  server = await serveTiny('--set', 'limits.socket_requests_max=3', '--set', 'drain.grace_ms=0');
  client = new OpenAI({ apiKey: 'secret', baseURL: `${server.url}/v1`, maxRetries: 0 });
});
after(async () => {
  if (!server) return;
  assert.equal((await server.stop()).code, 0);
});

const greedy = { model: 'tiny', input: 'Say something.', max_output_tokens: 24, temperature: 0 };
const create = (more) => ({ type: 'response.create', ...greedy, ...more });

/** The messages of a socket, until `good` says that it has seen enough. */
async function messages(socket, good) {
  const all = [];
  let enough = false;
  const done = new Promise((resolve, reject) => {
    socket.on('event', (event) => {
      if (enough) return;
      all.push(event);
      enough = good(event);
      if (enough) resolve(all);
    });
    socket.on('close', (code) => reject(new Error(`closed with ${code}`)));
    socket.on('error', () => {});
  });
  return await within(done, 'the messages');
}
const isLast = (e) => ['response.completed', 'response.incomplete', 'response.failed', 'error'].includes(e.type);
const textOf = (all) => all.filter((e) => e.type === 'response.output_text.delta').map((e) => e.delta).join('');

test('an answer is the same as by POST, and the next goes on from it', options, async () => {
  const whole = await client.responses.create(greedy);
  const socket = new ResponsesWS(client);
  socket.send(create());
  const all = await messages(socket, isLast);
  assert.deepEqual(all.map((e) => e.sequence_number), all.map((_, i) => i));
  assert.equal(textOf(all), whole.output_text);
  const { id } = all[0].response;
  socket.send(create({ previous_response_id: id, input: 'More.' }));
  const next = (await messages(socket, isLast)).at(-1).response;
  assert.equal(next.previous_response_id, id);
  assert.ok(next.usage.input_tokens < 60);
  assert.equal((await client.responses.retrieve(next.id)).status, next.status);
  socket.close();
});

test('answers run side by side, up to a limit; one is cancelled', options, async () => {
  const socket = new ResponsesWS(client);
  for (let i = 0; i < 4; ++i) socket.send(create({ max_output_tokens: 100000 }));
  const ids = new Set();
  // The refusal and the first events of the others are in no order: the fourth request may be read after they are sent.
  const refused = [];
  await messages(socket, (e) => {
    if (e.response) ids.add(e.response.id);
    if (e.type === 'error') refused.push(e);
    return ids.size === 3 && refused.length > 0;
  });
  assert.deepEqual(refused.map((e) => e.status), [429]);
  const [one] = ids;
  socket.send({ type: 'response.cancel', response_id: one });
  const last = (await messages(socket, (e) => isLast(e))).at(-1);
  assert.deepEqual([last.response.id, last.response.status], [one, 'cancelled']);
  socket.send({ type: 'response.cancel' });
  let ended = 0;
  await messages(socket, (e) => isLast(e) && ++ended === 2);
  socket.send({ type: 'response.cancel' });
  assert.equal((await messages(socket, isLast)).at(-1).status, 404);
  socket.close();
});

test('what is wrong with a request is said in an event, and the socket stays', options, async () => {
  const socket = new ResponsesWS(client);
  socket.send(create({ tools: [{ type: 'web_search' }] }));
  const [no] = await messages(socket, isLast);
  assert.deepEqual([no.type, no.status, no.error.param], ['error', 400, 'tools[0].type']);
  socket.send(create());
  assert.equal(textOf(await messages(socket, isLast)).length > 0, true);
  socket.close();
});

test('who leaves in the middle leaves a response that goes on', options, async () => {
  const socket = new ResponsesWS(client);
  const long = { max_output_tokens: 300, alpha_presence: 0, alpha_frequency: 0 };
  const whole = await client.responses.create({ ...greedy, ...long });
  socket.send(create(long));
  const seen = await messages(socket, (e) => e.sequence_number === 20);
  socket.close();
  const last = seen.findIndex((e) => e.sequence_number === 20);
  let rest = '';
  // The socket's goodbye and this request are in no order: until the first was heard, the answer runs for the other.
  for await (const event of await client.responses.retrieve(seen[0].response.id, { stream: true, starting_after: 20 }))
    if (event.type === 'response.output_text.delta') rest += event.delta;
  assert.equal(textOf(seen.slice(0, last + 1)) + rest, whole.output_text);
});

test('a socket is asked for a sign of life, and cut without one', options, async () => {
  const idle = await serveTiny('--set', 'limits.socket_idle_timeout_ms=200', '--set', 'drain.grace_ms=0');
  const silent = await open(idle.port, {});
  assert.equal((await silent.next()).opcode, 9);
  assert.equal(await silent.next(), undefined);
  const alive = await open(idle.port, {});
  for (let i = 0; i < 4; ++i) {
    assert.equal((await alive.next()).opcode, 9);
    alive.send(pong(''));
  }
  alive.send(closing(1000));
  assert.equal((await alive.next()).code, 1000);
  await idle.stop();
});

test('the end of the server: what runs is parked, then 1012', options, async () => {
  const ending = await serveTiny('--set', 'drain.timeout_ms=0', '--set', 'drain.grace_ms=0');
  const socket = await open(ending.port, {});
  const waiting = await open(ending.port, {});
  socket.send(text(JSON.stringify(create({ max_output_tokens: 100000 }))));
  let frame = await socket.next();
  for (; frame.json.type !== 'response.output_text.delta'; ) frame = await socket.next();
  const end = ending.stop();
  const frames = await socket.all();
  assert.equal(frames.at(-1)?.code, 1012);
  const last = frames.at(-2).json;
  assert.deepEqual([last.type, last.response.incomplete_details.reason], ['response.incomplete', 'drain']);
  assert.equal((await waiting.all()).at(-1)?.code, 1012);
  assert.equal((await end).code, 0);
});
