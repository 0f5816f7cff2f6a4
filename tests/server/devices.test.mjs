// One model on two devices: both answer, with the same text as one alone; a session goes on where its state is, and
// elsewhere through host memory; a device that is lost ends its own requests only; drain and unload cover both. The
// devices are emulated: fake engines, and two CPU engines with a small model.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { readExposition, total } from './exposition.mjs';
import { noOracle, oracle, serve, within } from './support.mjs';

const quiet = ['--log-format', 'json', '--set', 'drain.grace_ms=0'];
const slow = ['--set', 'engine.fake_tick_us=2000'];
const fakes = (t, ...more) => start(t, '--device', 'fake,fake', ...more);

async function start(t, ...args) {
  const server = await serve(...quiet, ...args);
  t.after(() => server.process.kill('SIGKILL'));  // harmless if it has ended
  return server;
}

const numbers = async (server) => readExposition(await (await server.fetch('/metrics')).text());
const models = async (server) => (await server.get('/v1/server/status')).body.models;
const devices = async (server) => (await models(server))[0].devices;
const running = async (server) => (await devices(server)).map((device) => device.requests);

/** The devices once they are as they shall become. */
async function until(server, good) {
  const look = async () => {
    for (;;) {
      const all = await devices(server);
      if (good(all)) return all;
    }
  };
  return await within(look(), `devices with ${good}`);
}

/** A stream that runs until it is stopped; `text` resolves to what it had. */
async function endless(server, more = {}) {
  const before = (await running(server)).reduce((a, b) => a + b);
  const stop = new AbortController();
  const response = await server.fetch('/v1/completions', {
    method: 'POST', signal: stop.signal, body: JSON.stringify({ prompt: 'x', max_tokens: 100000, ignore_eos: true, stream: true, ...more }) });
  assert.equal(response.status, 200);
  await until(server, (all) => all.reduce((sum, device) => sum + device.requests, 0) > before);
  return { stop: () => stop.abort(), text: response.text().catch(() => '') };
}

const turn = async (server, session_id, prompt) => {
  const { status, body } = await server.post('/v1/completions', { session_id, prompt, temperature: 0, max_tokens: 12 });
  assert.equal(status, 200);
  return body.choices[0].text;
};

test('requests go to the device with the fewest, and the status and metrics tell the devices apart', async (t) => {
  const server = await fakes(t, ...slow, '--slots', '4');
  assert.deepEqual((await devices(server)).map(({ id, name, status, slots }) => ({ id, name, status, slots })),
    [0, 1].map((id) => ({ id, name: 'fake', status: 'running', slots: 4 })));
  assert.equal((await models(server))[0].slots, 8);
  assert.equal((await server.get('/health')).body.slots.total, 8);
  const streams = [];
  for (const expected of [[1, 0], [1, 1], [2, 1], [2, 2]]) {
    streams.push(await endless(server));
    assert.deepEqual(await running(server), expected);
  }
  streams[1].stop();
  streams[3].stop();
  await until(server, (all) => all[1].requests === 0);
  streams.push(await endless(server), await endless(server));
  assert.deepEqual(await running(server), [2, 2]);
  const all = await numbers(server);
  for (const device of ['0', '1']) {
    assert.equal(total(all, 'skein_num_requests_running', { device }), 2);
    assert.equal(total(all, 'skein_state_slots', { device, tier: 'vram', state: 'total' }), 4);
    assert(total(all, 'skein_steps_total', { device }) > 0);
    assert.equal(total(all, 'skein_device_info', { device, name: 'fake' }), 1);
    assert.equal(total(all, 'skein_device_lost', { device }), 0);
  }
  assert.equal(total(all, 'skein_model_info', { device: 'fake, fake' }), 1);
  streams.forEach((stream) => stream.stop());
  await until(server, (all) => all.every((device) => device.requests === 0));
  assert.equal((await server.stop()).code, 0);
});

test('prompts of one request are shared among devices', async (t) => {
  const server = await fakes(t, ...slow);
  const body = { prompt: ['a', 'b', 'c', 'd'], max_tokens: 20, temperature: 0, ignore_eos: true };
  const { choices } = (await server.post('/v1/completions', body)).body;
  assert.deepEqual(choices.map((choice) => choice.index), [0, 1, 2, 3]);
  const all = await numbers(server);
  for (const device of ['0', '1']) assert(total(all, 'skein_steps_total', { device }) >= 20);
  const one = await start(t, '--device', 'fake');
  assert.deepEqual(choices.map((choice) => choice.text), (await one.post('/v1/completions', body)).body.choices.map((choice) => choice.text));
});

