// Answers that must match a schema, a pattern or a grammar: the official OpenAI client against the running server. Every
// answer that is not cut parses, whatever the model prefers; every bad schema is a 400 that names the field.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { noOracle, serve, serveTiny } from './support.mjs';

const servers = [];
const clients = [];  // of the demo model, whose vocabulary has an end of text, and of the tiny one, whose has none

before(async () => {
  servers.push(await serve('--device', 'cpu', '--set', 'drain.grace_ms=0', '--set', 'limits.grammar_bytes_max=20000'));
  if (!noOracle) servers.push(await serveTiny('--set', 'drain.grace_ms=0'));
  for (const server of servers)
    clients.push(new OpenAI({ apiKey: 'any', baseURL: `${server.url}/v1`, maxRetries: 0 }));
});
after(async () => {
  for (const server of servers) assert.equal((await server.stop()).code, 0);
});

const person = {
  type: 'object',
  properties: {
    name: { type: 'string', maxLength: 12 },
    age: { type: 'integer', minimum: 0, maximum: 150 },
    tags: { type: 'array', items: { enum: ['red', 'green', 'blue'] }, maxItems: 2 },
  },
  required: ['name', 'age', 'tags'],
  additionalProperties: false,
};
const schema = { type: 'json_schema', json_schema: { name: 'person', strict: true, schema: person } };
const messages = [{ role: 'user', content: 'Who is there?' }];
const lively = { model: '', messages, max_tokens: 400, temperature: 1.2, top_p: 1, top_k: 0 };

function isPerson(text) {
  const value = JSON.parse(text);
  assert.deepEqual(Object.keys(value).sort(), ['age', 'name', 'tags']);
  assert.ok([...value.name].length <= 12 && Number.isInteger(value.age) && value.age >= 0 && value.age <= 150);
  assert.ok(value.tags.length <= 2 && value.tags.every((tag) => ['red', 'green', 'blue'].includes(tag)));
}

test('chat: whole and streamed answers match the schema', async () => {
  for (const client of clients)
    for (let seed = 0; seed < 6; ++seed) {
      const request = { ...lively, response_format: schema, seed, reasoning_effort: 'none' };
      const whole = (await client.chat.completions.create(request)).choices[0];
      assert.equal(whole.finish_reason, 'stop');
      isPerson(whole.message.content);
      let text = '';
      let finish;
      for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
        text += chunk.choices[0].delta.content ?? '';
        finish = chunk.choices[0].finish_reason ?? finish;
      }
      assert.equal(text, whole.message.content);
      assert.equal(finish, 'stop');
    }
});

test('bnf_schema: answers follow the rules and end when they are complete', async () => {
  const rules = `(* a list *) start ::= '[' items ']'; items ::= items ', ' item | item; item ::= #'[a-c]{2}' | "x" digit+ ';'; digit ::= '0' | '1';`;
  for (const client of clients)
    for (const extra of [{}, { n: 2 }]) {
      const { choices } = await client.chat.completions.create({ ...lively, ...extra, seed: 5, reasoning_effort: 'none', bnf_schema: rules });
      for (const { message, finish_reason } of choices)
        if (finish_reason === 'stop') assert.match(message.content, /^\[([a-c]{2}|x[01]+;)(, ([a-c]{2}|x[01]+;))*\]$/);
        else assert.equal(finish_reason, 'length');
    }
  const { body } = await servers[0].post('/api/oai/chat/completions', { messages, max_tokens: 40, bnf_schema: "start ::= 'yes' {'!'};" });
  assert.match(body.choices[0].message.content, /^yes!*$/);
  assert.equal(body.choices[0].finish_reason, 'stop');  // as soon as it can
});

