// Tools of several megabytes that are not in the prompt: a waiting response holds them within queue.bytes_max, the list
// of its items reads them within it, and the notes of a running answer do not repeat them again and again.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { serve } from './support.mjs';

const MiB = 1 << 20;
const folder = mkdtempSync(join(tmpdir(), 'skein-large-'));
after(() => rmSync(folder, { recursive: true }));

const tools = (bytes) => Array.from({ length: Math.ceil(bytes / 65536) }, (_, i) => (
  { type: 'function', name: `f${i}`, description: 'x'.repeat(65536), parameters: { type: 'object', properties: {} } }));
const question = (bytes, more = {}) => ({ input: 'Hi', tools: tools(bytes), tool_choice: 'none', max_output_tokens: 3, ...more });
const bytesOf = (at) => readdirSync(at, { withFileTypes: true })
  .reduce((sum, e) => sum + (e.isDirectory() ? bytesOf(join(at, e.name)) : statSync(join(at, e.name)).size), 0);

test('responses that wait hold their tools within the budget', async () => {
  const server = await serve('--device', 'fake', '--slots', '1', '--set', `queue.bytes_max=${64 * MiB}`);
  const leave = new AbortController();
  const statuses = [];
  const body = JSON.stringify(question(4 * MiB, { max_output_tokens: 100000, store: false }));
  const asked = [];
  for (let i = 0; i < 12 && statuses.length === 0; ++i) {
    asked.push(server
      .fetch('/v1/responses', { method: 'POST', headers: { 'content-type': 'application/json' }, body, signal: leave.signal })
      .then((r) => statuses.push(r.status), () => {}));
    await new Promise((done) => setTimeout(done, 200));
  }
  const { memory } = (await server.get('/health')).body;
  // On a slow machine several are refused before the loop sees it.
  assert.deepEqual([...new Set(statuses)], [429], `${asked.length} were asked, ${memory.held_bytes} bytes are held`);
  assert.ok(memory.held_bytes > 16 * MiB, `${memory.held_bytes} bytes are held`);
  leave.abort();
  await Promise.all(asked);
  await server.stop();
});

test('the items of a turn with large tools are read within the budget', async () => {
  const begin = (budget) => serve('--device', 'fake', '--set', `server.state_dir=${join(folder, 'items')}`, '--set', `queue.bytes_max=${budget * MiB}`);
  let server = await begin(256);
  const many = await server.post('/v1/responses', question(6 * MiB)), few = await server.post('/v1/responses', question(1 * MiB));
  const items = (id) => server.get(`/v1/responses/${id}/input_items`);
  for (const made of [many, few]) assert.equal((await items(made.body.id)).status, 200);
  await server.stop();
  server = await begin(24);
  assert.equal((await items(few.body.id)).status, 200);
  const { status, body } = await items(many.body.id);
  assert.equal(status, 413, JSON.stringify(body).slice(0, 300));
  assert.match(body.error.message, /bytes of memory are needed/);
  await server.stop();
});

test('the notes of an answer do not repeat large tools', async () => {
  const state = join(folder, 'notes');
  const server = await serve('--device', 'fake', '--set', `server.state_dir=${state}`);
  const made = await server.post('/v1/responses', question(5 * MiB, { max_output_tokens: 2000 }));
  assert.equal(made.status, 200);
  assert.ok(made.body.usage.output_tokens > 1000, JSON.stringify(made.body.usage));
  assert.ok(bytesOf(state) < 12 * MiB, `${bytesOf(state)} bytes`);
  await server.stop();
});
