// check-config refuses exactly what serve refuses: both commands get the same settings, row by row of a table, and must
// agree in exit code and message. On the CPU and on an emulated GPU, with the tiny models.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { binary, noOracle, oracle, serve } from './support.mjs';

const emulated = process.env.SKEIN_EMULATED;  // a library in the place of libskein_cuda.so; none in builds without one
const folder = mkdtempSync(join(tmpdir(), 'skein-check-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const at = (name) => join(folder, name);
const model = (name) => oracle && join(oracle, 'models', name);

process.env.SKEIN_CUDA_LIBRARY = '/nonexistent/libskein_cuda.so';
const quiet = ['log.format=json', 'drain.grace_ms=0', 'server.port=0'];
const small = ['engine.slots=2', 'engine.max_tick_tokens=64', 'engine.threads=1'];
const words = (settings) => [...quiet, ...settings].flatMap((one) => ['--set', one]);

/** The exit code and the last line of each command; serve is stopped when it is ready. */
function verdict_of_check(settings) {
  const { status, stderr } = spawnSync(binary, ['check-config', ...words(settings)], { encoding: 'utf8' });
  return { code: status, why: status === 0 ? '' : stderr.trim().split('\n').at(-1).replace(/^skein: /, '') };
}
async function verdict_of_serve(settings) {
  try {
    const server = await serve(...words(settings));
    return { code: (await server.stop()).code, why: '' };
  } catch (ended) {
    const [, code, lines] = ended.message.match(/^skein ended with (\d+)[^\n]*\n([^]*)$/);
    const last = lines.trim().split('\n').at(-1);
    return { code: Number(code), why: last.startsWith('{') ? JSON.parse(last).why : last.replace(/^skein: /, '') };
  }
}

/** Each row: the exit code that both have, and settings. */
async function agree(rows, shared = []) {
  const wrong = [];
  for (const [code, ...settings] of rows) {
    const all = [...small, ...shared, ...settings];
    const checked = verdict_of_check(all), served = await verdict_of_serve(all);
    if (checked.code !== code || checked.code !== served.code || checked.why !== served.why) wrong.push({ settings, code, checked, served });
  }
  assert.deepEqual(wrong, []);
}

const formats = ['auto', 'fp32', 'bf16', 'fp16', 'int8', 'int8-32', 'int8-128', 'fp8', 'int4', 'int4-32', 'int4-128', 'nf4', 'nf4-32', 'nf4-128'];
const refused_formats = ['fp6', 'fp8-32', 'fp8-64', 'fp8-128', 'int3', 'int8-16', 'int8-64', 'INT8', ''];
const rules = ['head=int8', 'ffn.*=nf4', 'ffn.*@0-1=int8-32', 'ffn.*=fp8', 'att.key@0=int4', '*=int4-128', 'head=fp16', 'ffn.*=int8,head=nf4'];
const refused_rules = ['ffn.*', '=int8', 'ffn.*=', 'ffn.*=int5', 'ffn.*=int8-16', 'ffn.*@=int8', 'ffn.*@3-1=int8', 'ffn.*@a-b=int8', 'ffn.*@0-4294967295=int8', 'emb=int8', 'ffn.kye=int8', 'blocks.0.att.key=int8', 'ffn.key@77=int8', 'att.gate=int8', 'att.w1=int8', 'head=int8,att.w0=int8'];

describe('check-config and serve agree', { skip: noOracle }, () => {
  const tiny = oracle && [`model.path=${model('tiny-7v0.pth')}`];

  before(() => {
    writeFileSync(at('torn.pth'), 'x');
    writeFileSync(at('torn.keys'), 'alice\n', { mode: 0o600 });
    writeFileSync(at('open.keys'), '');
    chmodSync(at('open.keys'), 0o646);
    for (const [to, dtype] of [['int8', 'int8'], ['half', 'fp16']]) {
      const { status, stderr } = spawnSync(binary, ['convert', model('tiny-7v0.pth'), at(`${to}.safetensors`), '--dtype', dtype], { encoding: 'utf8' });
      assert.equal(status, 0, stderr);
    }
  });

  test('about formats of weights and states on the CPU', async () => {
    const cpu = [...tiny, 'engine.device=cpu'];
    await agree(formats.map((name) => [0, `engine.dtype=${name}`]), cpu);
    await agree(refused_formats.map((name) => [64, `engine.dtype=${name}`]), cpu);
    await agree(rules.map((rule) => [0, `engine.weight_format=${rule}`]), cpu);
    await agree(refused_rules.map((rule) => [64, `engine.weight_format=${rule}`]), cpu);
    await agree([
      [0, 'engine.dtype=int4', 'engine.weight_format=head=fp16'],
      [64, 'engine.state_dtype=fp16'],
      [64, 'engine.state_dtype=bf16'],
      [64, 'engine.invariance=sometimes'],
      [0, 'engine.invariance=strict'],
    ], cpu);
  });

  test('about files that are quantised already', async () => {
    const converted = [`model.path=${at('int8.safetensors')}`, 'engine.device=cpu'];
    await agree([
      [0], [0, 'engine.dtype=int8'], [64, 'engine.dtype=int4'], [64, 'engine.dtype=fp16'], [64, 'engine.weight_format=head=int8'],
    ], converted);
    await agree([[0], [0, 'engine.dtype=int4'], [0, 'engine.weight_format=head=int8']], [`model.path=${at('half.safetensors')}`, 'engine.device=cpu']);
  });

  test('about lists of devices', async () => {
    await agree([
      [0, 'engine.device=auto'],
      [0, 'engine.device=cpu,cpu'],
      [69, 'engine.device=cuda'],
      [69, 'engine.device=cuda:0,cuda:1'],
      [69, 'engine.device=cuda:0+1'],
      [64, 'engine.device=cuda:99999999999'],
      [69, 'engine.device=hip:7'],
      [69, 'engine.device=hip'],
      [64, 'engine.device=tpu'],
      [64, 'engine.device=cpu,cuda:0'],
      [64, 'engine.device=auto,auto'],
      [64, 'engine.device=cpu:0'],
      [64, 'engine.device='],
    ], tiny);
  });

  test('about models, adapters, vocabularies, tuned states and secrets', async () => {
    const cpu = ['engine.device=cpu'];
    await agree([
      [66, `model.path=${at('absent.pth')}`],
      [65, `model.path=${at('torn.pth')}`],
      [0, `model.path=${model('tiny-7v0')}`],  // the extension is optional
    ], cpu);
    await agree([
      [66, `model.adapters=${at('absent.pth')}`],
      [66, `model.adapters=${at('absent.pth')}:0.5`],
      [65, `model.adapters=${at('torn.pth')}`],
      [64, `model.adapters=${at('torn.pth')}:99999`],
      [64, 'model.adapters=:1'],
      [65, `model.adapters=${model('tiny-6v0-fp16.pth')}`],
      [66, `model.vocab=${at('absent.txt')}`],
      [65, `model.vocab=${at('torn.pth')}`],
      [65, `model.vocab=${join(oracle, 'rwkv_vocab_v20230424.txt')}`],
      [0, 'model.vocab=bytes'],
      [66, `model.states_dir=${at('absent')}`],
      [78, 'model.tuned_states=poet=state-tiny-7v0.pth'],
      [78, 'model.tuned_states=poet', `model.states_dir=${model('')}`],
      [0, 'model.tuned_states=poet=state-tiny-7v0.pth', `model.states_dir=${model('')}`],
      [65, 'model.tuned_states=poet=state-tiny-6v0.pth', `model.states_dir=${model('')}`],
      [66, 'model.tuned_states=poet=absent.pth', `model.states_dir=${model('')}`],
      [75, 'model.tuned_states=poet=state-tiny-7v0.pth', `model.states_dir=${model('')}`, 'model.tuned_states_max=0'],
      [66, `server.keys_file=${at('absent.keys')}`],
      [78, `server.keys_file=${at('torn.keys')}`],
      [78, `server.keys_file=${at('open.keys')}`],
      [66, `server.password_file=${at('absent.password')}`],
      [78, `server.tls_certificate=${at('torn.pth')}`, `server.tls_key=${at('torn.pth')}`],
      [78, `server.tls_certificate=${at('torn.pth')}`],
      [78, 'server.tls_port=0'],
      [64, `server.state_dir=${at('torn.pth')}`],
    ], [...tiny, ...cpu]);
  });

  test('about formats, states and lists of devices on a GPU', { skip: !emulated && 'no emulated GPU' }, async (t) => {
    process.env.SKEIN_CUDA_LIBRARY = emulated;
    t.after(() => (process.env.SKEIN_CUDA_LIBRARY = '/nonexistent/libskein_cuda.so'));
    const gpu = [...tiny, 'engine.device=cuda'];
    await agree(['auto', 'fp32', 'bf16', 'int8', 'fp8', 'int4-32', 'nf4-128'].map((name) => [0, `engine.dtype=${name}`]), gpu);
    await agree([
      [64, 'engine.dtype=fp6'],
      [0, 'engine.weight_format=ffn.*@0-1=int8-32'],
      [64, 'engine.weight_format=ffn.*=int5'],
      [0, 'engine.dtype=fp32', 'engine.weight_format=head=int8'],
      [0, 'engine.state_dtype=fp16'],
      [0, 'engine.device=cuda:0,cuda:0'],
      [69, 'engine.device=cuda:9'],
      [69, 'engine.device=cuda:0+1'],
      [0, `model.path=${at('int8.safetensors')}`],
      [0, `model.path=${at('half.safetensors')}`],
      [0, `model.path=${model('tiny-7v0-bf16.pth')}`],
    ], gpu);
  });
});
