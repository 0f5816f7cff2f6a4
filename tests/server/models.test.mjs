// Models that come and go while the server runs: no request is lost in a switch, whatever goes wrong leaves the old model
// serving, sessions belong to their model, and what a model took is given back. With two of the oracle's tiny models, and
// with the fake engine, whose loads and ticks last as long as the test wants.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { binary, noOracle, oracle, serve, short, startServer } from './support.mjs';
import { bytesOfWorld, unfinished } from './unfinished.mjs';

const quiet = ['--log-format', 'json', '--set', 'drain.grace_ms=0'];

function folder() {
  const path = mkdtempSync(join(tmpdir(), 'skein-models-'));
  after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const completion = { temperature: 0, max_tokens: 24, ignore_eos: true, prompt: 'Hello' };
const load = (server, model, more = {}) => server.post('/v1/model/load', { model, ...more });

/** A .safetensors file of fp32 tensors, {name: [shape, value of all elements]}. */
function filled(tensors) {
  const header = {}, data = [];
  let end = 0;
  for (const [name, [shape, value]] of Object.entries(tensors)) {
    data.push(Buffer.from(new Float32Array(shape.reduce((a, b) => a * b)).fill(value).buffer));
    header[name] = { dtype: 'F32', shape, data_offsets: [end, end += data.at(-1).length] };
  }
  const text = Buffer.from(JSON.stringify(header)), length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...data]);
}

/** A streamed completion as it comes: its chunks, its text, and whether it ended as streams do. */
async function stream(server, fields = {}) {
  const response = await server.fetch('/v1/completions', { method: 'POST', body: JSON.stringify({ ...completion, stream: true, ...fields }) });
  assert.equal(response.status, 200, await (response.ok ? '' : response.text()));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let all = (await reader.read()).value ?? '';
  const end = (async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      all += value;
    }
    const events = all.split('\n\n').filter((e) => e.startsWith('data: ')).map((e) => e.slice(6));
    assert.equal(events.pop(), '[DONE]');
    const chunks = events.map((e) => JSON.parse(e));
    const text = chunks.map((c) => c.choices?.[0]?.text ?? '').join('');
    return { chunks, text, model: chunks[0].model, error: chunks.at(-1).error };
  })();
  end.catch(() => {});
  return { end };
}

/** What the process holds: bytes of memory, and descriptors that are no client's. */
async function held(server) {
  const status = readFileSync(`/proc/${server.process.pid}/status`, 'utf8');
  const { body } = await server.get('/health');
  const descriptors = readdirSync(`/proc/${server.process.pid}/fd`).length - body.connections.open;
  return { bytes: Number(/VmRSS:\s+(\d+)/.exec(status)[1]) * 1024, descriptors };
}

test('logits that are not finite end their request with a 500 and a line in the log', { skip: noOracle }, async () => {
  const broken = join(folder(), 'broken.safetensors');
  const bytes = readFileSync(join(oracle, 'models/tiny-7v0.safetensors'));
  bytes.writeUInt32LE(0x7fc00000, bytes.length - 4);  // NaN
  writeFileSync(broken, bytes);
  const server = await serve('--device', 'cpu', '--model', broken, '--allow-nonfinite', ...quiet);
  const whole = await server.post('/v1/completions', completion);
  assert.equal(whole.status, 500);
  assert.match(whole.body.error.message, /NaN or infinite/);
  const scored = await server.post('/v1/completions', { ...completion, echo: true, logprobs: 1, max_tokens: 0 });
  assert.equal(scored.status, 500);
  const streamed = await server.fetch('/v1/completions', { method: 'POST', body: JSON.stringify({ ...completion, stream: true }) });
  assert.match(await streamed.text(), /NaN or infinite/);
  assert.equal((await server.stop()).code, 0);
  assert.equal(server.lines.filter((l) => l.includes('"logits not finite"')).length, 3);
});

