// Tools with the official OpenAI client against the running server: chosen calls always parse and match their schema,
// whole and streamed, on both APIs, and a conversation continues after the result.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { noOracle, serve, serveTiny } from './support.mjs';

const servers = [];
const clients = [];

before(async () => {
  servers.push(await serve('--device', 'cpu', '--set', 'drain.grace_ms=0'));
  if (!noOracle) servers.push(await serveTiny('--set', 'drain.grace_ms=0'));
  for (const server of servers)
    clients.push(new OpenAI({ apiKey: 'any', baseURL: `${server.url}/v1`, maxRetries: 0 }));
});
after(async () => {
  for (const server of servers) assert.equal((await server.stop()).code, 0);
});

const add = {
  name: 'add',
  description: 'Adds two numbers.',
  parameters: {
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'object',
    properties: { a: { $ref: '#/$defs/small' }, b: { $ref: '#/$defs/small' } },
    required: ['a', 'b'],
    additionalProperties: false,
    $defs: { small: { type: 'integer', minimum: 0, maximum: 99 } },
  },
};
const now = { name: 'now', parameters: { type: 'object', properties: { zone: { enum: ['utc', 'local'] } }, required: ['zone'], additionalProperties: false } };
const tools = [add, now].map((f) => ({ type: 'function', function: f }));
const messages = [{ role: 'user', content: 'What is 2 + 3?' }];
const base = { model: '', messages, tools, max_tokens: 600, temperature: 1 };

function isCall({ name, arguments: text }) {
  const value = JSON.parse(text);
  if (name === 'add') {
    assert.deepEqual(Object.keys(value).sort(), ['a', 'b']);
    for (const n of [value.a, value.b]) assert.ok(Number.isInteger(n) && n >= 0 && n <= 99);
  } else {
    assert.equal(name, 'now');
    assert.ok(['utc', 'local'].includes(value.zone));
  }
}

async function streamed(client, request) {
  const calls = [];
  let content = '';
  let finish;
  let pieces = 0;
  for await (const { choices: [choice] } of await client.chat.completions.create({ ...request, stream: true })) {
    content += choice.delta.content ?? '';
    finish = choice.finish_reason ?? finish;
    for (const { index, id, function: f } of choice.delta.tool_calls ?? []) {
      calls[index] ??= { id, name: f.name, arguments: '' };
      calls[index].arguments += f.arguments ?? '';
      pieces += f.arguments ? 1 : 0;
    }
  }
  return { calls, content, finish, pieces };
}

test('chat: a required call parses and matches, whole and streamed', async () => {
  for (const client of clients)
    for (let seed = 0; seed < 5; ++seed)
      for (const tool_choice of ['required', { type: 'function', function: { name: 'now' } }]) {
        const request = { ...base, tool_choice, seed, parallel_tool_calls: false };
        const { message, finish_reason } = (await client.chat.completions.create(request)).choices[0];
        assert.equal(finish_reason, 'tool_calls');
        assert.equal(message.content, null);
        assert.equal(message.tool_calls.length, 1);
        assert.match(message.tool_calls[0].id, /^call_/);
        isCall(message.tool_calls[0].function);
        if (tool_choice !== 'required') assert.equal(message.tool_calls[0].function.name, 'now');
        const stream = await streamed(client, request);
        assert.equal(stream.finish, 'tool_calls');
        assert.equal(stream.content, '');
        assert.equal(stream.calls[0].name, message.tool_calls[0].function.name);
        assert.equal(stream.calls[0].arguments, message.tool_calls[0].function.arguments);
        assert.ok(stream.pieces > 1, 'arguments come as the model writes them');
      }
});

const write = {
  name: 'write',
  parameters: { type: 'object', properties: { text: { type: 'string', minLength: 1000, maxLength: 1200 } }, required: ['text'], additionalProperties: false },
};