test('a text that begins with newlines is delivered as it is', async () => {
  const choice = ['\n\nyes'];
  for (const client of clients)
    for (const reasoning_effort of ['none', 'low']) {
      const request = { ...lively, seed: 3, reasoning_effort, guided_choice: choice, max_reasoning_tokens: 8 };
      const whole = await client.chat.completions.create(request);
      assert.equal(whole.choices[0].message.content, '\n\nyes');
      assert.equal(whole.choices[0].finish_reason, 'stop');
      let text = '';
      for await (const chunk of await client.chat.completions.create({ ...request, stream: true }))
        text += chunk.choices[0].delta.content ?? '';
      assert.equal(text, '\n\nyes');
      const response = { model: '', input: 'Who is there?', reasoning: { effort: reasoning_effort, max_tokens: 8 }, guided_choice: choice };
      assert.equal((await client.responses.create(response)).output_text, '\n\nyes');
      text = '';
      for await (const event of await client.responses.create({ ...response, stream: true }))
        if (event.type === 'response.output_text.delta') text += event.delta;
      assert.equal(text, '\n\nyes');
    }
});

test('a schema that is not strict is enforced where it can be', async () => {
  const loose = { type: 'object', properties: { pattern: { type: 'string', pattern: '(a)\\1' } } };
  for (const client of clients) {
    const ask = async (fields) =>
      (await client.chat.completions.create({ ...lively, seed: 2, reasoning_effort: 'none', response_format: { type: 'json_schema', json_schema: { name: 'x', ...fields } } })).choices[0];
    const kept = await ask({ schema: person, strict: false });
    assert.equal(kept.finish_reason, 'stop');
    isPerson(kept.message.content);
    const free = await ask({ schema: loose, strict: false });
    if (free.finish_reason === 'stop') JSON.parse(free.message.content);
    for (const strict of [true, undefined])
      await assert.rejects(ask({ schema: loose, strict }), (e) => e.status === 400 && e.param === 'response_format.json_schema.schema');
    const format = { type: 'json_schema', name: 'x', schema: loose, strict: false };
    const request = { model: '', input: 'Who is there?', max_output_tokens: 50, reasoning: { effort: 'none' } };
    const response = await client.responses.create({ ...request, text: { format } });
    assert.deepEqual(response.text.format, format);
    await assert.rejects(client.responses.create({ ...request, text: { format: { ...format, strict: true } } }),
      (e) => e.status === 400 && e.param === 'text.format.schema');
  }
});

test('answers say what of a schema is not enforced', async () => {
  const [client] = clients;
  const odd = { type: 'object', not: { uniqueItems: true }, title: 'Odd' };
  const format = { type: 'json_schema', name: 'odd', strict: false, schema: odd };
  const chat = { ...lively, max_tokens: 8, response_format: { type: 'json_schema', json_schema: format } };
  const reason = /^the schema is not enforced: \/not\/uniqueItems: /;

  assert.match((await client.chat.completions.create(chat)).metadata.constraint_notes, reason);
  const events = [];
  for await (const event of await client.chat.completions.create({ ...chat, stream: true })) events.push(event);
  const last = events.find((event) => event.choices[0]?.finish_reason);
  assert.match(last.metadata.constraint_notes, reason);
  assert.equal(events.filter((event) => event.metadata).length, 1);

  const request = { model: '', input: 'Hello', max_output_tokens: 16, metadata: { mine: 'kept' }, text: { format } };
  for (const background of [false, true]) {
    let response = await client.responses.create({ ...request, background });
    while (['queued', 'in_progress'].includes(response.status)) response = await client.responses.retrieve(response.id);
    for (const { metadata } of [response, await client.responses.retrieve(response.id)]) {
      assert.deepEqual(Object.keys(metadata), ['mine', 'constraint_notes']);
      assert.match(metadata.constraint_notes, reason);
    }
  }

  const unknown = { type: 'object', properties: { a: { type: 'string', format: 'moon-phase' } } };
  const partly = await client.completions.create({ model: '', prompt: 'x', max_tokens: 4, guided_json: unknown });
  assert.equal(partly.metadata.constraint_notes, '/properties/a/format: the format moon-phase is not known and not enforced');
  assert.equal((await client.chat.completions.create({ ...chat, response_format: schema })).metadata, undefined);
});