describe('two real models', { skip: noOracle }, () => {
  let server;
  const models = folder();
  const small = join(models, 'small.safetensors');
  before(async () => {
    copyFileSync(join(oracle, 'models/tiny-7v0.safetensors'), join(models, 'tiny.safetensors'));
    copyFileSync(join(oracle, 'models/quirk-base.safetensors'), join(models, 'small.safetensors'));
    copyFileSync(join(models, 'tiny.safetensors'), join(models, 'other.gguf'));  // what it is follows from its bytes
    copyFileSync(join(models, 'tiny.safetensors'), join(models, 'torn.safetensors'));
    truncateSync(join(models, 'torn.safetensors'), 1_000_000);
    writeFileSync(join(models, 'words.txt'), 'no model');
    symlinkSync('/etc/passwd', join(models, 'link.pth'));
    server = await serve('--device', 'cpu', '--model', small, '--model-root', models, '--slots', '64', '--state-dir', folder(), ...quiet);
  });
  after(async () => assert.equal((await server.stop()).code, 0));

  const text = async () => (await server.post('/v1/completions', completion)).body.choices[0].text;

  test('they are listed, loaded by id, and answer under their own names', async () => {
    const listed = (await server.get('/v1/models')).body;
    assert.equal(listed.loaded, 'small');
    assert.deepEqual(listed.available, ['other', 'small', 'tiny', 'torn']);
    assert.deepEqual(await load(server, 'tiny').then((r) => r.body), { object: 'model', id: 'tiny', loaded: true });
    assert.deepEqual((await server.get('/models')).body, [{ object: 'models', id: 'tiny' }]);
    assert.equal((await server.post('/v1/completions', completion)).body.model, 'tiny');
    assert.equal((await server.post('/v1/completions', { ...completion, model: 'small' })).status, 404);
    assert.deepEqual(await load(server, 'other').then((r) => r.body), { object: 'model', id: 'other', loaded: true });
    assert.equal((await load(server, 'small')).status, 200);
    assert.equal((await server.post('/v1/completions', { ...completion, model: 'small' })).status, 200);
  });

  test('whatever is wrong with a load, the old model goes on serving', async () => {
    const expected = await text();
    const file = (model_filename, more = {}) => server.post('/loadmodel', { model_filename, ...more });
    const rows = [
      [await file('/etc/passwd'), 403, /folder model.root/],
      [await file('../../../etc/passwd'), 403, /folder model.root/],
      [await file('link.pth'), 403, /folder model.root/],
      [await file('link'), 403, /folder model.root/],
      [await file('\u0000'), 403, /folder model.root/],
      [await file('absent.pth'), 404, /absent\.pth/],
      [await file(join(models, 'absent')), 404, /absent/],
      [await file('torn.safetensors'), 400, /torn\.safetensors/],
      [await file('words.txt'), 400, /words\.txt/],
      [await file('tiny', { model_strategy: 'cuda fp16i8 *20+' }), 400, /available: fp32, fp16, bf16/],
      [await file('tiny', { model_strategy: 'what' }), 400, /available: fp32, fp16, bf16/],
      [await file('tiny', { model_strategy: 'cuda:7 fp16' }), 400, /cuda:7 is not available/],
      [await file('tiny', { template: 'chatml' }), 400, /template/],
      [await file('tiny', { adapter_filename: 'a.pth' }), 404, /no such adapter: 'a\.pth'/],
      [await file('tiny', { adapter_filename: '/etc/passwd' }), 403, /folder model.root/],
      [await file(''), 400, /model_filename/],
    ];
    for (const [answer, status, words] of rows) {
      assert.equal(answer.status, status, JSON.stringify(answer.body));
      assert.match(answer.body.detail, words);
      assert.equal(answer.body.error, answer.body.detail);
    }
    const outside = 'the model file must be in the folder model.root';
    for (const [id, status, error] of [
      ['absent', 404, 'unknown model: absent'], ['words.txt', 404, 'unknown model: words.txt'], ['link', 403, outside],
      ['link.pth', 403, outside], ['../outside', 403, outside], ['/etc/passwd', 403, outside], ['\u0000', 403, outside],
    ]) {
      const answer = await load(server, id);
      assert.deepEqual([answer.status, answer.body], [status, { error }], id);
    }
    assert.equal((await load(server, 'torn')).status, 400);
    const { body } = await server.get('/v1/models');
    assert.equal(body.loaded, 'small');
    assert.equal(await text(), expected);
  });

  test('a load brings its name, its defaults and its end text, and the strategy is shown', async () => {
    const answer = await server.post('/loadmodel', {
      model_filename: join(models, 'tiny.safetensors'), model_viewname: 'My model', model_strategy: 'bf16',
      default_temperature: '0', default_top_p: '0.5', template: 'world', endtoken: '\\n\\nUser:',
    });
    assert.deepEqual(answer.body, { status: 'success' });
    const { data } = (await server.get('/v1/models')).body;
    assert.equal(data[0].id, 'My model');
    assert.equal(data[0].rwkv.strategy, 'cpu bf16');
    assert.deepEqual((await server.get('/health')).body.model, { id: 'My model', strategy: 'cpu bf16' });
    const chat = { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 12 };
    const first = (await server.post('/v1/chat/completions', chat)).body;
    assert.equal(first.model, 'My model');
    for (let i = 0; i < 3; ++i)  // temperature 0 is the default now
      assert.deepEqual((await server.post('/v1/chat/completions', { ...chat, model: 'tiny' })).body.choices, first.choices);
    const switched = await server.post('/switch-model', { model: 'small', strategy: 'cpu fp32', tokenizer: '', customCuda: 'false' });
    assert.equal(switched.body, 'success');
    assert.equal((await server.get('/health')).body.model.strategy, 'cpu fp32');
    assert.equal((await load(server, 'small')).status, 200);
  });

  test('adapters are merged while a model loads: one file, or the two of PiSSA', async () => {
    const key = 'blocks.1.att.key';
    const pair = (before, value) => ({ [`${key}.${before}lora_A`]: [[2, 64], value], [`${key}.${before}lora_B`]: [[64, 2], value] });
    writeFileSync(join(models, 'trained.safetensors'), filled(pair('', 0.5)));
    writeFileSync(join(models, 'start.safetensors'), filled(pair('init_', 0.25)));
    const merged = async (adapter_filename, more = {}) => {
      const answer = await server.post('/loadmodel', { model_filename: 'tiny', adapter_filename, ...more });
      const { identity } = (await server.get('/v1/models')).body.data[0].rwkv;
      return answer.status === 200 ? identity : answer.body.detail;
    };
    const plain = await merged('');
    const both = await merged(['trained.safetensors', 'start.safetensors'], { adapter_mode: 'pissa' });
    const lora = await merged('trained.safetensors', { adapter_scaling: '2.0', adapter_mode: 'lora' });
    assert.equal(new Set([plain, both, lora]).size, 3);
    const inspected = spawnSync(binary, ['inspect', join(models, 'tiny.safetensors'), '--vocab', 'bytes',
      '--adapter', join(models, 'trained.safetensors'), '--adapter', join(models, 'start.safetensors')], { encoding: 'utf8' });
    assert.match(inspected.stdout, new RegExp(`identity +${both}`));
    assert.match(await merged('trained.safetensors', { adapter_mode: 'pissa', adapter_scaling: 2 }), /adapter_scaling on \/loadmodel.*init_lora_A too/);
    assert.match(await merged('start.safetensors'), /start of a PiSSA adapter/);
    assert.match(await merged(['trained.safetensors', '/etc/passwd']), /folder model.root/);
    assert.equal(await merged(''), plain);
    for (const name of ['trained', 'start']) rmSync(join(models, `${name}.safetensors`));
    await load(server, 'small');
  });

  test('a session goes on where its model is, and is refused with both named elsewhere', async () => {
    const turn = (prompt, session_id = 'anna') => server.post('/v1/completions', { ...completion, session_id, prompt });
    await turn('Hello', 'carla');
    const undisturbed = (await turn(' again', 'carla')).body.choices[0].text;
    assert.equal((await turn('Hello')).body.session.version, 1);
    const before = (await server.get('/v1/models')).body.data[0].rwkv.identity;
    await load(server, 'tiny');
    const here = (await server.get('/v1/models')).body.data[0].rwkv.identity;
    const refused = await turn(' again');
    assert.equal(refused.status, 409);
    assert.equal(refused.body.error.code, 'model_mismatch');
    for (const identity of [before, here]) assert.ok(refused.body.error.message.includes(identity));
    assert.equal((await turn('Hello', 'bob')).body.session.version, 1);
    await load(server, 'small');
    const next = await turn(' again');
    assert.equal(next.body.session.version, 2);
    assert.equal(next.headers.get('x-session-state'), 'continued');
    assert.equal(next.body.choices[0].text, undisturbed);
    await load(server, 'tiny');
    assert.equal((await turn(' again', 'bob')).body.session.version, 2);
    assert.equal((await turn('!')).status, 409);
    assert.equal((await server.get('/health')).body.sessions.rebuilt, 0);  // the states were there: nothing was fed again
    await load(server, 'small');
  });

  test('fifty streams and twenty switches: each ends as its own model has it, and nothing is left behind', async () => {
    const expected = {};
    for (const model of ['tiny', 'small', 'tiny', 'small']) {
      await load(server, model);
      expected[model] = await text();
    }
    assert.notEqual(expected.tiny, expected['small']);
    const settled = () => server.counters((h) => h.requests.running + h.requests.waiting === 0);
    await settled();
    const begin = await held(server);

    const seen = { tiny: 0, 'small': 0 };
    let switching = true;
    const client = async () => {
      do {
        const answer = await (await stream(server)).end;
        assert.equal(answer.error, undefined);
        assert.equal(answer.text, expected[answer.model], answer.model);
        ++seen[answer.model];
      } while (switching);
    };
    const clients = Array.from({ length: 50 }, client);
    for (let i = 0; i < 20; ++i) {
      const model = i % 2 ? 'small' : 'tiny';
      assert.equal((await load(server, model)).body.id, model);
    }
    switching = false;
    await Promise.all(clients);
    assert.ok(seen.tiny > 0 && seen['small'] > 0, JSON.stringify(seen));

    // The tiny model with its slots takes 18 MiB, so that ten that stayed would take 180: a third of that is more than
    // allocators keep. (A sanitizer keeps what was freed.)
    const unloaded = () => server.lines.filter((l) => l.includes('"msg":"model unloaded"')).length;
    const retired = () => server.lines.filter((l) => l.includes('"msg":"model retired"')).length;
    for (let tries = 0; tries < 3000 && unloaded() < retired(); ++tries) await new Promise((r) => setTimeout(r, 10));
    assert.equal(unloaded(), retired());
    let end = await held(server);
    for (let tries = 0; tries < 500 && end.descriptors > begin.descriptors; ++tries) end = await held(server);
    assert.ok(end.descriptors <= begin.descriptors, `${begin.descriptors} descriptors, then ${end.descriptors}`);
    assert.ok(short || end.bytes < begin.bytes + 60 * 2 ** 20, `${begin.bytes} bytes, then ${end.bytes}`);
  });

  const two = (...more) => serve('--device', 'cpu', '--model', small, '--model-root', models, '--slots', '2', ...quiet, ...more);
  /** What the only model of a server has taken. */
  const taken = async (server) => {
    const { body } = await server.get('/v1/server/status');
    assert.equal(body.models.length, 1);
    const { weight_bytes, activation_bytes, workspace_bytes, slot_bytes, total_bytes } = body.models[0].memory;
    assert.equal(total_bytes, weight_bytes + activation_bytes + workspace_bytes + 2 * slot_bytes);
    return total_bytes;
  };
  const bytes = {};
  /** A server with one byte less than the small model and the tiny one take together. */
  const tightly = (...more) => two('--set', `model.memory_bytes_max=${bytes.small + bytes.tiny - 1}`, ...more);

  test('what a model will take is what it then takes: it is loaded with as many bytes left', async () => {
    const roomy = await two();
    bytes.small = await taken(roomy);
    const ready = JSON.parse(roomy.lines.find((l) => l.includes('"msg":"engine ready"')));
    assert.equal(ready.total_bytes, bytes.small);
    assert.equal((await load(roomy, 'tiny')).status, 200);
    await roomy.says('model unloaded');
    bytes.tiny = await taken(roomy);
    assert.equal((await roomy.stop()).code, 0);

    const exact = await two('--set', `model.memory_bytes_max=${bytes.small + bytes.tiny}`);
    assert.equal((await load(exact, 'tiny')).status, 200);
    assert.equal((await exact.stop()).code, 0);
  });

  test('what does not fit beside the old model is refused with bytes, and fits when that is gone', async () => {
    const tight = await tightly();
    const refused = await load(tight, 'tiny');
    assert.equal(refused.status, 507, JSON.stringify(refused.body));
    assert.ok(refused.body.error.includes(`needs about ${bytes.tiny} bytes, but only ${bytes.tiny - 1} are free; loaded models use ${bytes.small}, unload`), refused.body.error);
    assert.equal((await tight.post('/v1/completions', completion)).body.model, 'small');
    assert.equal((await tight.post('/removemodel', {})).status, 200);
    await tight.says('model unloaded');
    assert.equal((await load(tight, 'tiny')).status, 200);
    assert.equal((await tight.stop()).code, 0);
  });

  test('tuned states of the configuration are loaded with every model that they fit', async () => {
    const tuned = ['--states-dir', oracle, '--set', 'model.tuned_states=poet=models/state-tiny-7v0.pth'];
    const server = await serve('--device', 'cpu', '--model', join(models, 'tiny.safetensors'), '--model-root', models, ...tuned, ...quiet);
    const ids = async () => (await server.get('/models')).body.map(({ id }) => id);
    assert.deepEqual(await ids(), ['tiny', 'tiny poet']);
    assert.equal((await load(server, 'small')).status, 200);
    assert.deepEqual(await ids(), ['small']);
    assert.equal((await server.says('a tuned state was skipped')).state, 'poet=models/state-tiny-7v0.pth');
    assert.equal((await load(server, 'tiny')).status, 200);
    assert.deepEqual(await ids(), ['tiny', 'tiny poet']);
    assert.equal((await server.stop()).code, 0);
  });

  test('where only one fits, the old one goes first and requests wait', async () => {
    const tight = await tightly('--set', 'model.switch=replace');
    const running = await stream(tight, { max_tokens: 200 });
    const loaded = load(tight, 'tiny');
    await tight.says('model retired');
    const waiting = [1, 2, 3].map(() => tight.post('/v1/completions', completion));
    assert.equal((await running.end).model, 'small');
    assert.deepEqual((await loaded).body, { object: 'model', id: 'tiny', loaded: true });
    for (const { status, body } of await Promise.all(waiting)) assert.deepEqual([status, body.model], [200, 'tiny']);

    // One that cannot be read: the old one comes back, and who waited gets that.
    const broken = load(tight, 'torn');
    const patient = tight.post('/v1/completions', completion);
    assert.equal((await broken).status, 400);
    assert.deepEqual([(await patient).status, (await patient).body.model], [200, 'tiny']);
    assert.equal((await tight.stop()).code, 0);
  });
});