test('chat: a call that is cut keeps the part of its arguments that has come', async () => {
  for (const client of clients.slice(0, 1)) {  // the other model may write any white space before the arguments
    const request = { ...base, tools: [{ type: 'function', function: write }], tool_choice: 'required', parallel_tool_calls: false, seed: 1 };
    const limited = { ...request, max_tokens: 120 };
    const { message, finish_reason } = (await client.chat.completions.create(limited)).choices[0];
    assert.equal(finish_reason, 'length');
    const [{ function: made }] = message.tool_calls;
    assert.equal(made.name, 'write');
    assert.throws(() => JSON.parse(made.arguments));
    const stream = await streamed(client, limited);
    assert.equal(stream.finish, 'length');
    assert.equal(stream.calls[0].arguments, made.arguments);
    const whole = (await client.chat.completions.create({ ...request, max_tokens: 2000 })).choices[0].message.tool_calls[0].function;
    assert.ok(whole.arguments.startsWith(made.arguments), 'the beginning of the whole call');

    const stopped = await streamed(client, { ...request, stop: ['text'] });
    assert.equal(stopped.finish, 'stop');
    assert.equal(stopped.calls[0].arguments, '{"');
    // A helper of the client that puts chunks together, and raises an error for what is cut.
    const helper = client.chat.completions.stream({ ...request, max_tokens: 2000 });
    const deltas = [];
    helper.on('tool_calls.function.arguments.delta', ({ arguments_delta: delta }) => deltas.push(delta));
    const done = (await helper.finalChatCompletion()).choices[0].message.tool_calls[0].function;
    assert.equal(deltas.join(''), done.arguments);
    assert.equal(done.arguments, whole.arguments);
    const history = [...messages, message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: '' }];
    await assert.rejects(client.chat.completions.create({ ...base, messages: history }),
      (e) => e.status === 400 && e.param === 'messages[1].tool_calls[0].function.arguments');
  }
});

test('chat: a call that is cut continues in its session if its tools are sent again', async () => {
  let within = 0;
  for (let max_tokens = 8; max_tokens < 40; max_tokens += 2) {
    const fields = { ...base, session_id: `cut after ${max_tokens}`, tool_choice: 'required', parallel_tool_calls: false, seed: 3 };
    const chat = async (more) => (await servers[0].post('/v1/chat/completions', { ...fields, ...more })).body.choices[0];
    const cut = await chat({ max_tokens });
    if (cut.finish_reason !== 'length') break;
    const begun = cut.message.tool_calls?.[0].function.arguments;
    if (begun?.endsWith('}')) continue;
    const rest = await chat({ messages: undefined, continue: true });
    assert.equal(rest.finish_reason, 'tool_calls', JSON.stringify([cut, rest]));
    const call = rest.message.tool_calls[0].function;
    within += begun ? 1 : 0;
    isCall({ name: call.name, arguments: (begun ?? '') + call.arguments });
  }
  assert.ok(within > 0);
});

test('chat: several calls, several answers', async () => {
  for (const client of clients) {
    const { choices } = await client.chat.completions.create({ ...base, tool_choice: 'required', n: 4, max_tokens: 2000 });
    for (const { message, finish_reason } of choices) {
      if (finish_reason === 'length') continue;
      assert.equal(finish_reason, 'tool_calls');
      assert.ok(message.tool_calls.length >= 1);
      for (const call of message.tool_calls) isCall(call.function);
    }
    const ids = choices.flatMap(({ message }) => (message.tool_calls ?? []).map((call) => call.id));
    assert.equal(new Set(ids).size, ids.length);
  }
});

test('chat: with the choice auto, text and calls are whole', async () => {
  for (const client of clients)
    for (let seed = 0; seed < 3; ++seed) {
      const request = { ...base, seed, max_tokens: 100 };
      const { message, finish_reason } = (await client.chat.completions.create(request)).choices[0];
      assert.equal(finish_reason === 'tool_calls', message.tool_calls !== undefined);
      for (const call of message.tool_calls ?? []) isCall(call.function);
      const stream = await streamed(client, request);
      assert.equal(stream.content, message.content ?? '');
    }
});

test('chat: none and no tools are harmless', async () => {
  for (const client of clients) {
    const greedy = { ...base, temperature: 0, max_tokens: 20 };
    const plain = await client.chat.completions.create({ ...greedy, tools: undefined });
    const none = await client.chat.completions.create({ ...greedy, tool_choice: 'none' });
    assert.equal(none.choices[0].message.content, plain.choices[0].message.content);
    assert.equal(none.choices[0].message.tool_calls, undefined);
    const others = await client.chat.completions.create({ ...greedy, tools: [{ type: 'web_search' }], tool_choice: 'none' });
    assert.equal(others.choices[0].message.content, plain.choices[0].message.content);
  }
});

test('chat: the conversation continues after the result', async () => {
  for (const client of clients) {
    const first = (await client.chat.completions.create({ ...base, tool_choice: 'required', parallel_tool_calls: false })).choices[0].message;
    const history = [...messages, first, { role: 'tool', tool_call_id: first.tool_calls[0].id, content: '{"sum":5}' }];
    const { message } = (await client.chat.completions.create({ ...base, messages: history, tool_choice: 'none', max_tokens: 20 })).choices[0];
    assert.ok(typeof message.content === 'string');
    const runner = client.chat.completions.runTools({
      ...base, parallel_tool_calls: false, max_tokens: 300,
      alpha_presence: 1, alpha_frequency: 0.1, // the tiny model writes digits without end otherwise
      tool_choice: { type: 'function', function: { name: 'add' } },
      tools: [{ type: 'function', function: { ...add, function: ({ a, b }) => String(a + b), parse: JSON.parse } }],
    }, { maxChatCompletions: 2 });
    const results = [];
    runner.on('functionToolCallResult', (text) => results.push(text));
    await runner.done().catch(() => {});
    assert.ok(results.length >= 1 && results.every((text) => Number.isInteger(Number(text))), String(results));
  }
});

