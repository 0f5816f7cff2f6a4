// Models of every version and weights of every format behind the same API: the text of a prompt does not depend on how it
// is fed, sessions keep their states and survive a restart, and models of different versions are resident at once.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { noOracle, oracle, serve } from './support.mjs';

const quiet = ['--log-format', 'json', '--set', 'drain.grace_ms=0'];

function folder() {
  const path = mkdtempSync(join(tmpdir(), 'skein-versions-'));
  after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const files = { four: 'tiny-4v0.safetensors', five: 'tiny-5v2.safetensors', six: 'tiny-6v0-fp16.pth', seven: 'tiny-7v0.safetensors' };
const versions = { four: '4', five: '5.2', six: '6', seven: '7' };
const prompt = 'In a village of La Mancha, the name of which I have no desire to call to mind';
const greedy = { temperature: 0, ignore_eos: true, max_tokens: 24 };

describe('every version', { skip: noOracle }, () => {
  const models = folder();
  const state = folder();
  const start = () => serve('--device', 'cpu', '--model', join(models, 'seven.safetensors'), '--model-root', models, '--slots', '8',
    '--state-dir', state, '--set', 'model.resident_max=4', ...quiet);
  let server;
  before(async () => {
    for (const [name, file] of Object.entries(files)) copyFileSync(join(oracle, 'models', file), join(models, name + file.slice(file.lastIndexOf('.'))));
    server = await start();
    for (const model of Object.keys(files)) assert.equal((await server.post('/v1/model/load', { model })).status, 200);
  });
  after(async () => assert.equal((await server.stop()).code, 0));

  const complete = async (model, fields) => {
    const { status, body } = await server.post('/v1/completions', { model, ...greedy, ...fields });
    assert.equal(status, 200, JSON.stringify(body));
    return body.choices[0].text;
  };

  test('is resident beside the others and answers as itself, at once', async () => {
    const { data } = (await server.get('/v1/models')).body;
    for (const [id, version] of Object.entries(versions)) assert.equal(data.find((m) => m.id === id).rwkv.version, version);
    const alone = {};
    for (const model of Object.keys(files)) alone[model] = await complete(model, { prompt });
    assert.equal(new Set(Object.values(alone)).size, 4);
    const crowd = await Promise.all([...Object.keys(files), ...Object.keys(files)].map((model) => complete(model, { prompt })));
    assert.deepEqual(crowd, [...Object.values(alone), ...Object.values(alone)]);
  });

  test('keeps its sessions: two turns with a restart between them give the text of one prompt', async () => {
    const cut = 30;
    const joined = `${prompt.slice(0, cut)}\n\n${prompt.slice(cut)}`;  // an empty line separates turns
    const whole = {};
    for (const model of Object.keys(files)) {
      whole[model] = await complete(model, { prompt: joined, use_prefix_cache: false });
      await complete(model, { prompt: prompt.slice(0, cut), session_id: `of-${model}`, max_tokens: 0 });
    }
    assert.equal((await server.stop()).code, 0);
    server = await start();
    for (const model of Object.keys(files)) {
      assert.equal((await server.post('/v1/model/load', { model })).status, 200);
      assert.equal(await complete(model, { prompt: prompt.slice(cut), session_id: `of-${model}` }), whole[model], model);
    }
  });

  test('refuses the sessions of another', async () => {
    const { status, body } = await server.post('/v1/completions', { model: 'six', prompt: 'a', session_id: 'of-four', ...greedy });
    assert.equal(status, 409, JSON.stringify(body));
  });

  test('runs in every format, and the format is shown', async () => {
    for (const [strategy, dtype] of [['int8', 'int8'], ['quant', 'nf4'], ['int4', 'int4'], ['fp8', 'fp8'], ['fp6', 'int8'], ['cpu fp32', 'fp32']]) {
      for (const model of Object.keys(files)) {
        const answer = await server.post('/loadmodel', { model_filename: model, model_strategy: strategy });
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
        assert.equal((await server.get('/health')).body.model.strategy, `cpu ${dtype}`);
        assert.equal((await complete(model, { prompt })).length > 0, true);
      }
    }
  });
});
