// Tuned states and mixtures of them on the running server, with the tiny model: each bit of an answer is in the
// log-probabilities of its tokens, so answers that are equal came from equal states.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { binary, noOracle, oracle, serveTiny } from './support.mjs';

const quiet = ['--set', 'drain.grace_ms=0'];
const tinyModel = oracle && join(oracle, 'models/tiny-7v0.pth');
const folder = mkdtempSync(join(tmpdir(), 'skein-states-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** What a server says with a state, to the bit. */
async function said(server, more = {}) {
  const { status, body } = await server.post('/v1/completions', {
    model: 'tiny', prompt: 'The sea ', max_tokens: 12, temperature: 0, logprobs: 2, ...more });
  assert.equal(status, 200, JSON.stringify(body));
  return body.choices[0];
}
const success = { status: 'success' };

describe('states', { skip: noOracle }, () => {
  before(() => {
    copyFileSync(join(oracle, 'models/state-tiny-7v0.pth'), join(folder, 'poet.pth'));
    copyFileSync(join(oracle, 'models/state-tiny-6v0.pth'), join(folder, 'stranger.pth'));
    writeFileSync(join(folder, 'torn.pth'), 'x');
  });

  test('what the configuration names is there after every start, what clients loaded is not', async () => {
    const at_start = ['--states-dir', folder, '--set', 'model.tuned_states=poet=poet.pth', ...quiet];
    const ids = async (server) => (await server.get('/models')).body.map((m) => m.id);
    let server = await serveTiny(...at_start);
    assert.deepEqual(await ids(server), ['tiny', 'tiny poet']);
    assert.equal((await server.post('/loadstatemodel', { state_filename: 'poet.pth', state_viewname: 'other' })).status, 200);
    const poet = await said(server, { model: 'tiny poet' });
    assert.deepEqual(await said(server, { model: 'tiny other' }), poet);
    assert.notDeepEqual(await said(server), poet);
    assert.equal((await server.stop()).code, 0);
    server = await serveTiny(...at_start);
    assert.deepEqual(await ids(server), ['tiny', 'tiny poet']);
    assert.deepEqual(await said(server, { model: 'tiny poet' }), poet);
    assert.equal((await server.stop()).code, 0);
  });

  test('a file that is wrong ends the start with its name', async () => {
    for (const [set, code, words] of [
      [['model.tuned_states=poet=poet.pth,bad=torn.pth'], 65, /model\.tuned_states: bad=torn\.pth: /],
      [['model.tuned_states=bad=stranger.pth'], 65, /bad=stranger\.pth: /],
      [['model.tuned_states=bad=absent.pth'], 66, /bad=absent\.pth: .*no state file/],
      [['model.tuned_states=bad=../x.pth'], 77, /bad=\.\.\/x\.pth: /],
      [['model.tuned_states=a=poet.pth,b=poet.pth', 'model.tuned_states_max=1'], undefined, /b=poet\.pth: .*tuned_states_max/],
      [['model.tuned_states=poet.pth'], 78, /poet\.pth.* is not NAME=FILE/],
    ]) {
      const options = ['--states-dir', folder, ...set.flatMap((s) => ['--set', s])];
      const { status, stderr } = spawnSync(binary, ['serve', '--device', 'cpu', '--port', '0', '--model', tinyModel, ...options], { encoding: 'utf8' });
      if (code) assert.equal(status, code, stderr);
      assert.notEqual(status, 0);
      assert.match(stderr, words);
    }
    const { status, stderr } = spawnSync(binary, ['check-config', '--set', 'model.tuned_states=a=b.pth'], { encoding: 'utf8' });
    assert.equal(status, 78);
    assert.match(stderr, /model\.tuned_states.*model\.states_dir/);
  });

  describe('mixtures', () => {
    let server;
    before(async () => (server = await serveTiny('--states-dir', folder, ...quiet)));
    after(async () => assert.equal((await server.stop()).code, 0));

    const mix = (body) => server.post('/mrss_loadstatemodel', { state_viewname: 'mix', state_filenames: ['poet.pth'], ...body });
    const weigh = (state_gatingweight, state_viewname = 'mix') =>
      server.post('/mrss_set_gatingweight', { state_viewname, state_gatingweight });
    const mixed = (more = {}) => said(server, { state_name: 'mix', ...more });
    async function refused(answer, status, field, words = /./) {
      const { status: was, body } = await answer;
      assert.equal(was, status, JSON.stringify(body));
      assert.match(body.detail ?? body.error.message, words);
      if (body.error.param !== undefined) assert.equal(body.error.param, field);
      else if (field) assert.ok(body.detail.includes(field), body.detail);
    }

    test('one of one state is that state', async () => {
      assert.deepEqual((await server.post('/loadstatemodel', { state_filename: 'poet.pth', state_viewname: 'poet' })).body, success);
      assert.deepEqual((await mix()).body, success);
      const poet = await said(server, { state_name: 'poet' });
      assert.notDeepEqual(poet, await said(server));
      assert.deepEqual(await mixed(), poet);
      assert.deepEqual(await said(server, { model: 'tiny mix' }), poet);
      const ids = (await server.get('/models')).body.map((m) => m.id);
      assert.deepEqual(ids, ['tiny', 'tiny poet', 'tiny mix']);
    });

    test('weights choose among its states, in the server and in a request', async () => {
      const [plain, poet] = [await said(server), await said(server, { state_name: 'poet' })];
      assert.deepEqual((await mix({ contain_originalstate: 'True', state_gatingweight: ['1', 0] })).body, success);
      assert.deepEqual(await mixed(), poet);
      assert.deepEqual(await mixed({ mrss_gatingweight: [0, 2] }), plain); // the zero state is the last one
      assert.deepEqual(await mixed({ mrss_gatingweight: [3] }), poet); // a weight that is missing counts nothing
      assert.deepEqual((await weigh([0, 1], 'tiny mix')).body, success);
      assert.deepEqual(await mixed(), plain);
      assert.deepEqual((await weigh([1, 1])).body, success);
      const both = await mixed();
      assert.notDeepEqual(both, plain);
      assert.notDeepEqual(both, poet);
      assert.deepEqual((await mix({ contain_originalstate: true })).body, success); // equal parts
      assert.deepEqual(await mixed(), both);
      assert.deepEqual(await mixed({ mrss_gatingweight: [5, 5] }), both);
      const stream = await server.fetch('/v1/chat/completions', {
        method: 'POST',
        body: JSON.stringify({ model: 'tiny mix', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 4, stream: true }) });
      assert.match(await stream.text(), /\[DONE\]/);
    });

    test('its own temperature counts where a request names none', async () => {
      assert.equal((await mix({ default_temperature: '0', contain_originalstate: 'False' })).status, 200);
      assert.deepEqual(await mixed({ temperature: undefined }), await mixed({ temperature: 0 }));
    });

    test('what is wrong is refused by its name', async () => {
      await refused(mix({ state_filenames: [] }), 400, 'state_filenames');
      await refused(mix({ state_filenames: 'poet.pth' }), 400, 'state_filenames');
      await refused(mix({ state_filenames: ['poet.pth', 7] }), 400, 'state_filenames[1]');
      await refused(mix({ state_filenames: Array(8).fill('poet.pth'), contain_originalstate: true }), 400, 'state_filenames', /at most 7/);
      await refused(mix({ state_filenames: ['poet.pth', 'absent.pth'] }), 404, 'state_filenames[1]', /absent/);
      await refused(mix({ state_filenames: ['../poet.pth'] }), 403, 'state_filenames[0]');
      await refused(mix({ state_filenames: ['poet.pth', 'stranger.pth'] }), 400, 'state_filenames[1]', /stranger/);
      await refused(mix({ state_filenames: ['torn.pth'] }), 400, 'state_filenames[0]');
      await refused(mix({ state_gatingweight: [1, 1] }), 400, 'state_gatingweight');
      await refused(mix({ state_gatingweight: [0] }), 400, 'state_gatingweight', /above 0/);
      await refused(mix({ state_gatingweight: [-1] }), 400, 'state_gatingweight');
      await refused(mix({ contain_originalstate: 'perhaps' }), 400, 'contain_originalstate');
      await refused(weigh([1], 'nobody'), 404, '', /nobody/);
      await refused(weigh([1], 'poet'), 400, 'state_gatingweight', /mixture/);
      await refused(weigh([]), 400, 'state_gatingweight');
      await refused(weigh([1, 2]), 400, 'state_gatingweight', /at most 1/);

      const ask = (more) => server.post('/v1/completions', { model: 'tiny', prompt: 'x', max_tokens: 1, state_name: 'mix', ...more });
      await refused(ask({ mrss_gatingweight: [1, 2] }), 400, 'mrss_gatingweight', /at most 1/);
      await refused(ask({ mrss_gatingweight: [0] }), 400, 'mrss_gatingweight', /above 0/);
      await refused(ask({ mrss_gatingweight: Array(9).fill(1) }), 400, 'mrss_gatingweight', /at most 8/);
      await refused(ask({ mrss_gatingweight: [1], state_name: 'poet' }), 400, 'mrss_gatingweight', /mixture/);
      await refused(ask({ mrss_gatingweight: [1], state_name: undefined }), 400, 'mrss_gatingweight', /mixture/);
      await refused(ask({ session_id: 's' }), 400, 'session_id');
      await refused(ask({ n: 2 }), 400, 'n');
      await refused(ask({ echo: true, logprobs: 1 }), 400, 'echo');
    });

    test('it goes with the others', async () => {
      assert.deepEqual((await server.post('/removestatemodel', { state_viewname: 'mix' })).body, success);
      await refused(server.post('/v1/completions', { prompt: 'x', state_name: 'mix' }), 404, 'state_name');
    });
  });
});
