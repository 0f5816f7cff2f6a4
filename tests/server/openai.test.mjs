// The official OpenAI client against the running server with a tiny trained model: what it accepts, parses and throws.
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
  server = await serveTiny('--set', 'server.strict_model_names=true', '--set', 'server.tell_ignored_fields=true');
  client = new OpenAI({ apiKey: 'secret', baseURL: `${server.url}/v1`, maxRetries: 0 });
});
after(async () => {
  if (!server) return;
  const { code } = await server.stop();
  assert.equal(code, 0);
});

const messages = [{ role: 'user', content: 'Say something.' }];
const greedy = { model: 'tiny', messages, max_tokens: 24, temperature: 0 };

test('models: list and retrieve', options, async () => {
  const list = await client.models.list();
  assert.ok(list.data.some((m) => m.id === 'tiny' && m.object === 'model'));
  assert.equal((await client.models.retrieve('tiny')).id, 'tiny');
});

test('chat: whole and streamed answers agree', options, async () => {
  const whole = await client.chat.completions.create(greedy);
  assert.equal(whole.object, 'chat.completion');
  assert.match(whole.id, /^chatcmpl-/);
  assert.equal(whole.choices[0].message.role, 'assistant');
  assert.ok(whole.choices[0].message.content.length > 0);
  assert.equal(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens);

  const stream = await client.chat.completions.create({ ...greedy, stream: true, stream_options: { include_usage: true } });
  let text = '';
  let finish;
  let usage;
  const ids = new Set();
  let first = true;
  for await (const chunk of stream) {
    ids.add(chunk.id);
    if (first) assert.equal(chunk.choices[0].delta.role, 'assistant');
    first = false;
    text += chunk.choices[0]?.delta.content ?? '';
    finish = chunk.choices[0]?.finish_reason ?? finish;
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, whole.choices[0].message.content);
  assert.equal(finish, whole.choices[0].finish_reason);
  assert.deepEqual(usage, whole.usage);
  assert.equal(ids.size, 1);
});

test('ignored fields are named', options, async () => {
  const odd = { ...greedy, temprature: 1, 'a b\n': 2, service_tier: 'auto' };
  const header = async (request) => (await request.asResponse()).headers.get('x-skein-ignored-fields');
  for (const stream of [false, true]) {
    assert.equal(await header(client.chat.completions.create({ ...odd, stream })), 'temprature, a%20b%0A, service_tier');
    assert.equal(await header(client.chat.completions.create({ ...greedy, stream })), null);
  }
  const spoken = client.responses.create({ model: 'tiny', input: 'Hello', max_output_tokens: 4, foo: 1 });
  assert.equal(await header(spoken), 'foo');
  await assert.rejects(client.chat.completions.create({ ...odd, top_p: 'x' }), (e) => e.headers.get('x-skein-ignored-fields') === 'temprature, a%20b%0A, service_tier');
});

test('the stream helper puts a message together', options, async () => {
  const runner = client.chat.completions.stream(greedy);
  const done = await runner.finalChatCompletion();
  assert.ok(done.choices[0].message.content.length > 0);
});

test('completions: whole and streamed, echo, several prompts', options, async () => {
  const request = { model: 'tiny', prompt: 'The ', max_tokens: 16, temperature: 0 };
  const whole = await client.completions.create(request);
  assert.equal(whole.object, 'text_completion');
  let text = '';
  for await (const chunk of await client.completions.create({ ...request, stream: true })) text += chunk.choices[0]?.text ?? '';
  assert.equal(text, whole.choices[0].text);
  const echoed = await client.completions.create({ ...request, echo: true });
  assert.equal(echoed.choices[0].text, 'The ' + whole.choices[0].text);
  const many = await client.completions.create({ ...request, prompt: ['The ', 'A '], n: 2 });
  assert.deepEqual(many.choices.map((c) => c.index), [0, 1, 2, 3]);
  assert.equal(many.choices[0].text, whole.choices[0].text);
  assert.equal(many.choices[1].text, whole.choices[0].text);
});

test('a stop string never shows, wherever it lies', options, async () => {
  const request = { model: 'tiny', prompt: 'The ', max_tokens: 40, temperature: 0 };
  const full = (await client.completions.create({ ...request, stop: [] })).choices[0].text;
  const stop = full.slice(5, 9);
  const cut = await client.completions.create({ ...request, stop: [stop, 'never seen'] });
  assert.equal(cut.choices[0].text, full.slice(0, full.indexOf(stop)));
  assert.equal(cut.choices[0].finish_reason, 'stop');
  let streamed = '';
  for await (const chunk of await client.completions.create({ ...request, stop, stream: true })) streamed += chunk.choices[0]?.text ?? '';
  assert.equal(streamed, cut.choices[0].text);
});

test('a seed repeats, another differs', options, async () => {
  const draw = async (seed) =>
    (await client.chat.completions.create({ ...greedy, temperature: 1.5, top_p: 1, seed, max_tokens: 48 })).choices[0].message.content;
  const [a, b, c] = [await draw(7), await draw(7), await draw(8)];
  assert.equal(a, b);
  assert.notEqual(a, c);
});

