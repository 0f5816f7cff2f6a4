// The Responses API by the official client: answers, streams, turns that go on from a response, and what stays of them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { noOracle, serveTiny } from './support.mjs';

const options = { skip: noOracle };
let server;
let client;

before(async () => {
  if (noOracle) return;
  process.env.SKEIN_SERVER_PASSWORD = 'secret';
  server = await serveTiny();
  client = new OpenAI({ apiKey: 'secret', baseURL: `${server.url}/v1`, maxRetries: 0 });
});
after(async () => {
  if (!server) return;
  const { code } = await server.stop();
  assert.equal(code, 0);
});

const greedy = { model: 'tiny', input: 'Say something.', max_output_tokens: 24, temperature: 0 };

/** All events of a stream. */
async function events(stream) {
  const all = [];
  for await (const event of stream) all.push(event);
  return all;
}
const textOf = (all) => all.filter((e) => e.type === 'response.output_text.delta').map((e) => e.delta).join('');

test('an answer, whole and streamed', options, async () => {
  const whole = await client.responses.create(greedy);
  assert.equal(whole.object, 'response');
  assert.match(whole.id, /^resp_[0-9a-f]{48}$/);
  assert.ok(['completed', 'incomplete'].includes(whole.status));
  assert.ok(whole.output_text.length > 0);
  assert.equal(whole.usage.total_tokens, whole.usage.input_tokens + whole.usage.output_tokens);

  const all = await events(await client.responses.create({ ...greedy, stream: true }));
  assert.deepEqual(all.map((e) => e.sequence_number), all.map((_, i) => i));
  const types = all.map((e) => e.type).filter((t, i, list) => t !== list[i - 1]);
  assert.deepEqual(types.slice(0, 5), ['response.created', 'response.in_progress', 'response.output_item.added',
    'response.content_part.added', 'response.output_text.delta']);
  assert.deepEqual(types.slice(-4, -1), ['response.output_text.done', 'response.content_part.done', 'response.output_item.done']);
  const last = all.at(-1);
  assert.equal(last.type, whole.status === 'completed' ? 'response.completed' : 'response.incomplete');
  assert.equal(textOf(all), whole.output_text);
  assert.equal(last.response.output[0].content[0].text, whole.output_text);
  assert.deepEqual(last.response.usage, whole.usage);
  assert.equal(new Set(all.filter((e) => e.response).map((e) => e.response.id)).size, 1);
});

test('the stream helper puts a response together', options, async () => {
  const done = await client.responses.stream(greedy).finalResponse();
  assert.ok(done.output_text.length > 0);
});

test('a turn goes on from a response for its own tokens only', options, async () => {
  const first = await client.responses.create({ ...greedy, instructions: 'Be brief.', input: 'I am Anna. '.repeat(40) });
  const second = await client.responses.create({ ...greedy, previous_response_id: first.id, input: 'Who am I?' });
  assert.equal(second.previous_response_id, first.id);
  assert.ok(second.usage.input_tokens < 60, `${second.usage.input_tokens}`);
  const again = await client.responses.create({ ...greedy, previous_response_id: first.id, input: 'Who am I?' });
  assert.equal(again.output_text, second.output_text);
  assert.notEqual(again.id, second.id);
  const third = await client.responses.create({ ...greedy, previous_response_id: second.id, input: 'Sure?', store: false });
  assert.ok(third.usage.input_tokens < 60);
  await assert.rejects(client.responses.create({ ...greedy, previous_response_id: third.id }), (e) => e.status === 404);
});
