// A limit on thoughts against the running server: after it the end tag is written, and the answer goes on. On Chat,
// Responses (also on a WebSocket) and streams the thoughts are reasoning, and usage counts them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { noOracle, serve, serveTiny, within } from './support.mjs';

const tag_tokens_max = 12;  // usage counts the end tag, and more once an answer was continued
const limits = [1, 5, 40];
const servers = [];
const clients = [];  // of the tiny model, which thinks on and on, and of the demo model

before(async () => {
  servers.push(await serve('--device', 'cpu', '--set', 'drain.grace_ms=0'));
  if (!noOracle) servers.unshift(await serveTiny('--set', 'drain.grace_ms=0'));
  for (const server of servers)
    clients.push(new OpenAI({ apiKey: 'any', baseURL: `${server.url}/v1`, maxRetries: 0 }));
});
after(async () => {
  for (const server of servers) assert.equal((await server.stop()).code, 0);
});

const messages = [{ role: 'user', content: 'Why is the sky blue?' }];
const base = { model: '', messages, max_tokens: 120, temperature: 1, seed: 3 };

test('chat: thoughts end at the limit, in every spelling', async () => {
  const spellings = [
    (n) => ({ reasoning_effort: 'high', max_reasoning_tokens: n }),
    (n) => ({ thinking: { type: 'enabled', budget_tokens: n } }),
    (n) => ({ reasoning: { effort: 'high', max_tokens: n } }),
    (n) => ({ enable_thinking: true, thinking_budget: n }),
    (n) => ({ chat_template_kwargs: { enable_thinking: true }, thinking_token_budget: n }),
  ];
  for (const client of clients)
    for (const n of limits)
      for (const spelling of spellings) {
        const { choices: [{ message }], usage } = await client.chat.completions.create({ ...base, ...spelling(n) });
        const thought = usage.completion_tokens_details.reasoning_tokens;
        assert.ok(thought > 0 && thought <= n + tag_tokens_max, `${thought} of ${n}`);
        assert.ok(message.content.length > 0, 'the answer goes on');
        assert.ok(!message.content.includes('</think>') && !(message.reasoning_content ?? '').includes('</think>'));
      }
});

test('chat: streams, several answers, and thoughts as text', async () => {
  for (const client of clients) {
    const request = { ...base, thinking: { type: 'enabled', budget_tokens: 5 } };
    const whole = (await client.chat.completions.create(request)).choices[0].message;
    let reasoning = '';
    let content = '';
    for await (const { choices: [{ delta }] } of await client.chat.completions.create({ ...request, stream: true })) {
      assert.ok(!delta.reasoning_content || content === '');
      reasoning += delta.reasoning_content ?? '';
      content += delta.content ?? '';
    }
    assert.equal(reasoning, whole.reasoning_content ?? '');
    assert.equal(content, whole.content);

    const several = await client.chat.completions.create({ ...request, n: 3 });
    assert.ok(several.usage.completion_tokens_details.reasoning_tokens <= 3 * (5 + tag_tokens_max));
    for (const { message } of several.choices) assert.ok(message.content.length > 0);
    const raw = (await client.chat.completions.create({ ...request, reasoning_format: 'raw' })).choices[0].message;
    assert.ok(raw.content.includes('</think>'));
  }
});

test('chat: 0 turns thinking off, a wrong limit is a 400', async () => {
  for (const client of clients) {
    const off = await client.chat.completions.create({ ...base, enable_thinking: true, max_reasoning_tokens: 0 });
    assert.equal(off.usage.completion_tokens_details.reasoning_tokens, 0);
    await assert.rejects(client.chat.completions.create({ ...base, thinking: { type: 'enabled', budget_tokens: 'many' } }),
      (e) => e.status === 400 && e.param === 'thinking.budget_tokens');
  }
});

test('chat: with a schema and with tools, the thoughts end and the answer matches', async () => {
  const schema = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'], additionalProperties: false };
  const tools = [{ type: 'function', function: { name: 'look', parameters: schema } }];
  for (const client of clients)
    for (let seed = 0; seed < 3; ++seed) {
      const request = { ...base, seed, max_tokens: 400, thinking: { type: 'enabled', budget_tokens: 10 } };
      const json = await client.chat.completions.create({ ...request, response_format: { type: 'json_schema', json_schema: { name: 'ok', schema } } });
      assert.equal(json.choices[0].finish_reason, 'stop');
      assert.equal(typeof JSON.parse(json.choices[0].message.content).ok, 'boolean');
      const called = await client.chat.completions.create({ ...request, tools, tool_choice: 'required', parallel_tool_calls: false });
      assert.equal(called.choices[0].finish_reason, 'tool_calls');
      assert.equal(typeof JSON.parse(called.choices[0].message.tool_calls[0].function.arguments).ok, 'boolean');
    }
});

