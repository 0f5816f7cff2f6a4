// Several models in memory at once: each request is answered by the one that it names, with the same text as alone;
// one more than there is room for takes the place of the least used, and comes back when it is named. With small models.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { readExposition } from './exposition.mjs';
import { binary, noOracle, oracle, serve, short } from './support.mjs';

const quiet = ['--log-format', 'json', '--set', 'drain.grace_ms=0'];
const completion = { temperature: 0, max_tokens: 24, ignore_eos: true, prompt: 'Hello' };
const names = ['tiny', 'small', 'third'];

function folder() {
  const path = mkdtempSync(join(tmpdir(), 'skein-resident-'));
  after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** What the process holds: bytes of memory, and descriptors that are no client's. */
async function held(server) {
  const status = readFileSync(`/proc/${server.process.pid}/status`, 'utf8');
  const { body } = await server.get('/health');
  const descriptors = readdirSync(`/proc/${server.process.pid}/fd`).length - body.connections.open;
  return { bytes: Number(/VmRSS:\s+(\d+)/.exec(status)[1]) * 1024, descriptors };
}

describe('models in memory', { skip: noOracle }, () => {
  const models = folder();
  const alone = {};
  const start = (...more) => serve('--device', 'cpu', '--model', join(models, 'small.safetensors'), '--model-root', models, '--slots', '16', ...quiet, ...more);

  before(async () => {
    copyFileSync(join(oracle, 'models/tiny-7v0.safetensors'), join(models, 'tiny.safetensors'));
    copyFileSync(join(oracle, 'models/quirk-base.safetensors'), join(models, 'small.safetensors'));
    copyFileSync(join(oracle, 'models/tiny-7v0-bf16.pth'), join(models, 'third.pth'));
    copyFileSync(join(models, 'tiny.safetensors'), join(models, 'torn.safetensors'));
    truncateSync(join(models, 'torn.safetensors'), 1_000_000);
    const server = await start();
    for (const model of names) {
      assert.equal((await server.post('/v1/model/load', { model })).status, 200);
      alone[model] = (await server.post('/v1/completions', completion)).body.choices[0].text;
    }
    assert.equal((await server.stop()).code, 0);
  });

  /** A streamed answer of that model: whole, and as it has it alone. */
  async function asks(server, model) {
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    let text = '';
    for await (const chunk of await client.completions.create({ ...completion, model, stream: true })) {
      assert.equal(chunk.model, model);
      text += chunk.choices[0]?.text ?? '';
    }
    assert.equal(text, alone[model], model);
  }

  test('fifty streams over two at once, each with the text of its own model', async () => {
    const server = await start('--set', 'model.resident_max=2');
    const before = (await server.get('/v1/models')).body;
    assert.deepEqual([before.loaded, before.data.map(({ id }) => id)], ['small', ['small']]);
    await Promise.all(Array.from({ length: 50 }, (_, i) => asks(server, i % 2 ? 'tiny' : 'small')));

    const listed = (await server.get('/v1/models')).body;
    assert.equal(listed.loaded, 'small');  // who names none gets the one that was asked for last by its route
    assert.deepEqual(listed.data.map(({ id, status }) => [id, status]), [['small', 'loaded'], ['tiny', 'loaded']]);
    assert.deepEqual((await server.get('/models')).body.map(({ id }) => id), ['small', 'tiny']);
    assert.equal((await server.get('/v1/models/tiny')).body.id, 'tiny');
    assert.equal((await server.post('/v1/completions', completion)).body.model, 'small');
    assert.equal((await server.post('/v1/completions', { ...completion, model: 'nobody' })).body.model, 'small');
    assert.equal((await server.post('/big_batch/completions', { contents: ['x'], max_tokens: 2, stream: false, model: 'rwkv7' })).body.model, 'rwkv7');
    assert.equal(server.lines.filter((l) => l.includes('"msg":"model ready"')).length, 2);

    const page = readExposition(await (await server.fetch('/metrics')).text());
    const infos = page.get('skein_model_info').samples.map(({ labels }) => labels.model);
    assert.deepEqual(infos, ['small', 'tiny']);
    const drawn = page.get('skein_generation_tokens_total').samples;
    for (const model of infos) assert.ok(drawn.find(({ labels }) => labels.model === model).value >= 25 * 24);
    const status = (await server.get('/v1/server/status')).body;
    assert.deepEqual(status.models.map(({ id, slots }) => [id, slots]), [['small', 16], ['tiny', 16]]);
    assert.equal(status.prefill_queue.hard_max_bsz, 32);
    assert.equal((await server.get('/health')).body.slots.total, 32);
    assert.equal((await server.stop()).code, 0);
  });

  test('whatever else names a model gets it: tokens, tuned states, sessions, and answers that were paused', async () => {
    const server = await start('--set', 'model.resident_max=2', '--states-dir', join(oracle, 'models'), '--state-dir', folder());
    await asks(server, 'tiny');
    const poet = { state_filename: 'state-tiny-7v0.pth', state_viewname: 'poet' };
    assert.equal((await server.post('/loadstatemodel', poet)).status, 400);  // it does not fit the current one
    assert.equal((await server.post('/loadstatemodel', { ...poet, model: 'tiny' })).status, 200);
    assert.deepEqual((await server.get('/models')).body.map(({ id }) => id), ['small', 'tiny', 'tiny poet']);
    const scores = async (model) => {
      const { body } = await server.post('/v1/completions', { ...completion, model, logprobs: 1 });
      assert.equal(body.model, 'tiny');
      return body.choices[0].logprobs.token_logprobs;
    };
    const begun = await scores('tiny poet');
    assert.notDeepEqual(begun, await scores('tiny'));
    assert.deepEqual(begun, await scores('poet'));
    assert.equal((await server.post('/removestatemodel', { model: 'tiny', state_viewname: 'poet' })).status, 200);
    assert.equal((await server.post('/v1/tokens/count', { text: 'Hello', model: 'tiny' })).body.tokens, 5);

    // The same session on both: each turn where its model is.
    const turn = (session_id, model, prompt) => server.post('/v1/completions', { ...completion, session_id, model, prompt });
    assert.equal((await turn('anna', 'tiny', 'Hello')).body.session.version, 1);
    assert.equal((await turn('bob', 'small', 'Hello')).body.session.version, 1);
    const next = await turn('anna', 'tiny', ' again');
    assert.deepEqual([next.body.session.version, next.headers.get('x-session-state')], [2, 'continued']);
    assert.equal((await turn('anna', 'small', ' again')).status, 409);
    assert.equal((await server.post('/state/delete', { session_id: 'anna' })).status, 200);
    assert.equal((await turn('anna', 'small', 'Hello')).body.session.version, 1);

    const chat = { model: 'tiny', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 1_000_000, ignore_eos: true, stream: true, stop_tokens: [] };
    const response = await server.fetch('/v1/chat/completions', { method: 'POST', body: JSON.stringify(chat), headers: { 'x-request-id': 'job' } });
    await server.counters((h) => h.tokens.generated > 200);
    assert.equal((await server.post('/v1/server/pause', { request_id: 'job' })).body.paused, true);
    await response.text();
    const rest = await server.fetch('/v1/server/resume', { method: 'POST', body: JSON.stringify({ request_id: 'job', max_tokens: 3 }) });
    assert.equal(rest.status, 200, await (rest.ok ? '' : rest.text()));
    assert.match(await rest.text(), /"model":"tiny"[^]*"finish_reason":"length"/);
    assert.equal((await server.stop()).code, 0);
  });

  test('twenty rounds over three models with room for two: none is lost, and all memory comes back', async () => {
    const server = await start('--set', 'model.resident_max=2');
    for (const model of names) await asks(server, model);
    const begin = await held(server);
    const rounds = short ? 5 : 20;
    // Clients that want the model of the round, while others stay with the first: it is in use, and need not go.
    let switching = true;
    const faithful = Array.from({ length: 8 }, async () => {
      while (switching) await asks(server, 'small');
    });
    for (let i = 0; i < rounds; ++i) await Promise.all(Array.from({ length: 6 }, () => asks(server, i % 2 ? 'tiny' : 'third')));
    switching = false;
    await Promise.all(faithful);
    const { body } = await server.get('/v1/models');
    assert.deepEqual(new Set(body.data.map(({ id }) => id)), new Set(names));
    assert.equal(body.data.filter(({ status }) => status === 'loaded').length, 2);
    assert.equal(body.data.filter(({ status }) => status === 'available').length, 1);

    const count = (msg) => server.lines.filter((l) => l.includes(`"msg":"${msg}"`)).length;
    assert.ok(count('model ready') >= rounds, `${count('model ready')} loads`);
    for (let tries = 0; tries < 3000 && count('model unloaded') < count('model retired'); ++tries) await new Promise((r) => setTimeout(r, 10));
    assert.equal(count('model unloaded'), count('model retired'));
    let end = await held(server);
    for (let tries = 0; tries < 500 && end.descriptors > begin.descriptors; ++tries) end = await held(server);
    assert.ok(end.descriptors <= begin.descriptors, `${begin.descriptors} descriptors, then ${end.descriptors}`);
    assert.ok(short || end.bytes < begin.bytes + 40 * 2 ** 20, `${begin.bytes} bytes, then ${end.bytes}`);

    // One goes by its id, with those who wait for it hearing nothing but its absence.
    const there = body.data.find(({ status }) => status === 'loaded').id;
    assert.equal((await server.post('/removemodel', { model: 'nobody' })).status, 404);
    assert.equal((await server.post('/removemodel', { model: there })).status, 200);
    assert.ok(!(await server.get('/v1/models')).body.data.some(({ id }) => id === there));
    assert.equal((await server.stop()).code, 0);
  });

  test('a failed load is an error response and disturbs no other request; memory has a limit too', async () => {
    const three = ['--slots', '2', '--set', 'model.resident_max=3'];
    const roomy = await start(...three);
    for (const model of names) await asks(roomy, model);
    const totals = (await roomy.get('/v1/server/status')).body.models.map(({ memory }) => memory.total_bytes);
    assert.equal(totals.length, 3);
    assert.equal((await roomy.stop()).code, 0);
    const bytes = totals.reduce((a, b) => a + b) - 1;
    const server = await start(...three, '--set', `model.memory_bytes_max=${bytes}`);
    const refused = await server.post('/v1/completions', { ...completion, model: 'torn' });
    assert.equal(refused.status, 503);
    assert.match(refused.body.error.message, /could not be loaded/);
    await asks(server, 'tiny');
    await asks(server, 'small');
    await asks(server, 'third');  // does not fit beside both, though their number would do
    const resting = (await server.get('/v1/models')).body.data.filter(({ status }) => status === 'available');
    assert.equal(resting.length, 1);
    await asks(server, resting[0].id);
    assert.equal((await server.stop()).code, 0);
  });

  test('a key has loaded what it may, and what others had loaded', async () => {
    const file = join(folder(), 'keys');
    const made = (...args) => spawnSync(binary, ['keys', 'new', ...args, '--keys-file', file]).stdout.toString().trim().split('\n')[0];
    const root = made('root', '--admin'), bob = made('bob', '--models', 'small,tiny');
    const server = await start('--keys-file', file, '--set', 'model.resident_max=2');
    const ask = (key, model) => server.post('/v1/completions', { ...completion, model }, { authorization: `Bearer ${key}` });
    assert.equal((await ask(bob, 'tiny')).status, 404);  // no key with the right to load models has loaded it
    assert.equal((await ask(root, 'tiny')).status, 200);
    assert.equal((await ask(bob, 'tiny')).status, 200);
    assert.equal((await ask(root, 'third')).status, 200);  // now one of the others rests
    assert.equal((await ask(bob, 'third')).status, 403);
    for (const model of ['small', 'tiny', 'small']) assert.equal((await ask(bob, model)).body.model, model);
    const seen = await server.get('/v1/models', { authorization: `Bearer ${bob}` });
    assert.deepEqual(new Set(seen.body.data.map(({ id }) => id)), new Set(['small', 'tiny']));
    assert.equal((await server.stop()).code, 0);
  });
});
