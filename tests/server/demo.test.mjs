// The first minute of a user: without a model name the program serves the demo model, which talks, remembers, translates
// and fills in the middle; and the engine computes the same as its trainer.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { binary, root, serve } from './support.mjs';

const run = promisify(execFile);
const golden = JSON.parse(readFileSync(join(root, 'models/demo/golden.json'), 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'skein-demo-'));
let server;
let client;

before(async () => {
  server = await serve('--set', 'drain.grace_ms=0');
  client = new OpenAI({ apiKey: 'any', baseURL: `${server.url}/v1`, maxRetries: 0 });
});
after(async () => {
  rmSync(folder, { recursive: true });
  if (server) assert.equal((await server.stop()).code, 0);
});

const greedy = { model: 'skein-demo', temperature: 0, presence_penalty: 0, frequency_penalty: 0 };
const said = (role, content) => ({ role, content });

async function chat(messages, options = {}) {
  const { choices } = await client.chat.completions.create({ ...greedy, messages, ...options });
  assert.equal(choices[0].finish_reason, 'stop');
  return choices[0].message.content;
}

async function complete(prompt, options = {}) {
  const { choices } = await client.completions.create({ ...greedy, prompt, max_tokens: 64, ...options });
  assert.equal(choices[0].finish_reason, 'stop');
  return choices[0].text;
}

test('the engine agrees with the trainer', async () => {
  for (const [i, { prompt, tokens, argmax, last_logits }] of golden.cases.entries()) {
    const ids = join(folder, `ids-${i}`);
    const out = join(folder, `logits-${i}`);
    writeFileSync(ids, tokens.join(','));
    await run(binary, ['logits', '--model', join(root, 'models/demo/skein-demo.safetensors'), '--tokens-file', ids, '--out', out]);
    const bytes = readFileSync(out);
    const logits = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    const vocab = last_logits.length;
    assert.equal(logits.length, tokens.length * vocab);
    const row = (t) => logits.subarray(t * vocab, (t + 1) * vocab);
    const largest = Math.max(...last_logits.map(Math.abs));
    const error = last_logits.reduce((most, x, v) => Math.max(most, Math.abs(x - row(tokens.length - 1)[v])), 0) / largest;
    assert.ok(error < 1e-4, `${prompt}: off by ${error} of the largest logit`);
    // The trainer's choice may differ from ours only where two tokens are as good.
    argmax.forEach((token, t) => assert.ok(Math.max(...row(t)) - row(t)[token] < 2e-4 * largest, `${prompt}: position ${t}`));
  }
});

test('the vocabulary is the one it was trained with', async () => {
  for (const { prompt, tokens } of golden.cases)
    assert.deepEqual((await server.post('/tokenize', { content: prompt })).body.tokens, tokens);
});

test('it is the served model, and the tools use it too', async () => {
  assert.equal((await client.models.list()).data[0].id, 'skein-demo');
  assert.match((await run(binary, ['inspect'])).stdout, /^version +v?7$/m);
  const { stdout } = await run(binary, ['generate', '--prompt', 'User: What is 20 + 22?\n\nAssistant:', '--temperature', '0']);
  assert.match(stdout, /42/);
});

test('it streams an answer and ends it', async () => {
  const stream = await client.chat.completions.create({ model: 'skein-demo', messages: [said('user', 'What is Skein?')], stream: true });
  let text = '';
  let end;
  for await (const { choices } of stream) {
    text += choices[0]?.delta.content ?? '';
    end ??= choices[0]?.finish_reason ?? undefined;
  }
  assert.match(text, /RWKV/);
  assert.equal(end, 'stop');
});

test('it remembers over ten turns what it was told', async () => {
  const messages = [said('user', 'My name is Clara and my favourite colour is green.')];
  messages.push(said('assistant', await chat(messages)));
  for (let i = 0; i < 10; ++i) {
    messages.push(said('user', `What is ${31 + i} + ${20 + 3 * i}?`));
    const sum = await chat(messages);
    assert.match(sum, new RegExp(String(51 + 4 * i)));
    messages.push(said('assistant', sum));
  }
  assert.match(await chat([...messages, said('user', 'What is my name?')]), /Clara/);
  assert.match(await chat([...messages, said('user', 'What is my favourite colour?')]), /green/);
});

test('it thinks when asked to', async () => {
  const { choices } = await client.chat.completions.create({
    ...greedy, messages: [said('user', 'What is 48 + 37?')], reasoning_effort: 'high' });
  assert.match(choices[0].message.content, /85/);
  assert.ok(choices[0].message.reasoning_content.length > 0);
});

test('it translates and fills in the middle', async () => {
  assert.equal(await complete('English: Good evening.\n\nFrench:'), ' Bonsoir.');
  assert.match(await complete('English: Thank you.\n\nChinese:'), /谢谢/);
  const middle = await complete('Tom lives in Bern. It began to rain. ', { suffix: ' So Tom stayed dry.' });
  assert.match(middle, /^[A-Z].*\.$/);
});

