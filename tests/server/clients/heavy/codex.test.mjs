// Codex against the running server with the demo model, over Responses: turns, a call that it runs, a function of an MCP
// server, an answer of a schema and a resumed conversation.
//
// Codex cannot force a choice, and the demo model does not know its tools. So some requests pass a proxy that adds a
// choice and changes nothing else of them; the calls themselves are written by the server.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { serve, within } from '../../support.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const program = join(here, 'node_modules/.bin/codex');
const folder = mkdtempSync(join(tmpdir(), 'skein-codex-'));
const [home, work] = ['home', 'work'].map((name) => join(folder, name));
let server;
let proxy;
/** What the proxy has passed on: { request, events }. */
let turns;
let change;

before(async () => {
  const sampling = { temperature: 0, alpha_presence: 0, alpha_frequency: 0, max_tokens: 100 };
  const settings = Object.entries(sampling).flatMap(([name, value]) => ['--set', `models.skein-demo.${name}=${value}`]);
  server = await serve('--device', 'cpu', '--set', 'drain.grace_ms=0', ...settings);
  proxy = createServer(pass);
  await new Promise((done) => proxy.listen(0, '127.0.0.1', done));
  mkdirSync(work);
});
after(async () => {
  proxy?.close();
  rmSync(folder, { recursive: true, force: true });
  if (server) assert.equal((await server.stop()).code, 0);
});
beforeEach(() => {
  turns = [];
  change = (body) => body;
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home);
});

async function pass(request, response) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const body = JSON.parse(Buffer.concat(pieces));
  const turn = { request: body, events: [] };
  turns.push(turn);
  const answer = await fetch(server.url + request.url, {
    method: request.method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(change(body, turns.length)) });
  const text = await answer.text();
  turn.status = answer.status;
  turn.events = text.split('\n').filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice(6)));
  response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') }).end(text);
}

/** Runs `codex exec`; resolves with its exit code, its events and the last message. `more`: lines of the settings. */
async function codex(args, { through = proxy, sandbox = 'read-only', more = '' } = {}) {
  const port = through === server ? server.port : through.address().port;
  writeFileSync(join(home, 'config.toml'), `
model = "skein-demo"
model_provider = "skein"
check_for_update_on_startup = false
sandbox_mode = "${sandbox}"
[model_providers.skein]
name = "Skein"
base_url = "http://127.0.0.1:${port}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
[feedback]
enabled = false
[features]
plugins = false  # it would read a list of them from the network
${more}`);
  // All hosts but this one are behind a port where nothing listens.
  const outside = { HTTP_PROXY: 'http://127.0.0.1:1', HTTPS_PROXY: 'http://127.0.0.1:1', NO_PROXY: '127.0.0.1' };
  const last = join(folder, 'last');
  rmSync(last, { force: true });
  const child = spawn(process.execPath, [program, 'exec', '--skip-git-repo-check', '--json', '-o', last, ...args], {
    cwd: work, env: { PATH: process.env.PATH, HOME: home, CODEX_HOME: home, ...outside }, stdio: ['ignore', 'pipe', 'pipe'] });
  let [out, said] = ['', ''];
  child.stdout.on('data', (text) => (out += text));
  child.stderr.on('data', (text) => (said += text));
  const code = await within(new Promise((done) => child.on('close', done)), 'the end of codex', 240000);
  const events = out.split('\n').filter(Boolean).map((line) => JSON.parse(line));
  assert.equal(code, 0, out + said);
  const items = events.filter((event) => event.type === 'item.completed').map((event) => event.item);
  return { events, items, last: readFileSync(last, 'utf8') };
}

/** The call that the model wrote in a turn, and the result in the next request. */
function called(turn, next) {
  const [call] = turn.events.at(-1).response.output;
  const sent = next.request.input.filter((item) => item.call_id === call.call_id);
  assert.deepEqual(sent.map((item) => item.type), ['function_call', 'function_call_output']);
  assert.deepEqual([sent[0].namespace, sent[0].name, sent[0].arguments], [call.namespace, call.name, call.arguments]);
  return { call, output: sent[1].output };
}

test('a turn ends with the text of the model', async () => {
  const { events, items, last } = await codex(['What is the capital of France?'], { through: server });
  const { text } = items.findLast((item) => item.type === 'agent_message');
  assert.match(text, /Paris/);
  assert.equal(last, text);
  const { usage } = events.at(-1);
  assert.ok(usage.input_tokens > 5000 && usage.output_tokens > 0, JSON.stringify(usage));
});

test('what Codex asks for by default is offered, or said to be left out', async () => {
  const { last } = await codex(['What is the capital of France?']);
  const [{ request, events }] = turns;
  assert.deepEqual([request.stream, request.store, request.tool_choice], [true, false, 'auto']);
  const types = request.tools.map((tool) => tool.type);
  assert.deepEqual([...new Set(types)].sort(), ['function', 'namespace', 'web_search']);
  const { type, response } = events.at(-1);
  assert.equal(type, 'response.completed');
  assert.equal(response.metadata.tool_notes, `tools[${types.indexOf('web_search')}] is left out: tools of the type web_search are not supported`);
  assert.equal(response.output.at(-1).content[0].text, last);
});