test('chat: a client helper parses the answer', async () => {
  const parsed = await clients[0].chat.completions.parse({ ...lively, seed: 1, response_format: schema });
  assert.ok(Number.isInteger(parsed.choices[0].message.parsed.age));
});

test('chat: an answer after thoughts matches, too', async () => {
  // A model that thinks for long is cut before its answer begins.
  const request = { ...lively, response_format: schema, reasoning_effort: 'medium', max_tokens: 1500 };
  let answered = 0;
  for (let seed = 0; seed < 4; ++seed) {
    const { finish_reason, message } = (await clients[0].chat.completions.create({ ...request, seed })).choices[0];
    if (finish_reason === 'length') continue;
    isPerson(message.content);
    ++answered;
  }
  assert.ok(answered > 0);
});

test('chat: greedy rows with and without a schema in one request each', async () => {
  const greedy = { ...lively, temperature: 0, max_tokens: 60 };
  for (const client of clients) {
    const alone = await client.chat.completions.create(greedy);
    const bound = { ...greedy, max_tokens: 400, response_format: schema };
    const [a, b, c] = await Promise.all([greedy, bound, { ...bound, n: 3, temperature: 1 }].map((r) => client.chat.completions.create(r)));
    assert.equal(a.choices[0].message.content, alone.choices[0].message.content);
    for (const choice of [...b.choices, ...c.choices]) {
      assert.equal(choice.finish_reason, 'stop');
      isPerson(choice.message.content);
    }
  }
});

test('chat: JSON mode, and a cut answer says so', async () => {
  for (const client of clients) {
    const request = { ...lively, response_format: { type: 'json_object' } };
    let whole = 0;
    for (let seed = 0; seed < 8; ++seed) {
      const { finish_reason, message } = (await client.chat.completions.create({ ...request, seed })).choices[0];
      assert.ok(message.content.trimStart().startsWith('{'));
      if (finish_reason !== 'stop') continue;
      assert.equal(typeof JSON.parse(message.content), 'object');
      ++whole;
    }
    assert.ok(whole > 0);
    const cut = (await client.chat.completions.create({ ...request, response_format: schema, max_tokens: 3 })).choices[0];
    assert.equal(cut.finish_reason, 'length');
  }
});

test('chat: log-probabilities are of the allowed tokens', async () => {
  const request = { ...lively, temperature: 0, logprobs: true, top_logprobs: 5, guided_choice: ['yes', 'no'] };
  const { message, logprobs } = (await clients[0].chat.completions.create(request)).choices[0];
  assert.ok(['yes', 'no'].includes(message.content));
  for (const { logprob, top_logprobs } of logprobs.content) {
    assert.ok(top_logprobs.length >= 1);
    assert.equal(top_logprobs[0].logprob, logprob);
    const sum = top_logprobs.reduce((s, t) => s + Math.exp(t.logprob), 0);
    assert.ok(sum > (top_logprobs.length < 5 ? 0.999 : 0) && sum < 1.001, String(sum));
  }
});

// JSON may spell each character of a string as an escape.
const spelling_of_a_or_b = /^\s*"(a|b|\\u006[12])"\s*$/;
const rules = 'root ::= "[" item ("," item){0,3} "]"\nitem ::= [0-9]{1,2}';

