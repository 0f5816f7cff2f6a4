// The prefix cache as a client sees it: a long system text is fed once, also over a restart, and the answers are those of
// a server without a cache. The demo model on the CPU: there a hit changes no bit.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import OpenAI from 'openai';
import { serve, short } from './support.mjs';

const directory = mkdtempSync(join(tmpdir(), 'skein-prefix-'));
after(() => rmSync(directory, { recursive: true, force: true }));

// Some thousands of tokens that all requests share, then one's own question.
const shared = short ? 1000 : 4000;
const system = Array.from({ length: shared / 4 }, (_, i) => `Rule ${i}: be kind.`).join(' ');
const request = (question) => ({
  model: 'skein-demo',
  messages: [
    { role: 'system', content: system },
    { role: 'user', content: question },
  ],
  max_tokens: 8,
  temperature: 0,
});
const settings = ['--device', 'cpu', '--state-dir', directory, '--set', 'drain.grace_ms=0'];
const clientOf = (server) => new OpenAI({ apiKey: 'none', baseURL: `${server.url}/v1`, maxRetries: 0 });
const fed = async (server) => (await server.get('/health')).body.tokens.prompt;

/** What was asked, answered, counted as cached, and really fed to the model. */
async function ask(server, question, fields = {}) {
  const before = await fed(server);
  const answer = await clientOf(server).chat.completions.create({ ...request(question), ...fields });
  return {
    text: answer.choices[0].message.content,
    prompt: answer.usage.prompt_tokens,
    cached: answer.usage.prompt_tokens_details?.cached_tokens ?? 0,
    fed: (await fed(server)) - before,
  };
}

test('a long system text is fed once, also over a restart', async () => {
  let server = await serve(...settings);
  const cold = await ask(server, 'Who are you?');
  assert.ok(cold.prompt > shared, `${cold.prompt} tokens`);
  assert.equal(cold.cached, 0);
  assert.equal(cold.fed, cold.prompt);

  const warm = await ask(server, 'What is a goose?');
  assert.ok(warm.cached > shared && warm.cached < warm.prompt, `${warm.cached} of ${warm.prompt} cached`);
  assert.equal(warm.fed, warm.prompt - warm.cached);
  assert.ok(warm.fed < 64, `${warm.fed} tokens fed`);

  const again = await ask(server, 'Who are you?');
  assert.equal(again.text, cold.text);
  assert.ok(again.cached >= warm.cached);

  const without = await ask(server, 'What is a goose?', { use_prefix_cache: false });
  assert.equal(without.cached, 0);
  assert.equal(without.fed, without.prompt);
  assert.equal(without.text, warm.text);
  assert.equal((await server.stop()).code, 0);

  server = await serve(...settings);
  const later = await ask(server, 'What is a goose?');
  assert.ok(later.cached > shared, `${later.cached} of ${later.prompt} cached after the restart`);
  assert.equal(later.fed, later.prompt - later.cached);
  assert.equal(later.text, warm.text);
  assert.equal((await server.stop()).code, 0);
});

test('raw prompts that come again, or grow, are fed from their last multiple of 64 tokens', async () => {
  const server = await serve('--device', 'cpu', '--set', 'drain.grace_ms=0');
  const text = Array.from({ length: 80 }, (_, i) => `Line ${i} is raw.`).join(' ');
  const all = (await server.post('/tokenize', { content: text })).body.tokens;
  assert.ok(all.length > 321, `${all.length} tokens`);
  const complete = async (tokens, fields = {}) => {
    const before = await fed(server);
    const { body } = await server.post('/v1/completions', { prompt: tokens, max_tokens: 8, temperature: 0, ...fields });
    const cached = body.usage.prompt_tokens_details?.cached_tokens ?? 0;
    assert.equal((await fed(server)) - before, tokens.length - cached);
    return { text: body.choices[0].text, cached };
  };
  const prompt = all.slice(0, 321);
  const cold = await complete(prompt);
  assert.equal(cold.cached, 0);
  // The second time shows that it comes again, and leaves a state for all others.
  for (const cached of [0, 320, 320]) assert.deepEqual(await complete(prompt), { text: cold.text, cached });
  const longer = await complete(all);
  assert.equal(longer.cached, 321);
  assert.equal((await complete(all, { use_prefix_cache: false })).text, longer.text);
  assert.equal((await server.stop()).code, 0);
});