test('a session goes on in the slot that has its state, and from host memory where that device is full', async (t) => {
  const alone = await start(t, '--device', 'fake');
  const expected = [];
  for (const text of ['one', 'two', 'three', 'four']) expected.push(await turn(alone, 's', text));

  const server = await fakes(t, ...slow, '--slots', '2');
  const moves = async (from) => total(await numbers(server), 'skein_state_moves_total', { from, to: 'vram' });
  const kept = async () => (await numbers(server), total(await numbers(server), 'skein_state_slots', { state: 'kept' }));
  const settled = async (count) => {
    while (await kept() !== count) await new Promise((done) => setTimeout(done, 5));
  };
  assert.equal(await turn(server, 's', 'one'), expected[0]);  // on device 0
  await within(settled(1), 'a kept state');
  const other = await endless(server);  // on device 1
  assert.deepEqual(await running(server), [0, 1]);
  const more = await endless(server);
  assert.deepEqual(await running(server), [1, 1]);

  assert.equal(await turn(server, 's', 'two'), expected[1]);
  assert.equal(await moves('vram'), 1);  // in the slot of device 0
  assert.equal(await moves('ram'), 0);
  await within(settled(1), 'a kept state');

  const third = await endless(server);
  const fourth = await endless(server);
  assert.deepEqual(await running(server), [2, 2]);
  third.stop();  // on device 1, since device 0 was chosen last
  await until(server, ([first, second]) => first.requests === 2 && second.requests === 1);
  assert.equal(await turn(server, 's', 'three'), expected[2]);
  assert.equal(await moves('ram'), 1);  // on device 1
  assert.equal(await moves('vram'), 1);
  assert.equal(await turn(server, 's', 'four'), expected[3]);  // there again
  await until(server, ([first, second]) => first.requests === 2 && second.requests === 1);
  assert.equal(await moves('vram') + await moves('ram'), 3);
  fourth.stop();
  other.stop();
  more.stop();
  assert.equal((await server.stop('SIGINT')).code, 0);
});

test('a lost device ends its own requests, and the others go on', async (t) => {
  const server = await fakes(t, ...slow, '--set', 'engine.fake_lost_tick=200', '--set', 'engine.fake_faulty_device=1', '--password', 'word');
  const headers = { authorization: 'Bearer word' };
  const ask = async (body) => {
    const response = await server.fetch('/v1/completions', { method: 'POST', headers, body: JSON.stringify({ prompt: 'x', ignore_eos: true, ...body }) });
    return { status: response.status, text: await response.text() };
  };
  const [first, second] = await Promise.all([ask({ max_tokens: 1000, stream: true }), ask({ max_tokens: 1000 })]);
  const [whole, failed] = first.text.includes('"error"') ? [second, first] : [first, second];
  assert.equal(whole.status, 200);
  assert(!whole.text.includes('"error"'));
  assert.match(failed.text, /"message":"the device failed while it processed this request","type":"server_error"/);

  // The server is ready, and operators are told which device failed.
  const lost = [{ model: 'fake', device: 1, name: 'fake' }];
  for (const path of ['/health', '/readyz']) {
    const response = await server.fetch(path, { headers });
    assert.equal(response.status, 200);
    assert.deepEqual((await response.json()).lost_devices, lost);
    const stranger = await (await server.fetch(path)).json();
    assert.deepEqual(stranger, { status: 'ok' });
  }
  assert.equal((await server.fetch('/livez')).status, 200);
  const health = await (await server.fetch('/health', { headers })).json();
  assert.equal(health.slots.total, 1024);
  const status = await (await server.fetch('/v1/server/status', { headers })).json();
  assert.deepEqual(status.models[0].devices.map((device) => device.status), ['running', 'lost']);
  const page = readExposition(await (await server.fetch('/metrics', { headers })).text());
  assert.equal(total(page, 'skein_device_lost', { device: '0' }), 0);
  assert.equal(total(page, 'skein_device_lost', { device: '1' }), 1);
  assert.equal(server.lines.filter((line) => line.includes('"msg":"the device is lost"')).length, 1);

  // Requests run on the other device.
  const later = await Promise.all([1, 2, 3, 4, 5].map((n) => ask({ max_tokens: 2 * n })));
  for (const { status } of later) assert.equal(status, 200);
  assert.equal((await server.stop()).code, 0);
});

test('a session whose state was on a device that was lost goes on on another one', async (t) => {
  const alone = await start(t, '--device', 'fake');
  const expected = [await turn(alone, 's', 'one'), await turn(alone, 's', 'two')];
  const server = await fakes(t, '--set', 'engine.fake_throw_tick=40');  // on device 0
  assert.equal(await turn(server, 's', 'one'), expected[0]);
  for (;;) {  // fails once it comes to device 0
    const { status } = await server.post('/v1/completions', { prompt: 'x', ignore_eos: true, max_tokens: 100 });
    if (status === 200) continue;
    assert.equal(status, 500);
    break;
  }
  assert.equal(await turn(server, 's', 'two'), expected[1]);
  assert.deepEqual((await devices(server)).map((device) => device.status), ['lost', 'running']);
  assert.equal((await server.stop()).code, 0);
});