test('n=3: three rows, the first as alone', options, async () => {
  const request = { ...greedy, temperature: 1.2, top_p: 1, seed: 11, max_tokens: 32 };
  const one = await client.chat.completions.create(request);
  const three = await client.chat.completions.create({ ...request, n: 3 });
  assert.equal(three.choices.length, 3);
  assert.equal(three.choices[0].message.content, one.choices[0].message.content);
  assert.notEqual(three.choices[1].message.content, three.choices[0].message.content);
  const texts = ['', '', ''];
  for await (const chunk of await client.chat.completions.create({ ...request, n: 3, stream: true }))
    for (const c of chunk.choices) texts[c.index] += c.delta.content ?? '';
  assert.deepEqual(texts, three.choices.map((c) => c.message.content));
});

test('logprobs are log-probabilities', options, async () => {
  const answer = await client.chat.completions.create({ ...greedy, logprobs: true, top_logprobs: 5 });
  const content = answer.choices[0].logprobs.content;
  assert.ok(content.length > 0);
  for (const token of content) {
    assert.ok(token.logprob <= 0);
    assert.equal(token.top_logprobs.length, 5);
    assert.ok(token.top_logprobs.reduce((sum, t) => sum + Math.exp(t.logprob), 0) <= 1.0001);
    assert.ok(token.top_logprobs[0].logprob >= token.logprob - 1e-6);
  }
  const old = await client.completions.create({ model: 'tiny', prompt: 'The ', max_tokens: 4, temperature: 0, logprobs: 3, echo: true });
  assert.equal(old.choices[0].logprobs.tokens.length, 8);
  assert.equal(old.choices[0].logprobs.token_logprobs[0], null);
  assert.deepEqual(old.choices[0].logprobs.text_offset.slice(0, 4), [0, 1, 2, 3]);
});

test('an abort in mid-stream frees the slot', options, async () => {
  const stream = await client.completions.create({ model: 'tiny', prompt: 'The ', max_tokens: 100000, stream: true, ignore_eos: true, stop: [] });
  let seen = 0;
  for await (const chunk of stream) {
    if (chunk.choices.length && ++seen === 3) break;
  }
  stream.controller.abort();
  await server.counters((h) => h.slots.used === 0 && h.requests.running === 0 && h.requests.cancelled >= 1);
});

test('errors have the classes that the client knows', options, async () => {
  await assert.rejects(client.chat.completions.create({ ...greedy, temperature: -1 }), (e) => {
    assert.ok(e instanceof OpenAI.BadRequestError);
    assert.equal(e.param, 'temperature');
    assert.equal(e.type, 'invalid_request_error');
    return true;
  });
  await assert.rejects(client.chat.completions.create({ ...greedy, tools: [{ type: 'function', function: { name: 'a b' } }] }), OpenAI.BadRequestError);
  await assert.rejects(client.chat.completions.create({ ...greedy, response_format: { type: 'xml' } }), OpenAI.BadRequestError);
  await assert.rejects(client.chat.completions.create({ ...greedy, model: 'nobody' }), (e) => {
    assert.ok(e instanceof OpenAI.NotFoundError);
    assert.equal(e.code, 'model_not_found');
    return true;
  });
  await assert.rejects(client.models.retrieve('nobody'), OpenAI.NotFoundError);
  await assert.rejects(client.embeddings.create({ model: 'tiny', input: 'x' }), OpenAI.BadRequestError);
  const stranger = new OpenAI({ apiKey: 'wrong', baseURL: `${server.url}/v1`, maxRetries: 0 });
  await assert.rejects(stranger.models.list(), (e) => {
    assert.ok(e instanceof OpenAI.AuthenticationError);
    assert.equal(e.code, 'invalid_api_key');
    return true;
  });
  await assert.rejects(client.completions.create({ model: 'tiny', prompt: 'x'.repeat(9 << 20) }), (e) => {
    assert.equal(e.status, 413);
    assert.equal(e.code, 'request_too_large');
    return true;
  });
});

test('a full queue is a 429 with Retry-After', options, async (t) => {
  // No row is parked and no reader is slow: the first keeps the only slot until it is aborted.
  const small = await serveTiny('--set', 'engine.slots=1', '--set', 'queue.waiting_max=1', '--set', 'queue.turn_tokens=100000000',
                                '--set', 'drain.grace_ms=0');
  t.after(() => small.process.kill('SIGKILL'));  // harmless when it has ended
  const impatient = new OpenAI({ apiKey: 'secret', baseURL: `${small.url}/v1`, maxRetries: 0 });
  const long = { model: 'tiny', prompt: 'The ', max_tokens: 1000000, ignore_eos: true, stop: [] };
  const abort = new AbortController();
  const running = impatient.completions.create(long, { signal: abort.signal }).catch(() => {});
  await small.counters((h) => h.slots.used === 1);
  const waiting = impatient.completions.create(long, { signal: abort.signal }).catch(() => {});
  await small.counters((h) => h.requests.waiting === 1);
  await assert.rejects(impatient.completions.create(long), (e) => {
    assert.ok(e instanceof OpenAI.RateLimitError);
    assert.ok(Number(e.headers.get('retry-after')) <= 30);
    return true;
  });
  abort.abort();
  await Promise.all([running, waiting]);
  await small.counters((h) => h.slots.used === 0 && h.requests.waiting === 0);
  assert.equal((await small.stop()).code, 0);
});
