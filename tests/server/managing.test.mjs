// The routes of the older servers that make no text, as a table: models that come and go, tuned states and their
// mixtures, what the server tells of itself, orders, counts. Each documented request as it stands and in variants, then
// what is wrong with it; every answer is checked field by field. (What models and states do to answers:
// models.test.mjs and states.test.mjs; sessions: conformance.test.mjs.)
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { anything, hasShape, is, isCount, isText, like } from './shapes.mjs';
import { noOracle, oracle, root, serve } from './support.mjs';

const auth = { authorization: 'Bearer secret' };
const folder = mkdtempSync(join(tmpdir(), 'skein-managing-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const documented = readFileSync(join(root, 'tests/server/requests.jsonl'), 'utf8').trim().split('\n').map((l) => JSON.parse(l));
const request = (name) => documented.find((r) => r.name === name).body;

// ---------------------------------------------------------------- what answers look like

const isList = (x) => assert.ok(Array.isArray(x));
const isTruth = (x) => assert.equal(typeof x, 'boolean');
const isNumber = (x) => assert.equal(typeof x, 'number');
const isBytes = (x) => assert.ok(x === null || (Number.isInteger(x) && x >= 0));

const success = is({ status: 'success' });
const detail = (words) => (body) => {
  hasShape(body, { detail: like(words), error: like(words) });
  assert.equal(body.detail, body.error);
};
const flat = (words) => (body) => hasShape(body, { error: like(words) });
const loaded = (id) => is({ object: 'model', id, loaded: true });

const work = {
  id: isText, endpoint: isText, model: isText, created: isCount, prompt_tokens: isCount, prefilled_tokens: isCount,
  generated_tokens: isCount, max_tokens: isCount, stop_requested: isTruth, pause_requested: isTruth, prefill_progress: isNumber,
  prefill_speed: isNumber, decode_speed: isNumber, 'finished?': is(true), 'state_key?': isText,
};
const memory = { weight_bytes: isCount, activation_bytes: isCount, workspace_bytes: isCount, slot_bytes: isCount, total_bytes: isCount };
const load = { slots: isCount, slots_used: isCount, requests: isCount, waiting: isCount, memory };
const status = {
  status: is('running'), api_version: isText, engine_version: isText,
  model: { id: isText, name: isText, path: isText, device: isText, weight_type: isText },
  models: (all) => {
    for (const each of all) {
      hasShape(each, { id: isText, device: isText, weight_type: isText, ...load, devices: isList });
      for (const device of each.devices) hasShape(device, { id: isCount, name: isText, status: is('running'), ...load });
    }
  },
  capabilities: {
    chat_messages: isTruth, completion: isTruth, batch_completion: isTruth, stream: isTruth, stop: isTruth, token_count: isTruth,
    metrics: isTruth, think_type: isTruth, concurrent_generation: isTruth, chunk_prefill: isTruth, session_cache: isTruth, pause_resume: isTruth,
  },
  prefill_chunk_size: isCount,
  prefill_queue: {
    hard_max_bsz: isCount, dynamic_max_bsz: isCount, reserved_bsz: isCount, available_bsz: isCount, queued_requests: isCount,
    free_vram_bytes: isBytes, total_vram_bytes: isBytes, reserve_vram_bytes: isBytes, bytes_per_bsz: isBytes,
  },
  active_request: anything, active_requests: isList, last_request: anything, paused_requests: isList,
};
const card = { id: isText, object: is('model'), created: isCount, owned_by: isText, root: is('RWKV tiny base'), parent: is(null), status: is('loaded'), rwkv: anything };

// ---------------------------------------------------------------- the table

const loadTiny = request('loadmodel');
const quant = request('loadmodel-quant');
const loadState = request('loadstatemodel');
const available = /available: fp32, fp16, bf16/;
/** Spelled as the older servers have it. */
const quantised = [
  'quant', 'nf4', 'int8', 'bf16i8', 'fp16i8', 'fp8', 'fp6', 'fp5', 'fp5c', 'attn_int8_ffn_int4', 'int4', 'bnb_int4', 'attn_int8_ffn_fp5',
  'attn_int8_ffn_fp6', 'attn_fp8_ffn_int4', 'hqq4', 'gemlite', 'cutlass', 'cpu fp32i8', 'cpu fp16i8 *2 -> cpu fp16', 'quant=8 quant_type=Int8 precision=Fp16',
];
/** Known to the older servers too; not built, and none may run as something else. */
const notBuilt = ['cuda fp16i8 *20+', 'cuda fp16i8 *20 -> cpu fp32', 'cuda:0 fp16 *20 -> cuda:1 fp16'];

/** [path, what it shows, body, status, check]. In order: what one row loads, those after it use. GET where the body is null. */
const rows = [
  ['/loadmodel', 'as documented', loadTiny, 200, success],
  ['/models', 'the name that it was given', null, 200, is([{ object: 'models', id: 'RWKV tiny base' }])],
  ['/loadmodel', 'quantised, as documented', quant, 200, success],
  ...notBuilt.map((s) => ['/loadmodel', `strategy ${s}`, { ...loadTiny, model_strategy: s }, 400, detail(available)]),
  ['/loadmodel', 'a quantised form on a GPU', { ...loadTiny, model_strategy: 'cuda fp16i8' }, 400, detail(/cuda/)],
  ...[...quantised, 'None', 'fp16', 'cpu fp32', 'cpu bf16', 'albatross workers=1 batch=32', 'chirrup'].map((s) => ['/loadmodel', `strategy ${s}`, { ...loadTiny, model_strategy: s }, 200, success]),
  ['/loadmodel', 'no name, its own', { model_filename: 'models/tiny-7v0' }, 200, success],
  ['/models', 'the name of the file', null, 200, is([{ object: 'models', id: 'tiny-7v0' }])],
  ['/loadmodel', 'all fields, as texts', { ...loadTiny, default_temperature: '0.5', default_top_p: '0.25', template: 'world', endtoken: '\\n\\n', adapter_filename: '', adapter_mode: '', adapter_scaling: '2.0', rope_theta: '1e6', rms_norm_eps: 1e-6 }, 200, success],
  ['/loadmodel', 'no file', { model_viewname: 'x' }, 400, detail(/model_filename/)],
  ['/loadmodel', 'a number for a file', { ...loadTiny, model_filename: 7 }, 400, detail(/model_filename/)],
  ['/loadmodel', 'a file that is not there', { ...loadTiny, model_filename: 'models/absent.pth' }, 404, detail(/absent/)],
  ['/loadmodel', 'a file elsewhere', { ...loadTiny, model_filename: '/etc/passwd' }, 403, detail(/folder model.root/)],
  ['/loadmodel', 'a file that is no model', { ...loadTiny, model_filename: 'models/state-tiny-7v0.pth' }, 400, detail(/state-tiny-7v0/)],
  ['/loadmodel', 'an adapter', { ...loadTiny, adapter_filename: 'lora.pth' }, 404, detail(/no such adapter: 'lora.pth'/)],
  ['/loadmodel', 'an adapter elsewhere', { ...loadTiny, adapter_filename: '/etc/passwd' }, 403, detail(/folder model.root/)],
  ['/loadmodel', 'an adapter of an unknown kind', { ...loadTiny, adapter_filename: 'lora.pth', adapter_mode: 'x' }, 400, detail(/adapter_mode/)],
  ['/loadmodel', 'a temperature that is none', { ...loadTiny, default_temperature: 'hot' }, 400, detail(/default_temperature/)],
  ['/loadmodel', 'a cut body', '{"model_filename":', 400, detail(/./)],

  ['/v1/models', 'after all that is wrong', null, 200, (body) => {
    hasShape(body, { object: is('list'), data: isList, loaded: is('RWKV tiny base'), available: is(['second', 'tiny']) });
    hasShape(body.data[0], card);
    assert.equal(body.data[0].id, 'RWKV tiny base');
  }],
  ['/openai/v1/models', 'the same', null, 200, (body) => assert.equal(body.data[0].id, 'RWKV tiny base')],
  ['/v1/models/RWKV%20tiny%20base', 'one of them', null, 200, (body) => hasShape(body, card)],
  ['/v1/models/absent', 'another', null, 404, (body) => hasShape(body, { error: { message: isText, type: isText, param: anything, code: is('model_not_found') } })],

  ['/loadstatemodel', 'as documented', loadState, 200, success],
  ['/loadstatemodel', 'the same name again', { ...loadState, default_temperature: '0.8', default_top_p: 0.3 }, 200, success],
  ['/loadstatemodel', 'no name', { state_filename: 'models/state-tiny-7v0.pth' }, 400, detail(/state_viewname/)],
  ['/models', 'behind the model\'s name', null, 200, is([{ object: 'models', id: 'RWKV tiny base' }, { object: 'models', id: 'RWKV tiny base State Test' }])],
  ['/loadstatemodel', 'one of another shape', { ...loadState, state_filename: 'models/state-gen-7.pth' }, 400, detail(/state-gen-7/)],
  ['/loadstatemodel', 'one that is not there', { ...loadState, state_filename: 'absent.pth' }, 404, detail(/absent/)],
  ['/loadstatemodel', 'one elsewhere', { ...loadState, state_filename: '../../etc/passwd' }, 403, detail(/model\.states_dir/)],
  ['/loadstatemodel', 'no file', { state_viewname: 'x' }, 400, detail(/state_filename/)],
  ['/mrss_loadstatemodel', 'two, by weights', { state_viewname: 'duo', state_filenames: [loadState.state_filename, loadState.state_filename], state_gatingweight: [0.7, 0.3] }, 200, success],
  ['/mrss_loadstatemodel', 'the zero state with them, as texts', { state_viewname: 'trio', state_filenames: [loadState.state_filename], contain_originalstate: 'True', state_gatingweight: ['1', '2'] }, 200, success],
  ['/mrss_loadstatemodel', 'no weights', { state_viewname: 'duo', state_filenames: [loadState.state_filename] }, 200, success],
  ['/mrss_loadstatemodel', 'no files', { state_viewname: 'duo' }, 400, detail(/state_filenames/)],
  ['/mrss_set_gatingweight', 'by its bare name', { state_viewname: 'duo', state_gatingweight: [1] }, 200, success],
  ['/mrss_set_gatingweight', 'by the name in the list', { state_viewname: 'RWKV tiny base trio', state_gatingweight: [1, 0] }, 200, success],
  ['/mrss_set_gatingweight', 'one that is not there', { state_viewname: 'quartet', state_gatingweight: [1] }, 404, detail(/quartet/)],
  ['/mrss_set_gatingweight', 'too many weights', { state_viewname: 'duo', state_gatingweight: [1, 2, 3] }, 400, detail(/state_gatingweight/)],
  ['/removestatemodel', 'one', { state_viewname: 'duo' }, 200, success],
  ['/removestatemodel', 'one that is not there', { state_viewname: 'duo' }, 404, detail(/duo/)],
  ['/removestatemodel', 'as documented, all', request('removestatemodel'), 200, success],
  ['/removestatemodel', 'no body', '', 200, success],
  ['/models', 'none is left', null, 200, is([{ object: 'models', id: 'RWKV tiny base' }])],

  ['/healthcheck', 'well', null, 200, is({ message: 'ok', status_code: 200 })],
  ['/healthz', 'well', null, 200, is({ status: 'ok', model: 'RWKV tiny base' })],
  ['/v1/server/status', 'a server with nothing to do', null, 200, (body) => {
    hasShape(body, status);
    assert.deepEqual([body.active_request, body.active_requests, body.paused_requests], [null, [], []]);
  }],
  ['/v1/completions', 'something to tell of', { prompt: 'x', max_tokens: 3, ignore_eos: true }, 200, (body) => assert.equal(body.usage.completion_tokens, 3)],
  ['/v1/server/status', 'a server that has done something', null, 200, (body) => {
    hasShape(body.last_request, work);
    assert.deepEqual([body.last_request.finished, body.last_request.generated_tokens, body.last_request.endpoint], [true, 3, 'completions']);
  }],
  ['/v1/server/stop', 'nobody', {}, 200, is({ ok: true, stopped: false, active_request: null })],
  ['/v1/server/stop', 'one that is not there', { request_id: 'x' }, 200, is({ ok: true, stopped: false, active_request: null })],
  ['/v1/server/stop', 'no body', '', 200, is({ ok: true, stopped: false, active_request: null })],
  ['/v1/server/stop', 'a number for an id', { request_id: 7 }, 400, flat(/request_id/)],
  ['/v1/server/pause', 'nobody', {}, 200, is({ ok: true, paused: false, request_id: null, active_request: null })],
  ['/v1/server/resume', 'no id', {}, 400, flat(/request_id/)],
  ['/v1/server/resume', 'one that is not there', { request_id: 'x' }, 404, is({ error: 'Paused request not found' })],
  ['/v1/server/resume', 'by its other name', { session_id: 'x' }, 404, is({ error: 'Paused request not found' })],

  ['/v1/tokens/count', 'a text', { text: 'Hello' }, 200, is({ tokens: 5 })],
  ['/v1/tokens/count', 'with the tokens', { text: 'Hi', return_tokens: true }, 200, is({ tokens: 2, token_ids: [72, 105] })],
  ['/v1/tokens/count', 'several', { contents: ['Hello', 'Hi'] }, 200, is({ tokens: 7 })],
  ['/v1/tokens/count', 'a conversation', { messages: [{ role: 'user', content: 'Hi' }] }, 200, (body) => assert.ok(body.tokens > 'User: Hi'.length)],
  ['/v1/tokens/count', 'nothing', {}, 400, is({ error: 'Missing text or messages' })],
  ['/v1/tokens/count', 'a number', { text: 7 }, 400, flat(/text/)],

  ['/state/status', 'as documented, nothing', request('state-status'), 200, is({ status: 'success', total_sessions: 0, l1_cache_count: 0, l2_cache_count: 0, database_count: 0, sessions: [] })],
  ['/state/chat/completions', 'something to tell of', { contents: ['x'], session_id: 'kitchen-1', max_tokens: 2 }, 200, (body) => assert.equal(body.id, 'rwkv7-batch')],
  ['/multi_state/chat/completions', 'a branch of it', { contents: ['y'], session_id: 'kitchen-1', dialogue_idx: 1, max_tokens: 2 }, 200, (body) => assert.equal(body.dialogue_idx, 2)],
  ['/state/status', 'no body', '', 200, (body) => {
    hasShape(body, { status: is('success'), total_sessions: is(1), l1_cache_count: isCount, l2_cache_count: isCount, database_count: isCount, sessions: isList });
    hasShape(body.sessions[0], { session_id: is('kitchen-1'), cache_level: like(/^(L1 \(VRAM\)|L2 \(RAM\)|Database \(Disk\))$/), last_updated: isText, timestamp: isNumber, bytes: isCount, tokens: isCount });
  }],
  ['/state/status', 'unknown fields', { what: [1] }, 200, (body) => assert.equal(body.total_sessions, 1)],
  ['/state/status', 'a cut body', '{', 400, flat(/./)],
  ['/state/delete', 'as documented', request('state-delete'), 200, is({ status: 'success', message: 'Session kitchen-1 deleted successfully' })],
  ['/state/delete', 'again', request('state-delete'), 404, is({ status: 'not_found', message: 'Session kitchen-1 not found in database' })],
  ['/state/delete', 'with its branches', { session_id: 'kitchen-1', delete_prefix: true }, 200, is({ status: 'success', message: 'Session kitchen-1 deleted successfully' })],
  ['/state/delete', 'no id', {}, 400, is({ error: 'Missing session_id parameter' })],
  ['/state/delete', 'a number for an id', { session_id: 7 }, 400, flat(/session_id/)],
  ['/state/chat/completions', 'two prompts', { contents: ['x', 'y'], session_id: 'a' }, 500, is({ error: 'Server Error: Requst must be single prompt !' })],
  ['/v2/chat/completions', 'no prompts', { contents: [] }, 400, is({ error: 'Empty prompts list' })],

  ['/status', 'as RWKV-Runner tells it', null, 200, (body) => hasShape(body, { status: is(3), pid: isCount, device_name: is('cpu') })],
  ['/update-config', 'defaults of RWKV-Runner', { temperature: 1, top_p: '0.3', max_tokens: 100, presence_penalty: 0, frequency_penalty: 1, penalty_decay: 0.996, top_k: 0, global_penalty: false, state: '' }, 200, is('success')],
  ['/update-config', 'nothing new', {}, 200, is('success')],
  ['/update-config', 'a top_p that is none', { top_p: 2 }, 400, detail(/top_p/)],
  ['/v1/model/load', 'by its id', { model: 'second' }, 200, loaded('second')],
  ['/v1/model/load', 'the same again', { model: 'second' }, 200, loaded('second')],
  ['/v1/model/load', 'the one of the start', { model: 'tiny' }, 200, loaded('tiny')],
  ['/v1/model/load', 'an unknown one', { model: 'x' }, 404, is({ error: 'unknown model: x' })],
  ['/v1/model/load', 'no id', {}, 400, flat(/model/)],
  ['/v1/model/load', 'a list', { model: ['tiny'] }, 400, flat(/model/)],
  ['/switch-model', 'as its client has it', { model: 'second', strategy: 'cpu fp32', tokenizer: '', customCuda: 'false', deploy: false }, 200, is('success')],
  ['/switch-model', 'a file', { model: 'models/tiny-7v0.pth', strategy: 'cpu bf16' }, 200, is('success')],
  ['/switch-model', 'what is not built', { model: 'second', strategy: 'cuda fp16i8 *20+' }, 400, detail(available)],
  ['/switch-model', 'one that is not there', { model: 'models/absent.pth', strategy: 'cpu fp32' }, 404, detail(/absent/)],
  ['/switch-model', 'no model', { strategy: 'cpu fp32' }, 400, detail(/model/)],

  ['/removemodel', 'a force that is none', { force: 'what' }, 400, detail(/force/)],
  ['/removemodel', 'no body', '', 200, success],
  ['/removemodel', 'again', {}, 200, success],
  ['/models', 'nothing', null, 200, is([])],
  ['/v1/models', 'nothing', null, 200, is({ object: 'list', data: [], loaded: null, available: ['second', 'tiny'] })],
  ['/healthcheck', 'no model', null, 503, is({ message: 'no model is loaded', status_code: 503 })],
  ['/v1/batch/completions', 'no model', { contents: ['x'] }, 400, is({ error: 'no model is loaded; call POST /v1/model/load first' })],
  ['/v1/chat/completions', 'no model', { messages: [{ role: 'user', content: 'x' }] }, 503, (body) => assert.equal(body.error.type, 'service_unavailable')],
  ['/loadstatemodel', 'no model', loadState, 503, detail(/no model/)],
  ['/status', 'no model', null, 200, (body) => assert.deepEqual([body.status, body.device_name], [1, null])],
  ['/update-config', 'no model', { top_p: 0.5 }, 503, detail(/no model/)],
  ['/v1/server/status', 'no model', null, 200, (body) => assert.equal(body.model, null)],
  ['/v1/model/load', 'as at the start', { model: 'tiny' }, 200, loaded('tiny')],
];

describe('routes that make no text', { skip: noOracle }, () => {
  let server;
  before(async () => {
    mkdirSync(join(folder, 'models'));
    for (const name of ['tiny-7v0.pth', 'state-tiny-7v0.pth', 'state-gen-7.pth']) cpSync(join(oracle, 'models', name), join(folder, 'models', name));
    cpSync(join(oracle, 'models/quirk-base.safetensors'), join(folder, 'second.safetensors'));
    cpSync(join(oracle, 'models/tiny-7v0.safetensors'), join(folder, 'tiny.safetensors'));
    server = await serve('--device', 'cpu', '--model', join(folder, 'tiny.safetensors'), '--vocab', 'bytes', '--model-root', folder,
                         '--states-dir', folder, '--password', 'secret', '--slots', '2', '--set', 'drain.grace_ms=0', '--set', 'limits.login_failures_max=100');
  });
  after(async () => assert.equal((await server.stop()).code, 0));

  test('each as its client knows it, in order', async () => {
    for (const [path, what, body, status, check] of rows) {
      const answer = body === null ? await server.get(path, auth) : await server.post(path, body, auth);
      const where = `${path}: ${what}: ${answer.status} ${JSON.stringify(answer.body)}`;
      assert.equal(answer.status, status, where);
      try {
        check(answer.body);
      } catch (e) {
        e.message = `${where}\n${e.message}`;
        throw e;
      }
    }
  });

  test('each documented request and three others of its path', () => {
    for (const { name, path, body } of documented.filter((r) => !/completions|FIM|translate/.test(r.path))) {
      const played = rows.filter(([there]) => there === path);
      assert.ok(played.some(([, , sent]) => JSON.stringify(sent) === JSON.stringify(body)), `${name} itself`);
      assert.ok(played.length >= 4, `${name}: ${played.length} rows`);
    }
  });

  test('what changes or tells something wants the password, by header or body, and its method', async () => {
    const open = ['/healthcheck', '/healthz'];
    for (const [path, post] of new Map(rows.map(([path, , body]) => [path, body !== null]))) {
      if (open.includes(path)) continue;
      const stranger = post ? await server.post(path, {}) : await server.get(path);
      assert.equal(stranger.status, 401, path);
      assert.ok(JSON.stringify(stranger.body).includes('invalid or missing password'), path);
      if (!post) continue;
      assert.equal((await server.post(path, { password: 'wrong' })).status, 401, path);
      assert.equal((await server.get(path, auth)).status, 405, path);
    }
    assert.deepEqual((await server.post('/removestatemodel', { dummy: 'dummy', password: 'secret' })).body, { status: 'success' });
    for (const [path, body] of Object.entries({ '/v1/tokens/count': { text: 'x' }, '/tokenize': { content: 'x' }, '/detokenize': { tokens: [65] } })) {
      assert.equal((await server.post(path, { ...body, password: 'secret' })).status, 200, path);
      assert.equal((await server.post(path, { ...body, password: 'wrong' })).status, 401, path);
    }
  });
});