test('chat: a session keeps turns with calls and knows them again', async () => {
  const turn = (fields) => servers[0].post('/v1/chat/completions', { ...base, session_id: 'tools', parallel_tool_calls: false, ...fields });
  const { body } = await turn({ tool_choice: 'required' });
  const first = body.choices[0].message;
  isCall(first.tool_calls[0].function);
  const history = [...messages, first, { role: 'tool', tool_call_id: first.tool_calls[0].id, content: '5' }];
  const second = await turn({ messages: history, tool_choice: 'required' });
  assert.equal(second.status, 200, JSON.stringify(second.body));
  assert.equal(second.body.session.version, 2);
  assert.ok(second.body.usage.prompt_tokens_details.cached_tokens > 0);
  isCall(second.body.choices[0].message.tool_calls[0].function);
});

test('chat: a fork and an earlier version of a session go on after a call', async () => {
  const turn = (id, fields) => servers[0].post('/v1/chat/completions',
    { ...base, session_id: id, parallel_tool_calls: false, temperature: 0, tool_choice: 'required', ...fields });
  const first = (await turn('trunk', {})).body.choices[0].message;
  const result = (content) => [...messages, first, { role: 'tool', tool_call_id: first.tool_calls[0].id, content }];
  const five = await turn('trunk', { messages: result('5') });
  assert.equal((await servers[0].post('/v1/sessions/trunk/fork', { to: 'branch', version: 1 })).status, 200);
  assert.equal((await servers[0].post('/v1/sessions/trunk/rollback', { version: 1 })).body.head, 1);
  for (const id of ['branch', 'trunk']) {
    const again = await turn(id, { messages: result('5') });
    assert.equal(again.status, 200, JSON.stringify(again.body));
    assert.ok(again.body.usage.prompt_tokens_details.cached_tokens > 0, 'the call and its question are known');
    const calls = (of) => of.body.choices[0].message.tool_calls.map((c) => c.function);
    assert.deepEqual(calls(again), calls(five));
    const { body } = await servers[0].get(`/v1/sessions/${id}?transcript=true`);
    assert.deepEqual(body.transcript.map((v) => v.messages.at(-1).role), ['user', 'tool']);
  }
});

test('chat: a session continues with results of tools alone', async () => {
  const turn = (id, fields) => servers[0].post('/v1/chat/completions',
    { ...base, session_id: id, temperature: 0, tool_choice: 'required', ...fields });
  const first = (await turn('results', {})).body.choices[0].message;
  const result = (content) => ({ role: 'tool', tool_call_id: first.tool_calls[0].id, content });
  const fork = async (id) => assert.equal((await servers[0].post('/v1/sessions/results/fork', { to: id, version: 1 })).status, 200);
  const calls = (of) => of.body.choices[0].message.tool_calls.map((c) => c.function);
  for (const results of [[result('5')], [result('5'), { role: 'tool', content: '6' }]]) {
    const n = results.length;
    await fork(`whole ${n}`);
    const whole = await turn(`whole ${n}`, { messages: [...messages, first, ...results] });
    assert.equal(whole.headers.get('x-session-state'), 'continued');
    for (const [name, sent] of [['alone', results], ['pair', [first, ...results]]]) {
      const id = `${name} ${n}`;
      await fork(id);
      const next = await turn(id, { messages: sent });
      assert.equal(next.status, 200, JSON.stringify(next.body));
      assert.equal(next.headers.get('x-session-state'), 'continued', id);
      assert.deepEqual(calls(next), calls(whole), id);
      assert.equal(next.body.usage.prompt_tokens, whole.body.usage.prompt_tokens - whole.body.usage.prompt_tokens_details.cached_tokens);
      const { body } = await servers[0].get(`/v1/sessions/${id.replace(' ', '%20')}?tree=true`);
      assert.deepEqual(body.tree.map((v) => [v.version, v.parent]), [[1, 0], [2, 1]]);
      const { transcript } = (await servers[0].get(`/v1/sessions/${id.replace(' ', '%20')}?transcript=true`)).body;
      assert.deepEqual(transcript.at(-1).messages, results.map(({ content }) => ({ role: 'tool', content })));
      const answered = [...messages, first, ...results, next.body.choices[0].message, { role: 'user', content: 'And?' }];
      const known = await turn(id, { messages: answered });
      assert.equal(known.headers.get('x-session-state'), 'continued');
      assert.equal(known.body.session.version, 3);
      const edited = structuredClone(first);
      edited.tool_calls[0].function.arguments = '{"a":1,"b":98}';
      const other = await turn(id, { messages: [edited, ...results] });
      assert.equal(other.headers.get('x-session-state'), 'rebuilt', 'the call is another one');
    }
  }
});