test('every spelling of a constraint', async () => {
  const spellings = [
    [{ guided_regex: '[ab]{3}-(x|y)' }, /^[ab]{3}-(x|y)$/],
    [{ regex: '[ab]{3}' }, /^[ab]{3}$/],
    [{ structured_outputs: { regex: '[0-9]{4}' } }, /^[0-9]{4}$/],
    [{ response_format: { type: 'regex', pattern: '[ab]{3}' } }, /^[ab]{3}$/],
    [{ guided_choice: ['left', 'right'] }, /^(left|right)$/],
    [{ structured_outputs: { choice: ['up', 'down'] } }, /^(up|down)$/],
    [{ grammar: rules }, /^\[\d{1,2}(,\d{1,2}){0,3}\]$/],
    [{ guided_grammar: rules }, /^\[\d{1,2}(,\d{1,2}){0,3}\]$/],
    [{ ebnf: rules }, /^\[\d{1,2}(,\d{1,2}){0,3}\]$/],
    [{ response_format: { type: 'grammar', grammar: rules } }, /^\[\d{1,2}(,\d{1,2}){0,3}\]$/],
    [{ guided_json: { enum: ['a', 'b'] } }, spelling_of_a_or_b],
    [{ json_schema: { enum: ['a', 'b'] } }, spelling_of_a_or_b],
    [{ guided_json: '{"const": 7}' }, /^\s*7\s*$/],
    [{ format: { type: 'boolean' } }, /^\s*(true|false)\s*$/],
    [{ response_format: { type: 'json_object', schema: { const: null } } }, /^\s*null\s*$/],
  ];
  for (const client of clients)
    for (const [fields, pattern] of spellings) {
      const chat = (await client.chat.completions.create({ ...lively, ...fields })).choices[0];
      assert.match(chat.message.content, pattern, JSON.stringify(fields));
      assert.equal(chat.finish_reason, 'stop');
      const raw = { model: '', prompt: 'User: x\n\nAssistant:', max_tokens: 300, ...fields };
      const text = (await client.completions.create(raw)).choices[0];
      assert.match(text.text, pattern, JSON.stringify(fields));
      assert.equal(text.finish_reason, 'stop');
    }
});

test('native batches: every answer matches', async () => {
  const { status, body } = await servers[0].post('/v2/chat/completions', { contents: ['User: a\n\nAssistant:', 'b'], regex: '[ab]{4}', max_tokens: 50 });
  assert.equal(status, 200);
  for (const { message } of body.choices) assert.match(message.content, /^[ab]{4}$/);
});

