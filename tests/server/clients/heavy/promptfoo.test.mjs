// promptfoo against the running server with the demo model: an evaluation whose assertions judge texts, calls by a forced
// choice and answers of a schema, over chat completions and Responses.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { serve } from '../../support.mjs';

const program = join(dirname(fileURLToPath(import.meta.url)), 'node_modules/.bin/promptfoo');
const folder = mkdtempSync(join(tmpdir(), 'skein-promptfoo-'));
let server;

before(async () => {
  server = await serve('--device', 'cpu', '--set', 'drain.grace_ms=0');
});
after(async () => {
  rmSync(folder, { recursive: true });
  if (server) assert.equal((await server.stop()).code, 0);
});

/** Runs `promptfoo eval`; resolves with its exit code and the results in its output file. */
async function evaluate(config) {
  const [written, found] = ['config.json', 'results.json'].map((name) => join(folder, name));
  writeFileSync(written, JSON.stringify(config));
  const env = {
    PATH: process.env.PATH, HOME: folder, PROMPTFOO_CONFIG_DIR: folder,
    PROMPTFOO_DISABLE_TELEMETRY: '1', PROMPTFOO_DISABLE_UPDATE: '1', PROMPTFOO_DISABLE_SHARING: '1', PROMPTFOO_DISABLE_REMOTE_GENERATION: '1',
    // It reports to its makers that its telemetry is off: here that goes to a port where nothing listens.
    HTTP_PROXY: 'http://127.0.0.1:1', HTTPS_PROXY: 'http://127.0.0.1:1', NO_PROXY: '127.0.0.1',
  };
  const flags = ['--no-cache', '--no-write', '--no-table', '--no-progress-bar'];
  const [code, said] = await new Promise((done) =>
    execFile(process.execPath, [program, 'eval', '-c', written, '-o', found, ...flags], { env, cwd: folder, timeout: 240000 },
      (error, stdout, stderr) => done([error ? error.code : 0, stdout + stderr])));
  return { code, said, results: JSON.parse(readFileSync(found, 'utf8')).results.results };
}

const shade = {
  type: 'object',
  properties: { red: { type: 'integer', minimum: 0, maximum: 255 }, name: { enum: ['dark', 'light'] } },
  required: ['red', 'name'],
  additionalProperties: false,
};
const person = {
  type: 'object',
  properties: { name: { enum: ['Anna', 'Ben'] }, age: { type: 'integer', minimum: 0, maximum: 120 } },
  required: ['name', 'age'],
  additionalProperties: false,
};
const colour = { name: 'colour', description: 'Mixes a colour.', parameters: shade };
const named = { name: 'person', strict: true, schema: person };
/** The model has no wish of its own at this temperature, so what matches a schema was made to match. */
const wild = { temperature: 2, top_p: 1 };

const apis = {
  chat: {
    id: 'openai:chat:skein-demo',
    tools: { tools: [{ type: 'function', function: colour }], tool_choice: 'required', passthrough: { parallel_tool_calls: false } },
    schema: { response_format: { type: 'json_schema', json_schema: named } },
    calls: (output) => output.map((call) => call.function),
  },
  responses: {
    id: 'openai:responses:skein-demo',
    tools: { tools: [{ type: 'function', ...colour }], tool_choice: 'required', passthrough: { parallel_tool_calls: false } },
    schema: { response_format: { type: 'json_schema', ...named } },
    calls: (output) => [JSON.parse(output)],
  },
};
const provider = (api, label, config) => ({
  id: apis[api].id, label: `${api} ${label}`, config: { apiBaseUrl: `${server.url}/v1`, apiKey: 'any', max_tokens: 2000, max_output_tokens: 2000, ...config } });
const both = (label) => Object.keys(apis).map((api) => `${api} ${label}`);

test('an evaluation passes', async () => {
  const providers = Object.entries(apis).flatMap(([api, { tools, schema }]) => [
    provider(api, 'text', { temperature: 0 }),
    provider(api, 'tools', { ...wild, ...tools }),
    provider(api, 'schema', { ...wild, ...schema }),
  ]);
  const tests = [
    { vars: { question: 'What is the capital of France?' }, providers: both('text'), assert: [{ type: 'equals', value: 'The capital of France is Paris.' }] },
    { vars: { question: 'What is Skein?' }, providers: ['chat tools'], assert: [{ type: 'is-valid-openai-tools-call' }] },
    { vars: { question: 'What is Skein?' }, providers: ['responses tools'], assert: [{ type: 'contains-json' }] },
    { vars: { question: 'Who is there?' }, providers: both('schema'), assert: [{ type: 'is-json', value: person }] },
  ];
  const { code, said, results } = await evaluate({ prompts: ['{{question}}'], providers, tests, evaluateOptions: { repeat: 2 } });
  assert.deepEqual(results.filter((row) => !row.success).map((row) => [row.provider.label, row.error, row.response]), [], said);
  assert.equal(code, 0, said);
  assert.equal(results.length, 12);
  for (const [api, { calls }] of Object.entries(apis))
    for (const { response } of results.filter((row) => row.provider.label === `${api} tools`)) {
      const [call, ...more] = calls(response.output);
      assert.deepEqual([call.name, more], ['colour', []]);
      const { red, name, ...rest } = JSON.parse(call.arguments);
      assert.ok(Number.isInteger(red) && red >= 0 && red <= 255 && ['dark', 'light'].includes(name));
      assert.deepEqual(rest, {});
    }
  for (const { response } of results) assert.ok(response.tokenUsage.total > 0);
});

test('an evaluation with a false assertion fails', async () => {
  const tests = [{ vars: { question: 'What is the capital of France?' }, assert: [{ type: 'contains', value: 'Rome' }] }];
  const { code, said, results } = await evaluate({ prompts: ['{{question}}'], providers: [provider('chat', 'text', { temperature: 0 })], tests });
  assert.deepEqual(results.map((row) => row.success), [false]);
  assert.equal(code, 100, said);
});