const flat = [add, now].map((f) => ({ type: 'function', ...f }));

test('responses: calls, whole and streamed, and their results', async () => {
  for (const client of clients) {
    const request = { model: '', input: 'What is 2 + 3?', tools: flat, tool_choice: 'required', parallel_tool_calls: false, max_output_tokens: 600 };
    const whole = await client.responses.create(request);
    assert.equal(whole.status, 'completed');
    const call = whole.output.find((item) => item.type === 'function_call');
    isCall(call);
    assert.equal(whole.output.some((item) => item.type === 'message'), false);
    assert.equal(whole.tool_choice, 'required');
    assert.equal(whole.tools.length, 2);

    const again = await client.responses.retrieve(whole.id);
    assert.deepEqual(again.output, whole.output);

    const next = await client.responses.create({
      model: '', previous_response_id: whole.id, max_output_tokens: 20,
      input: [{ type: 'function_call_output', call_id: call.call_id, output: '5' }],
    });
    assert.ok(['completed', 'incomplete'].includes(next.status));

    const types = [];
    let text = '';
    let last;
    for await (const event of await client.responses.create({ ...request, stream: true })) {
      types.push(event.type);
      if (event.type === 'response.function_call_arguments.delta') text += event.delta;
      last = event;
    }
    assert.equal(last.type, 'response.completed');
    const streamedCall = last.response.output.find((item) => item.type === 'function_call');
    assert.equal(text, streamedCall.arguments);
    isCall(streamedCall);
    assert.ok(types.includes('response.function_call_arguments.done'));
    assert.ok(types.filter((type) => type === 'response.function_call_arguments.delta').length > 1);

    const stateless = await client.responses.create({
      ...request, store: false,
      input: [{ role: 'user', content: 'What is 2 + 3?' }, { type: 'function_call', call_id: 'c', name: 'add', arguments: '{"a":2,"b":3}' },
        { type: 'function_call_output', call_id: 'c', output: '5' }],
    });
    isCall(stateless.output.find((item) => item.type === 'function_call'));
  }
});

test('responses: a call that is cut continues', async () => {
  for (const client of clients.slice(0, 1)) {
    const request = { model: '', input: 'What is 2 + 3?', tools: [{ type: 'function', ...write }], tool_choice: 'required', parallel_tool_calls: false, temperature: 1, seed: 1 };
    const events = [];
    for await (const event of await client.responses.create({ ...request, max_output_tokens: 120, stream: true })) events.push(event);
    const { response: cut } = events.at(-1);
    assert.equal(cut.status, 'incomplete');
    const [item] = cut.output;
    assert.deepEqual([item.type, item.status, item.name], ['function_call', 'incomplete', 'write']);
    const text = events.map((event) => (event.type === 'response.function_call_arguments.delta' ? event.delta : '')).join('');
    assert.equal(text, item.arguments);
    assert.equal(events.some((event) => event.type === 'response.function_call_arguments.done'), false);
    assert.equal(events.at(-2).type, 'response.output_item.done');
    assert.deepEqual((await client.responses.retrieve(cut.id)).output, cut.output);
    const told = [];
    for await (const event of await client.responses.retrieve(cut.id, { stream: true })) told.push(event);
    assert.deepEqual(told.slice(0, -1), events.slice(0, -1));

    const answer = await fetch(`${client.baseURL}/responses/${cut.id}/continue`,
      { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ max_output_tokens: 2000 }) });
    const more = await answer.text();
    const rest = more.split('\n').filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice(6)));
    const next = rest.filter((event) => event.sequence_number >= events.length);
    const { response: whole } = next.at(-1);
    assert.equal(whole.status, 'completed');
    assert.equal(whole.output.length, 1);
    assert.deepEqual([whole.output[0].id, whole.output[0].call_id, whole.output[0].status], [item.id, item.call_id, 'completed']);
    const added = next.map((event) => (event.type === 'response.function_call_arguments.delta' ? event.delta : '')).join('');
    assert.equal(item.arguments + added, whole.output[0].arguments);
    assert.ok(JSON.parse(whole.output[0].arguments).text.length >= 1000);
  }
});