test('responses: text.format, whole and streamed', async () => {
  const format = { type: 'json_schema', name: 'person', strict: true, schema: person };
  for (const client of clients) {
    const request = { model: '', input: 'Who is there?', max_output_tokens: 500, text: { format } };
    const whole = await client.responses.create(request);
    assert.equal(whole.status, 'completed');
    assert.deepEqual(whole.text.format, format);
    isPerson(whole.output_text);
    let text = '';
    let last;
    for await (const event of await client.responses.create({ ...request, stream: true })) {
      if (event.type === 'response.output_text.delta') text += event.delta;
      last = event;
    }
    assert.equal(last.type, 'response.completed');
    assert.equal(text, last.response.output_text ?? last.response.output.at(-1).content[0].text);
    isPerson(text);
    const object = await client.responses.create({ ...request, text: { format: { type: 'json_object' } } });
    if (object.status === 'completed') JSON.parse(object.output_text);
    else assert.match(object.output_text, /^\s*(\{|$)/);
    const next = await client.responses.create({ ...request, input: 'And now?', previous_response_id: whole.id });
    isPerson(next.output_text);
  }
});

test('sessions: turns with a schema, and one without after them', async () => {
  const turn = (fields) => servers[0].post('/v1/chat/completions', { messages, session_id: 'structured', max_tokens: 300, ...fields });
  for (let i = 0; i < 2; ++i) {
    const { status, body } = await turn({ response_format: schema });
    assert.equal(status, 200, JSON.stringify(body));
    isPerson(body.choices[0].message.content);
  }
  assert.equal((await turn({ max_tokens: 10 })).status, 200);
});

test('chat: items differ where a schema says so', async () => {
  const items = { type: 'array', items: { enum: ['red', 'green', 'blue', 1, 12, null] }, uniqueItems: true, minItems: 4 };
  const wanted = { type: 'json_schema', json_schema: { name: 'x', strict: true, schema: items } };
  for (const client of clients)
    for (let seed = 0; seed < 6; ++seed) {
      const [{ message, finish_reason }] = (await client.chat.completions.create({ ...lively, seed, response_format: wanted })).choices;
      assert.equal(finish_reason, 'stop');
      const values = JSON.parse(message.content);
      assert.ok(values.length >= 4 && new Set(values).size === values.length, message.content);
    }
});

test('bad schemas, patterns and grammars are refused by name', async () => {
  const deep = (n) => (n === 0 ? {} : { properties: { a: deep(n - 1) } });
  const wrap = (s) => ({ response_format: { type: 'json_schema', json_schema: { name: 'x', schema: s } } });
  const field = 'response_format.json_schema.schema';
  const rows = [
    [wrap({ type: 'nonsense' }), field],
    [wrap({ $ref: '#/$defs/missing' }), field],
    [wrap({ type: 'string', pattern: '(a)\\1' }), field],
    [wrap({ type: 'string', pattern: '(' }), field],
    [wrap({ type: 'string', pattern: '(a)\\1' }), field],
    [wrap({ type: 'object', required: ['a'], properties: { a: false } }), field],
    [wrap({ enum: Array.from({ length: 5000 }, (_, i) => `value ${i}`) }), field],  // above grammar_bytes_max
    [wrap({ not: {} }), field],
    [{ guided_regex: '(' }, 'guided_regex'],
    [{ guided_regex: '(((((a{1,1000}){1,1000}){1,1000}){1,1000}){1,1000})' }, 'guided_regex'],
    [{ guided_regex: '[^\\s\\S]' }, 'guided_regex'],
    [{ grammar: 'root ::= missing' }, 'grammar'],
    [{ grammar: 'root ::= root "a"' }, 'grammar'],
    [{ grammar: 'other ::= "a"' }, 'grammar'],
    [{ grammar: '(((' }, 'grammar'],
    [{ guided_json: '{"type":' }, 'guided_json'],
    [{ guided_json: { type: 'number', multipleOf: 0.0001234567 } }, 'guided_json'],
    [{ response_format: { type: 'xml' } }, 'response_format.type'],
    [{ guided_choice: ['a'], regex: 'a' }, 'guided_choice'],
    [{ bnf_schema: 'start::=x;' }, 'bnf_schema'],
    [{ bnf_schema: "start ::= 'a'" }, 'bnf_schema'],
    [{ bnf_schema: "start ::= #e'a';" }, 'bnf_schema'],
    [{ bnf_schema: "start ::= #'(';" }, 'bnf_schema'],
    [{ bnf_schema: ['a'] }, 'bnf_schema'],
    [{ bnf_schema: "start ::= 'a';", grammar: 'root ::= "a"' }, 'bnf_schema'],
  ];
  for (const [fields, param] of rows)
    for (const stream of [false, true]) {
      const { status, body } = await servers[0].post('/v1/chat/completions', { messages, max_tokens: 5, stream, ...fields });
      assert.equal(status, 400, JSON.stringify([fields, body]).slice(0, 400));
      assert.equal(body.error.param, param, body.error.message);
      assert.ok(body.error.message.length < 600);
    }
  assert.equal((await servers[0].post('/v1/chat/completions', { messages, ...wrap(deep(70)) })).status, 400);  // json_depth_max
  const format = { type: 'json_schema', name: 'x', schema: { type: 'string', pattern: '(a)\\1' } };
  const refused = await servers[0].post('/v1/responses', { input: 'x', text: { format } });
  assert.equal(refused.status, 400);
  assert.equal(refused.body.error.param, 'text.format.schema');
  const { status } = await servers[0].post('/v1/chat/completions', { messages, max_tokens: 5 });
  assert.equal(status, 200);
});

test('other requests run while grammars compile', async () => {
  const heavy = (i) => ({ messages, max_tokens: 1, guided_regex: `(a|b)*a(a|b){${10 + (i % 4)}}(c|d){1,${60 + i}}` });
  const slow = Array.from({ length: 6 }, (_, i) => servers[0].post('/v1/chat/completions', heavy(i)));
  assert.equal((await servers[0].get('/healthz')).status, 200);
  for (const { status } of await Promise.all(slow)) assert.ok(status === 200 || status === 400);
});
