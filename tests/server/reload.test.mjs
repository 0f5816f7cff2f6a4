// SIGHUP: new settings apply to later requests; a file with an error changes nothing; no request is cut off.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { binary, serve, within } from './support.mjs';

test('a server that is told to reload its settings', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-reload-'));
  const file = join(folder, 'skein.toml'), keys = join(folder, 'api-keys');
  const line = (name, secret) => spawnSync(binary, ['keys', 'hash', name], { input: secret, encoding: 'utf8' }).stdout;
  const bearer = (secret) => ({ authorization: `Bearer ${secret}` });
  const settings = (more = '', server = '') =>
    writeFileSync(file, `[server]\nkeys_file = "${keys}"\n${server}[engine]\ndevice = "fake"\nfake_tick_us = 1000\n${more}`);
  const ends = ['reloaded', 'the configuration has faults; the old one stays'];
  settings();
  writeFileSync(keys, line('alice', 'one'));
  const server = await serve('--config', file, '--set', 'drain.grace_ms=0');
  t.after(async () => {
    await server.stop();
    rmSync(folder, { recursive: true });
  });
  /** Sends the signal, waits for the last line of the reload, so that the next one finds its own, and returns a line. */
  const reload = async (msg) => {
    const seen = server.lines.length;
    server.process.kill('SIGHUP');
    const told = async () => {
      for (;;) {
        const lines = server.lines.slice(seen).filter((l) => l.startsWith('{')).map((l) => JSON.parse(l));
        if (lines.some((l) => ends.includes(l.msg))) return lines.find((l) => l.msg === msg);
        await new Promise((r) => setTimeout(r, 5));
      }
    };
    const line = await within(told(), msg);
    assert(line, `a reload without "${msg}"`);
    return line;
  };
  /** Io threads hear of it a moment after the line. */
  const until = (good, what) => within((async () => {
    while (!(await good())) await new Promise((r) => setTimeout(r, 5));
  })(), what);
  const tokens = async (body = {}, secret = 'one') => {
    const { body: answer } = await server.post('/v1/completions', { prompt: 'abc', ignore_eos: true, ...body }, bearer(secret));
    return answer.usage?.completion_tokens;
  };

  const stream = await server.fetch('/v1/completions', {
    method: 'POST', headers: bearer('one'),
    body: JSON.stringify({ prompt: 'abc', ignore_eos: true, max_tokens: 3000, stream: true }),
  });

  await t.test('takes keys', async () => {
    writeFileSync(keys, line('alice', 'two') + line('bob', 'three'));
    await reload('reloaded');
    await until(async () => (await server.get('/v1/models', bearer('one'))).status === 401, 'the end of the old key');
    for (const secret of ['two', 'three']) assert.equal((await server.get('/v1/models', bearer(secret))).status, 200);
    writeFileSync(keys, line('alice', 'one'));
    await reload('reloaded');
    await until(async () => (await server.get('/v1/models', bearer('one'))).status === 200, 'the old key again');
  });

  await t.test('takes limits of what a tenant stores', async () => {
    const make = async () => await server.post('/v1/conversations', {}, bearer('one'));
    assert.equal((await make()).status, 200);
    settings('[sessions]\ntenant_sessions_max = 1\n');
    await reload('reloaded');
    const refused = await make();
    assert.equal(refused.status, 507);
    assert.match(refused.body.error.message, /sessions\.tenant_sessions_max = 1/);
    settings();
    await reload('reloaded');
    assert.equal((await make()).status, 200);
  });

  await t.test('logs prompts from when it is told to, and not before', async () => {
    const ask = async () => {
      const response = await server.fetch('/v1/completions', { method: 'POST', headers: bearer('one'),
        body: JSON.stringify({ prompt: 'a secret wish', max_tokens: 1 }) });
      await response.arrayBuffer();
      return response.headers.get('x-request-id');
    };
    await ask();
    assert(!server.lines.some((l) => l.includes('a secret wish')));
    settings('[log]\nprompts = true\n');
    await reload('reloaded');
    const prompts = () => server.lines.filter((l) => l.includes('"msg":"prompt"')).map((l) => JSON.parse(l));
    let name;
    await until(async () => {
      name = await ask();
      return prompts().length > 0;
    }, 'a prompt in the log');
    const told = prompts().at(-1);
    assert.deepEqual([told.text, told.prompts], ['a secret wish', 1]);
    assert.equal(told.request_id, name);
    settings('');
    await reload('reloaded');
  });

  await t.test('takes limits, presets of models and the level of the log, and says which', async () => {
    const name = (await server.get('/v1/models', bearer('one'))).body.data[0].id;
    assert.equal(await tokens({ max_tokens: 50 }), 50);
    settings(`[limits]\nmax_tokens_max = 7\n[log]\nlevel = "debug"\n[models."${name}"]\ncompletion_max_tokens = 5\n`);
    assert.equal((await reload('reloaded')).changed, 3);
    await until(async () => (await tokens({ max_tokens: 50 })) === 7, 'the new limit');
    assert.equal(await tokens(), 5);
    const changed = server.lines.filter((l) => l.includes('"msg":"setting changed"')).map((l) => JSON.parse(l).key);
    assert.deepEqual(changed.slice(-3), ['limits.max_tokens_max', 'log.level', `models.${name}`]);
    await server.get('/livez');
    await until(() => server.lines.some((l) => l.includes('"level":"debug"') && l.includes('/livez')), 'a line for debugging');
    settings();
    await reload('reloaded');
    await until(async () => (await tokens({ max_tokens: 50 })) === 50, 'the old limit');
  });

  await t.test('says what needs a restart, and leaves it', async () => {
    settings('slots = 3\n');
    assert.equal((await reload('this setting needs a restart')).key, 'engine.slots');
    settings();
    await reload('reloaded');
  });

  await t.test('stays as it is where a file is wrong, and says why', async () => {
    settings('[limits]\nmax_tokens_max = 7\nn_max = "many"\n');
    assert.match((await reload('the configuration has faults; the old one stays')).why, /skein\.toml:\d+: limits\.n_max/);
    settings('[limits]\nmax_tokens_max = 7\n');
    writeFileSync(keys, 'alice nonsense\n');
    assert.match((await reload('the configuration has faults; the old one stays')).why, /api-keys:1: /);
    assert.equal(await tokens({ max_tokens: 50 }), 50);
    settings();
    writeFileSync(keys, line('alice', 'one'));
    await reload('reloaded');
  });

  await t.test('cuts no request off', async () => {
    const text = await stream.text();
    assert(text.endsWith('data: [DONE]\n\n'));
    assert.equal(text.match(/^data: \{/gm).length >= 1, true);
    assert(text.includes('"finish_reason":"length"'));
  });
});