test('responses: a call that is cut within a number keeps its digits and continues', async () => {
  const count = { type: 'function', name: 'count', parameters: { type: 'object', properties: { n: { type: 'integer', minimum: 1e15, maximum: 9e15 } }, required: ['n'], additionalProperties: false } };
  const request = { model: '', input: 'What is 2 + 3?', tools: [count], tool_choice: 'required', parallel_tool_calls: false, temperature: 1, seed: 1, stream: true };
  const written = (events) => events.map((event) => (event.type === 'response.function_call_arguments.delta' ? event.delta : '')).join('');
  const [client] = clients;
  let cuts = 0;
  for (let limit = 28; limit < 48 && cuts < 3; limit += 2) {
    const events = [];
    for await (const event of await client.responses.create({ ...request, max_output_tokens: limit })) events.push(event);
    const { response: cut } = events.at(-1);
    const [item] = cut.output;
    if (cut.status !== 'incomplete' || item.type !== 'function_call' || !/\d$/.test(item.arguments)) continue;
    ++cuts;
    assert.equal(written(events), item.arguments);
    assert.deepEqual((await client.responses.retrieve(cut.id)).output, cut.output);
    const answer = await fetch(`${client.baseURL}/responses/${cut.id}/continue`,
      { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ max_output_tokens: 600 }) });
    const told = (await answer.text()).split('\n').filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice(6)));
    const { response: whole } = told.at(-1);
    assert.equal(whole.status, 'completed');
    assert.ok(Number.isInteger(JSON.parse(whole.output[0].arguments).n));
    const next = told.filter((event) => event.sequence_number >= events.length);
    assert.equal(item.arguments + written(next), whole.output[0].arguments);
  }
  assert.ok(cuts > 0, 'some limit is within the number');
});