test('editors of llama-server have what stands between two texts', async () => {
  const before = 'Tom lives in Bern. It began to rain. ';
  const after = ' So Tom stayed dry.';
  const body = { input_prefix: before.slice(0, 20), input_suffix: after, prompt: before.slice(20), n_predict: 64, temperature: 0, input_extra: [] };
  const whole = await server.post('/infill', body);
  assert.equal(whole.status, 200);
  const { content, ...rest } = whole.body;
  assert.equal(content, await complete(before, { suffix: after, max_tokens: 64 }));
  assert.equal(rest.stop, true);
  assert.equal(rest.stop_type, 'eos');
  assert.ok(rest.tokens_predicted > 0 && rest.tokens_evaluated > 20);
  const stream = await server.fetch('/infill', { method: 'POST', body: JSON.stringify({ ...body, stream: true }) });
  const events = (await stream.text()).split('\n\n').filter((e) => e !== '').map((e) => JSON.parse(e.replace(/^data: /, '')));
  assert.equal(events.map((e) => e.content).join(''), content);
  assert.deepEqual(events.map((e) => e.stop), events.map((_, i) => i === events.length - 1));
  assert.equal(events.at(-1).tokens_predicted, rest.tokens_predicted);
  const none = await server.post('/infill', { ...body, n_predict: 0 });
  assert.deepEqual([none.body.content, none.body.stop_type, none.body.tokens_predicted], ['', 'limit', 0]);
  const bad = await server.post('/infill', { input_prefix: 'a' });
  assert.deepEqual([bad.status, bad.body.error.param], [400, 'input_suffix']);
});

test('a conversation as its template has it, is the prompt that is fed', async () => {
  const messages = [said('system', 'Be brief.'), said('user', 'What is Skein?')];
  const { status, body } = await server.post('/apply-template', { messages });
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(body), ['prompt']);
  assert.match(body.prompt, /^System: Be brief\.\n\nUser: What is Skein\?\n\nAssistant:/);
  const options = { ...greedy, max_tokens: 12 };
  const [of_chat, of_text] = await Promise.all([
    server.post('/v1/chat/completions', { ...options, messages }), server.post('/v1/completions', { ...options, prompt: body.prompt })]);
  assert.equal(of_text.body.usage.prompt_tokens, of_chat.body.usage.prompt_tokens);
  const bad = await server.post('/apply-template', { messages: 'Hello' });
  assert.deepEqual([bad.status, bad.body.error.param], [400, 'messages']);
});

const calculator = { type: 'function', function: { name: 'calculator', description: 'Evaluates an arithmetic expression.',
  parameters: { type: 'object', properties: { expression: { type: 'string' } }, required: ['expression'] } } };
const clock = { type: 'function', function: { name: 'clock', description: 'Returns the current time.',
  parameters: { type: 'object', properties: { city: { type: 'string' } } } } };

test('it calls a calculator and a clock, and answers from their results', async () => {
  const tools = [calculator, clock];
  for (const [question, name, args, result, answer] of [
    ['What is 1234 * 567?', 'calculator', { expression: '1234*567' }, '699678', /\b699678\b/],
    ['How much is 20481 + 7306?', 'calculator', { expression: '20481+7306' }, '{"result": 27787}', /\b27787\b/],
    ['What time is it in Tokyo?', 'clock', { city: 'Tokyo' }, '{"time": "21:40"}', /21:40/],
    ['What time is it?', 'clock', {}, '09:15', /09:15/],
  ])
    for (const tool_choice of ['auto', 'required']) {
      const messages = [said('user', question)];
      const { choices: [{ message, finish_reason }] } = await client.chat.completions.create({ ...greedy, messages, tools, tool_choice });
      assert.equal(finish_reason, 'tool_calls', question);
      assert.equal(message.content, null);
      assert.deepEqual(message.tool_calls.map((c) => [c.function.name, JSON.parse(c.function.arguments)]), [[name, args]]);
      messages.push(message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: result });
      assert.match(await chat(messages, { tools }), answer);
    }
  for (const [question, answer] of [['Spell "goose".', 'g-o-o-s-e'], ['What is the capital of France?', 'The capital of France is Paris.']])
    assert.equal(await chat([said('user', question)], { tools }), answer);
});

test('its lessons with tools have the bytes of the prompts that are fed', async () => {
  const train = join(root, 'models/demo/train');
  const { stdout } = await run('python3', [join(train, 'check_tools.py'), '--url', server.url, '--count', '60',
    '--vocabulary', join(root, 'models/demo/skein-demo.vocab.txt')]);
  assert.match(stdout, /^60 conversations /);
});

test('an installed program includes it', async () => {
  const prefix = join(folder, 'usr');
  const build = process.env.SKEIN_BUILD_DIR ?? join(binary, '..');
  await run('cmake', ['--install', build, '--prefix', prefix]);
  const { stdout } = await run(join(prefix, 'bin/skein'), ['inspect']);
  assert.match(stdout, new RegExp(`^file +${prefix}/share/skein/demo/skein-demo.safetensors$`, 'm'));
  assert.match(stdout, /^identity +[0-9a-f]{32}$/m);
});