test('a call that the server writes is run, and its result returns', async () => {
  // The model would write any command, so the schema has one.
  const cmd = 'echo $((1234 * 567))';
  change = (body, number) => {
    if (number > 1) return { ...body, tool_choice: 'none' };
    const tool = body.tools.find(({ name }) => name === 'exec_command');
    tool.parameters = { type: 'object', properties: { cmd: { const: cmd } }, required: ['cmd'], additionalProperties: false };
    return { ...body, tool_choice: { type: 'function', name: tool.name }, parallel_tool_calls: false };
  };
  const { items } = await codex(['What is 1234 * 567?'], { sandbox: 'danger-full-access' });  // works without privileges
  const run = items.find((item) => item.type === 'command_execution');
  assert.deepEqual([run.aggregated_output, run.exit_code, run.status], ['699678\n', 0, 'completed']);
  assert.equal(turns.length, 2);
  const { call, output } = called(...turns);
  assert.deepEqual(JSON.parse(call.arguments), { cmd });
  assert.match(output, /\b699678\b/);
  assert.equal(turns[1].events.at(-1).type, 'response.completed');
});

test('a function of an MCP server is called in its namespace', async () => {
  const script = join(folder, 'tools.mjs');
  writeFileSync(script, toolServer);
  change = (body, number) =>
    number > 1 ? { ...body, tool_choice: 'none' } : { ...body, tool_choice: { type: 'function', namespace: 'mcp__maths', name: 'calculator' }, parallel_tool_calls: false };
  const more = `[mcp_servers.maths]\ncommand = ${JSON.stringify(process.execPath)}\nargs = [${JSON.stringify(script)}]\ndefault_tools_approval_mode = "approve"\n`;
  const { items } = await codex(['What is 12 * 34?'], { more });
  const { call, output } = called(...turns);
  assert.deepEqual([call.namespace, call.name], ['mcp__maths', 'calculator']);
  const { server: name, tool, arguments: given, status } = items.find((item) => item.type === 'mcp_tool_call');
  assert.deepEqual([name, tool, given, status], ['maths', 'calculator', JSON.parse(call.arguments), 'completed']);
  assert.ok(Array.isArray(output));
  assert.equal(output.at(-1).text, `was given ${JSON.stringify(given)}`);
  assert.equal(turns[1].events.at(-1).type, 'response.completed');
});

/** A server of the Model Context Protocol with one tool. */
const toolServer = `
import { createInterface } from 'node:readline';
const schema = { type: 'object', properties: { expression: { type: 'string', maxLength: 12 } }, required: ['expression'], additionalProperties: false };
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'maths', version: '1' } }),
  'tools/list': () => ({ tools: [{ name: 'calculator', description: 'Evaluates an arithmetic expression.', inputSchema: schema }] }),
  'tools/call': (params) => ({ content: [{ type: 'text', text: 'was given ' + JSON.stringify(params.arguments) }] }),
};
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method] ? { result: answers[method](params) } : { error: { code: -32601, message: 'unknown method' } };
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
});
`;

test('an answer of a schema matches it', async () => {
  const schema = { type: 'object', properties: { name: { enum: ['Anna', 'Ben'] }, age: { type: 'integer', minimum: 0, maximum: 120 } }, required: ['name', 'age'], additionalProperties: false };
  const file = join(folder, 'schema.json');
  writeFileSync(file, JSON.stringify(schema));
  change = (body) => ({ ...body, tool_choice: 'none' });  // the model could call a tool instead
  const { last } = await codex(['--output-schema', file, 'Who is there?']);
  const { name, age, ...rest } = JSON.parse(last);
  assert.ok(['Anna', 'Ben'].includes(name) && Number.isInteger(age) && age >= 0 && age <= 120, last);
  assert.deepEqual(rest, {});
});

test('a conversation is resumed with its history, and summed up when it is long', async () => {
  change = (body) => ({ ...body, tool_choice: 'none' });
  const first = await codex(['My name is Uma.']);
  const second = await codex(['resume', '--last', 'What is my name?']);
  assert.equal(turns.length, 2);
  const said = turns[1].request.input.filter((item) => item.role === 'assistant').map((item) => item.content[0].text);
  assert.deepEqual(said, [first.last]);
  assert.ok(second.last.length > 0);
  await codex(['-c', 'model_auto_compact_token_limit=1', 'resume', '--last', 'And now?']);
  const [summing, after] = turns.slice(2);
  assert.deepEqual(summing.request.tools, []);
  assert.match(summing.request.input.at(-1).content[0].text, /handoff summary/);
  const [summary] = summing.events.at(-1).response.output.at(-1).content;
  assert.ok(after.request.input.some((item) => item.content[0].text.endsWith(summary.text)), JSON.stringify(after.request.input.slice(2)));
  assert.equal(after.events.at(-1).type, 'response.completed');
});