describe('loads and ticks that last as long as they have to', () => {
  const slow = ['--device', 'fake', '--set', 'engine.fake_tick_us=2000', ...quiet];
  const endless = { max_tokens: 1_000_000, prompt: 'x' };

  test('while a model loads the old one serves, readiness tells how far it is, and a second load is refused', async (t) => {
    const vocabulary = unfinished(t);
    const server = await startServer(...slow, '--vocab', vocabulary.path);
    await vocabulary.finish(bytesOfWorld);
    await server.says('ready');
    const first = load(server, 'fake');
    await server.counters((now) => now.loading !== undefined);
    assert.deepEqual((await server.get('/readyz')).body, { status: 'ok', loading: { model: 'fake', percent: 0 } });
    assert.equal((await server.post('/v1/completions', { prompt: 'x', max_tokens: 2 })).status, 200);
    const second = await load(server, 'fake');
    assert.equal(second.status, 409);
    assert.match(second.body.error, /'fake' is being loaded/);
    await vocabulary.finish(bytesOfWorld);
    assert.equal((await first).status, 200);

    // A load that breaks off leaves all as it was.
    const broken = load(server, 'fake');
    await vocabulary.finish('no vocabulary');
    assert.equal((await broken).status, 400);
    assert.deepEqual((await server.get('/readyz')).body, { status: 'ok' });
    assert.equal((await server.post('/v1/completions', { prompt: 'x', max_tokens: 2 })).status, 200);

    // The end of the server does not wait for a load.
    const late = load(server, 'fake').catch((e) => e);
    const running = await stream(server, { prompt: 'x', max_tokens: 100 });
    server.process.kill('SIGTERM');
    const answer = await late;
    assert.ok(answer.status === 503 || answer instanceof Error, JSON.stringify(answer.body));
    assert.equal((await running.end).chunks.at(-1).choices[0].finish_reason, 'length');
    assert.deepEqual(await server.end(), { code: 0, signal: null });
  });

  test('who runs or waits on the old model ends there; by force they hear an error', async () => {
    const server = await serve(...slow, '--slots', '1');
    const running = await stream(server, { ...endless, max_tokens: 400 });
    const waiting = server.post('/v1/completions', { prompt: 'y', max_tokens: 3 });
    await server.counters((h) => h.requests.waiting === 1);
    assert.equal((await load(server, 'fake')).status, 200);
    // The new model has a slot of its own.
    assert.equal((await server.post('/v1/completions', { prompt: 'z', max_tokens: 3 })).status, 200);
    assert.equal((await running.end).chunks.at(-1).choices[0].finish_reason, 'length');
    assert.equal((await waiting).status, 200);
    await server.says('model unloaded');

    const cut = await stream(server, endless);
    const queued = server.post('/v1/completions', { prompt: 'y', max_tokens: 3 });
    await server.counters((h) => h.requests.waiting === 1);
    assert.equal((await load(server, 'fake', { force: true })).status, 200);
    const { error } = await cut.end;
    assert.equal(error.type, 'service_unavailable');
    assert.match(error.message, /unloaded by force/);
    const refused = await queued;
    assert.equal(refused.status, 503);
    assert.match(refused.body.error.message, /unloaded by force/);
    assert.equal((await server.post('/v1/completions', { prompt: 'z', max_tokens: 3 })).status, 200);

    // The drain knows both devices.
    const old = await stream(server, endless);
    assert.equal((await server.post('/removemodel', '')).status, 200);
    assert.deepEqual((await server.get('/readyz')).body, { status: 'unavailable', reason: 'no model is loaded' });
    assert.equal((await server.post('/v1/completions', { prompt: 'z' })).status, 503);
    server.process.kill('SIGTERM');
    await server.says('draining');
    server.process.kill('SIGTERM');
    assert.equal((await old.end).chunks.at(-1).choices[0].finish_reason, 'length');
    assert.deepEqual(await server.end(), { code: 0, signal: null });
  });

  test('an unused model is unloaded, and loaded again for a request', async () => {
    const server = await serve(...slow, '--set', 'model.idle_unload_s=1');
    const running = await stream(server, { ...endless, max_tokens: 1500 });  // three seconds and more of use
    await running.end;
    assert.ok(!server.lines.some((l) => l.includes('"msg":"model retired"')));
    await server.counters((h) => h.model === null);
    assert.deepEqual((await server.get('/readyz')).body, { status: 'ok' });
    // Requests that arrive now wait until it is loaded.
    const both = [1, 2].map(() => server.post('/v1/completions', { prompt: 'x', max_tokens: 2 }));
    for (const answer of await Promise.all(both)) assert.equal(answer.status, 200);
    assert.equal(server.lines.filter((l) => l.includes('"msg":"model ready"')).length, 2);
    assert.equal((await server.stop()).code, 0);
  });
});