test('a model that has lost its last device ends the process with 70', async (t) => {
  const server = await fakes(t, '--set', 'engine.fake_lost_tick=30');
  const other = await fakes(t);  // for comparison
  const ask = (to) => to.post('/v1/completions', { prompt: 'x', ignore_eos: true, max_tokens: 100 });
  assert.equal((await ask(server)).status, 500);  // device 0
  assert.equal((await ask(server)).status, 200);
  assert.equal((await ask(other)).status, 200);
  assert.equal((await server.stop()).code, 0);
  const one = await start(t, '--device', 'fake', '--set', 'engine.fake_lost_tick=30');
  assert.equal((await ask(one)).status, 500);
  assert.equal((await one.end()).code, 70);
});

test('a drain lets the requests of both devices finish', async (t) => {
  const server = await fakes(t, ...slow, '--set', 'drain.timeout_ms=60000');
  const ask = () => server.fetch('/v1/completions', {
    method: 'POST', body: JSON.stringify({ prompt: 'x', ignore_eos: true, max_tokens: 150, stream: true, stream_options: { include_usage: true } }) });
  const responses = await Promise.all([ask(), ask(), ask(), ask()]);
  await until(server, (all) => all.every((device) => device.requests === 2));
  const ended = server.stop();
  for (const response of responses) assert.match(await response.text(), /"completion_tokens":150/);
  assert.equal((await ended).code, 0);
});

test('devices of different kinds are refused', async (t) => {
  const { spawnSync } = await import('node:child_process');
  const { binary } = await import('./support.mjs');
  for (const list of ['cpu,fake', 'cpu,cuda:0', 'auto,auto', 'cpu,', Array(17).fill('cpu').join(',')]) {
    const { status, stderr } = spawnSync(binary, ['serve', '--port', '0', '--device', list], { encoding: 'utf8' });
    assert.notEqual(status, 0, list);
    assert.match(stderr, /device/, list);
  }
});

describe('two CPU engines with one model', { skip: noOracle }, () => {
  const model = ['--model', join(oracle ?? '', 'models/tiny-7v0.pth'), '--model-name', 'tiny'];

  test('answer as one does, whichever of them a request lands on', async (t) => {
    const alone = await start(t, '--device', 'cpu', ...model);
    const both = await start(t, '--device', 'cpu,cpu', ...model);
    const wishes = [0, 1, 2, 3].flatMap((i) => [
      { prompt: `The moon ${'is '.repeat(40 * i)}`, temperature: 0, max_tokens: 24, ignore_eos: true },
      { prompt: 'Once', temperature: 1, seed: i, n: 3, max_tokens: 24, ignore_eos: true, logprobs: 2 },
    ]);
    const answer = async (server, wish) => {
      const { status, body } = await server.post('/v1/completions', wish);
      assert.equal(status, 200);
      return body.choices;
    };
    const expected = [];
    for (const wish of wishes) expected.push(await answer(alone, wish));
    // Twice one after another, on devices in turn, the second time the other way round; then all at once.
    for (let round = 0; round < 2; ++round) {
      for (const [i, wish] of wishes.entries()) assert.deepEqual(await answer(both, wish), expected[i]);
      await answer(both, { prompt: 'x', max_tokens: 1 });
    }
    assert.deepEqual(await Promise.all([...wishes, ...wishes].map((wish) => answer(both, wish))), [...expected, ...expected]);
    const page = await numbers(both);
    for (const device of ['0', '1']) assert(total(page, 'skein_steps_total', { device }) > 200);

    // Sessions side by side, whose turns come to both devices.
    const talk = async (server, id) => {
      const texts = [];
      for (const text of ['Hello', ' and then', ' but']) texts.push(await turn(server, id, text + id));
      return texts;
    };
    const ids = ['a', 'b', 'c', 'd', 'e'];
    const said = [];
    for (const id of ids) said.push(await talk(alone, id));
    assert.deepEqual(await Promise.all(ids.map((id) => talk(both, id))), said);
    for (const server of [alone, both]) assert.equal((await server.stop()).code, 0);
  });

  test('are unloaded and loaded together', async (t) => {
    const server = await start(t, '--device', 'cpu,cpu', ...model);
    const wish = { prompt: 'Hello', temperature: 0, max_tokens: 8 };
    const { choices } = (await server.post('/v1/completions', wish)).body;
    assert.equal((await server.post('/removemodel', {})).status, 200);
    assert.equal((await server.post('/v1/completions', wish)).status, 503);
    assert.equal((await server.post('/v1/model/load', { model: 'tiny' })).status, 200);
    assert.deepEqual((await devices(server)).map((device) => device.status), ['running', 'running']);
    for (let i = 0; i < 2; ++i) assert.deepEqual((await server.post('/v1/completions', wish)).body.choices, choices);
    assert.equal(server.lines.filter((line) => line.includes('"msg":"engine ready"')).length, 4);
    assert.equal((await server.stop()).code, 0);
  });
});