test('tools in the form of the official templates', async () => {
  const server = await serve('--device', 'cpu', '--set', 'drain.grace_ms=0', '--set', 'models.skein-demo.tool_template=headings');
  const client = new OpenAI({ apiKey: 'any', baseURL: `${server.url}/v1`, maxRetries: 0 });
  try {
    const shown = await server.post('/apply-template', { messages, tools });
    assert.match(shown.body.prompt, /^### System\n### `add`\n.*\n### User\nWhat is 2 \+ 3\?\n### Assistant\n<think/s);
    const request = { ...base, parallel_tool_calls: false, session_id: 'headed' };
    const first = (await client.chat.completions.create({ ...request, tool_choice: 'required' })).choices[0];
    assert.equal(first.finish_reason, 'tool_calls');
    assert.equal(first.message.content, null);
    isCall(first.message.tool_calls[0].function);
    const history = [...messages, first.message, { role: 'tool', tool_call_id: first.message.tool_calls[0].id, content: '{"sum":5}' }];
    const second = await client.chat.completions.create({ ...request, messages: history, max_tokens: 20 });
    assert.equal(second.session.version, 2);
    assert.ok(second.usage.prompt_tokens_details.cached_tokens > 0, 'the history is recognised');
    const third = await client.chat.completions.create({ ...request, messages: [...history, second.choices[0].message, messages[0]], tool_choice: 'required' });
    assert.equal(third.session.version, 3);
    assert.ok(third.usage.prompt_tokens_details.cached_tokens > second.usage.prompt_tokens_details.cached_tokens);
    isCall(third.choices[0].message.tool_calls[0].function);
    const stream = await streamed(client, { ...base, tool_choice: 'required', parallel_tool_calls: false });
    isCall(stream.calls[0]);

    const asked = { model: '', input: 'What is 2 + 3?', tools: flat, tool_choice: 'required', parallel_tool_calls: false, max_output_tokens: 600 };
    const response = await client.responses.create(asked);
    const call = response.output.find((item) => item.type === 'function_call');
    isCall(call);
    assert.deepEqual((await client.responses.retrieve(response.id)).output, response.output);
    const next = await client.responses.create({ ...asked, previous_response_id: response.id,
      input: [{ type: 'function_call_output', call_id: call.call_id, output: '5' }] });
    isCall(next.output.find((item) => item.type === 'function_call'));
  } finally {
    assert.equal((await server.stop()).code, 0);
  }
});

test('calls, or an answer of a schema', async () => {
  const name = { type: 'object', properties: { who: { enum: ['Anna', 'Ben <tool_call>'] } }, required: ['who'], additionalProperties: false };
  const wanted = { type: 'json_schema', json_schema: { name: 'who', strict: true, schema: { $ref: '#/definitions/who', definitions: { who: name } } } };
  const answered = [0, 0], temperature = 50;  // the model itself would always call
  const judge = (calls, content) => {
    ++answered[Number(calls.length > 0)];
    if (calls.length > 0) return calls.forEach(isCall);
    assert.ok(['Anna', 'Ben <tool_call>'].includes(JSON.parse(content).who), content);
  };
  for (const client of clients)
    for (let seed = 0; seed < 12; ++seed) {
      const request = { ...base, temperature, top_p: 1, top_k: 0, seed, parallel_tool_calls: false, response_format: wanted };
      const { message, finish_reason } = (await client.chat.completions.create(request)).choices[0];
      assert.ok(['stop', 'tool_calls'].includes(finish_reason));
      judge((message.tool_calls ?? []).map((call) => call.function), message.content);
      const stream = await streamed(client, request);
      assert.equal(stream.finish, finish_reason);
      assert.equal(stream.content, message.content ?? '');
      const required = (await client.chat.completions.create({ ...request, tool_choice: 'required' })).choices[0].message;
      required.tool_calls.forEach((call) => isCall(call.function));
    }
  const [client] = clients;
  const asked = { ...base, temperature, top_p: 1, top_k: 0, parallel_tool_calls: false, response_format: wanted };
  const ask = async (more) => (await client.chat.completions.create({ ...asked, ...more })).choices[0].message;
  let seed = 0;
  while (!(await ask({ seed })).content) assert.ok(++seed < 100, 'one answer is no call');
  const session = { seed, session_id: 'either' }, first = await ask(session);
  assert.ok(first.content, JSON.stringify(first));
  const second = await client.chat.completions.create({ ...asked, ...session, messages: [...messages, first, { role: 'user', content: 'Who is there?' }] });
  assert.equal(second.session.version, 2);
  assert.ok(second.usage.prompt_tokens_details.cached_tokens > 0, 'the history is recognised');
  const text = { format: { ...wanted.json_schema, type: 'json_schema' } };
  for (let seed = 0; seed < 4; ++seed) {
    const response = await client.responses.create({ model: '', input: 'Who is there?', tools: flat, parallel_tool_calls: false, text, seed, temperature, top_p: 1, max_output_tokens: 600 });
    assert.equal(response.status, 'completed');
    judge(response.output.filter((item) => item.type === 'function_call'), response.output_text);
    assert.deepEqual((await client.responses.retrieve(response.id)).output, response.output);
  }
  assert.ok(answered.every((count) => count > 0), String(answered));
});

test('a reference at the top of the parameters is enforced', async () => {
  const parameters = { $ref: '#/definitions/zone', definitions: { zone: now.parameters }, $schema: 'http://json-schema.org/draft-07/schema#' };
  for (const strict of [true, undefined])
    for (const client of clients) {
      const request = { ...base, tools: [{ type: 'function', function: { name: 'now', strict, parameters } }], tool_choice: 'required', parallel_tool_calls: false };
      for (const call of (await client.chat.completions.create(request)).choices[0].message.tool_calls) isCall(call.function);
    }
});

test('tools of other types are left out, and answers say so', async () => {
  const [client] = clients;
  const others = [{ type: 'web_search' }, ...tools, { type: 'custom', custom: { name: 'patch' } }];
  const note = 'tools[0] is left out: tools of the type web_search are not supported; tools[3] is left out: tools of the type custom are not supported';
  const request = { ...base, temperature: 0, max_tokens: 20 };
  const plain = await client.chat.completions.create(request);
  assert.equal(plain.metadata, undefined);
  const mixed = await client.chat.completions.create({ ...request, tools: others });
  assert.deepEqual(mixed.choices[0].message.content, plain.choices[0].message.content);
  assert.deepEqual(mixed.metadata, { tool_notes: note });
  const events = [];
  for await (const event of await client.chat.completions.create({ ...request, tools: others, stream: true })) events.push(event);
  assert.deepEqual(events.filter((event) => event.metadata).map((event) => [event.choices[0].finish_reason !== null, event.metadata]), [[true, { tool_notes: note }]]);
  const named = await client.chat.completions.create({ ...base, tools: others, tool_choice: { type: 'function', function: { name: 'now' } }, parallel_tool_calls: false });
  isCall(named.choices[0].message.tool_calls[0].function);
  assert.equal(named.metadata.tool_notes, note);
  for (const tool_choice of ['required', { type: 'web_search' }])
    await assert.rejects(client.chat.completions.create({ ...base, tools: others, tool_choice }), (e) => e.status === 400);

  const asked = { model: '', input: 'What is 2 + 3?', max_output_tokens: 16, metadata: { mine: 'kept' }, tools: [{ type: 'web_search' }, ...flat] };
  for (const background of [false, true]) {
    let response = await client.responses.create({ ...asked, background });
    while (['queued', 'in_progress'].includes(response.status)) response = await client.responses.retrieve(response.id);
    for (const { metadata } of [response, await client.responses.retrieve(response.id)])
      assert.deepEqual(metadata, { mine: 'kept', tool_notes: 'tools[0] is left out: tools of the type web_search are not supported' });
  }
});

test('responses: functions of a namespace', async () => {
  const spaces = [{ type: 'namespace', name: 'sums', description: 'Sums.', tools: [flat[0]] }, { type: 'namespace', name: 'clocks', tools: [flat[1]] }, flat[1]];
  const asked = { model: '', input: 'What is 2 + 3?', tools: spaces, parallel_tool_calls: false, max_output_tokens: 600, temperature: 1 };
  for (const client of clients)
    for (const [namespace, name] of [['sums', 'add'], ['clocks', 'now'], [undefined, 'now']]) {
      const request = { ...asked, tool_choice: { type: 'function', namespace, name }, seed: 4 };
      const response = await client.responses.create(request);
      const [call, ...more] = response.output;
      assert.deepEqual([call.type, call.namespace, call.name, more], ['function_call', namespace, name, []]);
      isCall(call);
      assert.deepEqual((await client.responses.retrieve(response.id)).output, response.output);
      const events = [];
      for await (const event of await client.responses.create({ ...request, stream: true })) events.push(event);
      const items = events.filter((event) => event.type.startsWith('response.output_item.')).map(({ item }) => [item.namespace, item.name]);
      assert.deepEqual(items, [[namespace, name], [namespace, name]]);
      assert.equal(events.find((event) => event.type === 'response.function_call_arguments.done').name, name);
      const result = { type: 'function_call_output', call_id: call.call_id, output: [{ type: 'input_text', text: '5' }] };
      const again = { ...asked, tool_choice: 'none', max_output_tokens: 8 };
      for (const history of [{ previous_response_id: response.id, input: [result] }, { input: [{ role: 'user', content: asked.input }, call, result] }])
        assert.ok((await client.responses.create({ ...again, ...history })).usage.input_tokens > 0);
    }
  await assert.rejects(clients[0].responses.create({ ...asked, tool_choice: { type: 'function', name: 'add' } }), (e) => e.status === 400 && e.param === 'tool_choice');
  const { status, body } = await servers[0].post('/v1/chat/completions', { ...base, tools: spaces.slice(0, 1) });
  assert.deepEqual([status, body.error.param], [400, 'tools[0].type']);
});

test('bad tools are refused by name', async () => {
  const rows = [
    [{ tools: [{ type: 'web_search' }] }, 'tools[0].type'],
    [{ tools: [{ type: 'function', function: { name: 'a b' } }] }, 'tools[0].function.name'],
    [{ tools: [{ type: 'function', function: { name: 'a', strict: true, parameters: { type: 'object', properties: { x: { type: 'string', pattern: '(a)\\1' } } } } }], tool_choice: 'required' }, 'tools[0].function.parameters'],
    [{ tools: [], tool_choice: 'required' }, 'tool_choice'],
    [{ tool_choice: { type: 'function', function: { name: 'missing' } } }, 'tool_choice'],
    [{ tools: [{ type: 'function', function: { name: 'a', parameters: { type: 'string' } } }] }, 'tools[0].function.parameters.type'],
    [{ regex: 'a' }, 'regex'],
  ];
  for (const [fields, param] of rows) {
    const { status, body } = await servers[0].post('/v1/chat/completions', { ...base, max_tokens: 5, ...fields });
    assert.equal(status, 400, JSON.stringify(fields));
    assert.equal(body.error.param, param, body.error.message);
  }
  // Not strict: what cannot be enforced is left free.
  for (const strict of [undefined, false]) {
    const loose = { name: 'a', strict, parameters: { type: 'object', properties: { x: { type: 'string', pattern: '(a)\\1' } } } };
    const { choices } = await clients[0].chat.completions.create({ ...base, tools: [{ type: 'function', function: loose }], tool_choice: 'required', parallel_tool_calls: false });
    if (choices[0].finish_reason === 'tool_calls') assert.equal(typeof JSON.parse(choices[0].message.tool_calls[0].function.arguments), 'object');
    const kept = { ...base, tools: tools.map(({ type, function: f }) => ({ type, function: { ...f, strict } })), tool_choice: 'required', parallel_tool_calls: false };
    isCall((await clients[0].chat.completions.create(kept)).choices[0].message.tool_calls[0].function);
  }
});

test('the schemas of tools and of the answer are judged one by one', async () => {
  const [server] = servers;
  const bad = { type: 'object', properties: { b: { type: 'string', pattern: '(a)\\1' } }, required: ['b'], additionalProperties: false };
  const old = { $schema: 'http://json-schema.org/draft-07/schema#', $id: 'https://example.org/s', type: 'object', properties: { t: { $ref: 'https://example.org/s#/definitions/t', maximum: 1 } }, required: ['t'], additionalProperties: false, definitions: { t: { type: 'integer', minimum: 5, maximum: 9 } } };
  const of = (...list) => list.map(([name, parameters, strict]) => ({ type: 'function', function: { name, parameters, strict } }));
  const request = { ...base, parallel_tool_calls: false, temperature: 50, top_p: 1, top_k: 0, max_tokens: 300 };
  const ask = (fields) => server.post('/v1/chat/completions', { ...request, ...fields });
  const format = (schema, strict) => ({ response_format: { type: 'json_schema', json_schema: { name: 'x', schema, strict } } });
  const note = 'tools[1].function.parameters: the schema is not enforced: /properties/b/pattern: ';

  // One that is not supported leaves the others as they are.
  const names = new Set();
  for (let seed = 0; seed < 8; ++seed) {
    const { status, body } = await ask({ tools: of(['now', now.parameters], ['bad', bad]), tool_choice: 'required', seed });
    assert.equal(status, 200, JSON.stringify(body));
    assert.ok(body.metadata.constraint_notes.startsWith(note), body.metadata.constraint_notes);
    if (body.choices[0].finish_reason !== 'tool_calls') continue;
    const { function: made } = body.choices[0].message.tool_calls[0];
    names.add(made.name);
    if (made.name === 'now') isCall(made);
  }
  assert.deepEqual([...names].sort(), ['bad', 'now'], 'both were called');
  for (let seed = 0; seed < 4; ++seed) {
    const { status, body } = await ask({ tools: of(['now', now.parameters]), ...format(bad, false), seed });
    assert.equal(status, 200, JSON.stringify(body));
    assert.ok(body.metadata.constraint_notes.startsWith('response_format.json_schema.schema: the schema is not enforced: /properties/b/pattern: '));
    if (body.choices[0].finish_reason === 'tool_calls') isCall(body.choices[0].message.tool_calls[0].function);
  }
  // What looks like a call is one, where the answer may be any JSON or any object.
  let calls = 0;
  for (const free of [format(bad, false), { response_format: { type: 'json_object' } }])
    for (let seed = 0; seed < 6; ++seed) {
      const { body } = await ask({ tools: of(['now', now.parameters]), ...free, temperature: 1.3, reasoning_effort: 'none', seed });
      assert.equal(body.error, undefined);
      if (body.choices[0].finish_reason !== 'tool_calls') continue;
      ++calls;
      isCall(body.choices[0].message.tool_calls[0].function);
    }
  assert.ok(calls > 0);
  // Each has the draft and the identifier that it names.
  for (const fields of [{ tools: of(['old', old, true], ['now', now.parameters]), tool_choice: { type: 'function', function: { name: 'old' } } },
    { tools: of(['now', now.parameters]), ...format(old, true) }]) {
    const { status, body } = await ask(fields);
    assert.equal(status, 200, JSON.stringify(body));
    const { finish_reason, message } = body.choices[0];
    if (fields.response_format && finish_reason === 'tool_calls') isCall(message.tool_calls[0].function);
    else if (finish_reason !== 'length') assert.ok(JSON.parse(message.tool_calls?.[0].function.arguments ?? message.content).t >= 5);
  }
  // An error names the schema, and the place in it.
  const wrong = { type: 'object', properties: { a: { type: 'objct' } } };
  const rows = [
    [{ tools: of(['now', now.parameters], ['add', add.parameters], ['bad', bad, true]) }, 'tools[2].function.parameters', '/properties/b/pattern: '],
    [{ tools: of(['now', now.parameters], ['bad', wrong]), tool_choice: { type: 'function', function: { name: 'bad' } } }, 'tools[1].function.parameters', '/properties/a/type: '],
    [{ ...format(bad, true) }, 'response_format.json_schema.schema', '/properties/b/pattern: '],
    [{ ...format(wrong) }, 'response_format.json_schema.schema', '/properties/a/type: '],
    [{ guided_json: '{' }, 'guided_json', ''],
    [{ guided_json: { type: 'integer', minimum: 3, maximum: 2 } }, 'guided_json', 'no value satisfies the schema'],
  ];
  for (const [fields, param, reason] of rows) {
    const { status, body } = await ask(fields);
    assert.deepEqual([status, body.error.param], [400, param], body.error.message);
    assert.ok(body.error.message.startsWith(`${param}: ${reason}`), body.error.message);
    if (!fields.tools) assert.deepEqual((await ask({ ...fields, tools: undefined })).body.error, body.error, 'as without tools');
  }
  const { body } = await server.post('/v1/responses', { input: 'Go.', tools: [flat[0], { type: 'function', name: 'bad', parameters: bad, strict: true }] });
  assert.equal(body.error.param, 'tools[1].parameters', body.error.message);
});