test('the default of the configuration holds for requests that set no limit', { skip: noOracle }, async () => {
  const server = await serveTiny('--set', 'drain.grace_ms=0', '--set', 'models.tiny.default_think_tokens_max=6');
  const client = new OpenAI({ apiKey: 'any', baseURL: `${server.url}/v1`, maxRetries: 0 });
  try {
    const thought = async (fields) => {
      const { usage } = await client.chat.completions.create({ ...base, ...fields });
      return usage.completion_tokens_details.reasoning_tokens;
    };
    const by_default = await thought({ reasoning_effort: 'high' });
    assert.ok(by_default > 0 && by_default <= 6 + tag_tokens_max, String(by_default));
    assert.equal(await thought({}), 0);
    assert.ok(await thought({ reasoning_effort: 'high', max_reasoning_tokens: -1 }) > 6 + tag_tokens_max);
    assert.ok(await thought({ reasoning_effort: 'high', max_reasoning_tokens: 40 }) > 6 + tag_tokens_max);
    const response = await client.responses.create({ model: '', input: 'Why?', max_output_tokens: 60, reasoning: { effort: 'high' } });
    assert.equal(response.reasoning.max_tokens, 6);
  } finally {
    assert.equal((await server.stop()).code, 0);
  }
});

test('responses: whole, streamed and after an interruption', { skip: noOracle }, async () => {
  const [client] = clients;  // thinks on and on
  const request = { model: '', input: 'Why is the sky blue?', max_output_tokens: 60, temperature: 1,
    reasoning: { effort: 'high', max_tokens: 20 } };
  const whole = await client.responses.create(request);
  assert.equal(whole.reasoning.max_tokens, 20);
  assert.ok(whole.usage.output_tokens_details.reasoning_tokens <= 20 + tag_tokens_max);
  assert.deepEqual(whole.output.map((item) => item.type), ['reasoning', 'message']);

  let thought = 0;
  let said = 0;
  for await (const event of await client.responses.create({ ...request, stream: true })) {
    if (event.type === 'response.reasoning_text.delta') ++thought;
    if (event.type === 'response.output_text.delta') ++said;
  }
  assert.ok(thought > 0 && said > 0);

  const shown = { ...request, reasoning: { ...request.reasoning, summary: 'auto' } };
  const { output: [item], reasoning } = await client.responses.create(shown);
  assert.equal(reasoning.summary, 'auto');
  assert.ok(item.summary[0].text.length > 0);
  assert.deepEqual([item.summary.length, item.summary[0].type, item.content], [1, 'summary_text', []]);
  const events = [];
  for await (const event of await client.responses.create({ ...shown, stream: true })) events.push(event);
  assert.deepEqual(events.map((e) => e.sequence_number), events.map((_, i) => i));
  const of = (type) => events.filter((e) => e.type === `response.${type}`);
  const summary = of('reasoning_summary_text.delta').map((e) => e.delta).join('');
  assert.ok(summary.length > 0);
  assert.equal(of('reasoning_summary_text.done')[0].text, summary);
  assert.equal(of('reasoning_summary_part.added').length, 1);
  assert.deepEqual(of('reasoning_summary_part.done')[0].part, { type: 'summary_text', text: summary });
  assert.equal(of('reasoning_text.delta').length, 0);
  const again = await fetch(`${client.baseURL}/responses/${events[0].response.id}?stream=true`);
  assert.equal((await again.text()).split('event: response.reasoning_summary_text.delta').length - 1, of('reasoning_summary_text.delta').length);

  const socket = new ResponsesWS(client);
  socket.send({ type: 'response.create', ...request });
  const spoken = [];
  await within(new Promise((done) => {
    socket.on('event', (event) => {
      spoken.push(event.type);
      if (['response.completed', 'response.incomplete', 'response.failed', 'error'].includes(event.type)) done();
    });
    socket.on('error', () => {});
  }), 'the last event');
  socket.close();
  for (const type of ['response.reasoning_text.delta', 'response.output_text.delta']) assert.ok(spoken.includes(type), type);

  // Cut after any token, some of which end within a character: each token of the thoughts counts once.
  for (const most of [2, 3, 4, 5]) {
    const fixed = { ...request, seed: 4 };
    const { id } = await client.responses.create({ ...fixed, max_output_tokens: most });
    const rest = await fetch(`${client.baseURL}/responses/${id}/continue`,
      { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ max_output_tokens: 60 - most }) });
    const end = JSON.parse((await rest.text()).trim().split('\n').findLast((line) => line.startsWith('data: {')).slice(6));
    const thoughts = ({ usage }) => usage.output_tokens_details.reasoning_tokens;
    assert.equal(thoughts(end.response), thoughts(await client.responses.create(fixed)), `after ${most}`);
  }

  // Cut within the thoughts: the rest of the limit counts for the continuation.
  const cut = await client.responses.create({ ...request, max_output_tokens: 8 });
  assert.equal(cut.status, 'incomplete');
  const more = await fetch(`${client.baseURL}/responses/${cut.id}/continue`,
    { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ max_output_tokens: 50 }) });
  const last = JSON.parse((await more.text()).trim().split('\n').findLast((line) => line.startsWith('data: {')).slice(6));
  assert.ok(last.response.output_text ?? last.response.output.some((item) => item.type === 'message'));
  assert.ok(last.response.usage.output_tokens_details.reasoning_tokens <= 20 + tag_tokens_max);
});
