// Keys of a running server: authentication, rights, visibility of sessions, and the limits of keys.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { readExposition, total } from './exposition.mjs';
import WebSocket from 'ws';
import { binary, serve, within } from './support.mjs';

const skein = (args, input = '') => spawnSync(binary, args, { input, encoding: 'utf8' });
function made(...args) {
  const told = skein(['keys', 'new', ...args]);
  assert.equal(told.status, 0, told.stderr);
  return told.stdout.trim().split('\n');
}
const bearer = (secret) => ({ authorization: `Bearer ${secret}` });
const wish = (more = {}) => ({ prompt: 'abc', max_tokens: 3, ignore_eos: true, ...more });

test('skein keys', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-keys-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'api-keys');
  const [secret, ...none] = made('alice', '--keys-file', file, '--admin', '--concurrent', '3');
  assert.deepEqual(none, []);
  assert.match(secret, /^sk-skein-[A-Za-z0-9_-]{43}$/);
  assert(!readFileSync(file, 'utf8').includes(secret), 'the file has the hash alone');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  made('bob', '--keys-file', file, '--tokens-per-minute', '600', '--models', 'a,b', '--tenant', 'team');
  const again = skein(['keys', 'new', 'bob', '--keys-file', file]);
  assert.equal(again.status, 64);
  assert.match(again.stderr, /has a key named bob/);
  assert.equal(skein(['keys', 'list', '--keys-file', file]).stdout,
    'alice concurrent=3 admin\nbob tokens-per-minute=600 models=a,b tenant=team\n');
  const line = skein(['keys', 'hash', 'alice', '--admin', '--concurrent', '3'], secret + '\n').stdout;
  assert(readFileSync(file, 'utf8').includes('\n' + line), 'hash says what new wrote');
  const [other, itsLine] = made('carl');
  assert.equal(skein(['keys', 'hash', 'carl'], other).stdout.trim(), itsLine);
  assert.equal(skein(['keys', 'new', 'a/b']).status, 64);
  writeFileSync(file, 'alice nonsense\n');
  const wrong = skein(['keys', 'list', '--keys-file', file]);
  assert.equal(wrong.status, 78);
  assert.match(wrong.stderr, /api-keys:1: hash: the second word/);
  for (const [keys, status] of [[file, 78], [join(folder, 'none'), 66]]) {
    const start = skein(['serve', '--device', 'fake', '--port', '0', '--keys-file', keys]);
    assert.equal(start.status, status, start.stderr);
  }
});

/** Runs `skein serve` on a socket that it inherits, as a service manager hands it over; says what it wrote. */
async function inherit(address, ...args) {
  const door = createServer().listen({ port: 0, host: address });
  await once(door, 'listening');
  const script = `export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0" "$@"`;
  const child = spawn('/bin/sh', ['-c', script, binary, 'serve', '--device', 'fake', ...args],
    { stdio: ['ignore', 'ignore', 'pipe', door._handle] });
  let said = '';
  child.stderr.on('data', (d) => {
    const was = said.includes('"ready"');
    said += d;
    if (!was && said.includes('"ready"')) child.kill('SIGTERM');  // once: a second one would hurry it
  });
  const [code] = await within(once(child, 'exit'), 'the end of a server with an inherited socket');
  const { port } = door.address();
  door.close();
  return { code, said, port };
}

test('an inherited socket is judged and named by its own address', async () => {
  const json = ['--log-format', 'json', '--set', 'drain.grace_ms=0'];
  const open = await inherit('0.0.0.0', ...json);
  assert.equal(open.code, 78, open.said);
  assert.match(open.said, new RegExp(`inherited socket 0.0.0.0:${open.port} is not on a loopback address`));
  for (const [address, ...more] of [['127.0.0.1'], ['::1'], ['0.0.0.0', '--password', 'p'], ['0.0.0.0', '--allow-unauthenticated']]) {
    const fine = await inherit(address, ...json, ...more);
    assert.equal(fine.code, 0, fine.said);
    const name = address === '::1' ? '[::1]' : address;
    assert(fine.said.includes(`"address":"${name}:${fine.port}"`), fine.said);
  }
});

test('a file of secrets that every user may write is refused', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-keys-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'secret');
  for (const option of ['--keys-file', '--password-file', '--tls-key']) {
    writeFileSync(file, option === '--keys-file' ? '' : 'secret\n');
    chmodSync(file, 0o602);
    const more = option === '--tls-key' ? ['--tls-certificate', file] : [];
    const start = skein(['serve', '--device', 'fake', '--port', '0', ...more, option, file]);
    assert.equal(start.status, 78, start.stderr);
    assert.match(start.stderr, /is writable by every user/);
  }
});

test('names that the server uses itself are no names of keys', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-keys-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'api-keys');
  for (const name of ['default', 'open', 'none', 'password', 'anonymous']) {
    assert.equal(skein(['keys', 'new', name, '--keys-file', file]).status, 64, name);
    const line = skein(['keys', 'hash', 'mallory'], 'secret\n').stdout.trim();
    for (const text of [line.replace('mallory', name), `${line} tenant=${name}`]) {
      writeFileSync(file, text + '\n', { mode: 0o600 });
      const told = skein(['keys', 'list', '--keys-file', file]);
      assert.equal(told.status, 78, text);
      assert.match(told.stderr, /is reserved/);
    }
  }
});

test('with a keys file without keys every request is refused', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-keys-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'api-keys');
  const start = (...args) => serve('--device', 'fake', '--keys-file', file, '--set', 'drain.grace_ms=0', ...args);
  const seen = async (server, headers = {}) => Promise.all(['/v1/models', '/metrics', '/v1/sessions', '/v1/server/status']
    .map(async (path) => (await server.fetch(path, { headers })).status));
  const shut = [401, 401, 401, 401], open = [200, 200, 200, 200];
  const reload = async (server, line) => {
    server.lines.length = 0;  // a line of an earlier reload is no answer to this one
    server.process.kill('SIGHUP');
    return await server.says(line);
  };

  writeFileSync(file, '# no keys yet\n', { mode: 0o600 });
  for (const host of ['127.0.0.1', '0.0.0.0']) {
    const server = await start('--host', host);
    assert.deepEqual(await seen(server), shut);
    const [secret] = made('alice', '--keys-file', file, '--admin');
    await reload(server, 'reloaded');
    assert.deepEqual(await seen(server), shut);
    assert.deepEqual(await seen(server, bearer(secret)), open);
    writeFileSync(file, '# gone\n');
    await reload(server, 'reloaded');
    assert.deepEqual(await seen(server), shut);
    assert.deepEqual(await seen(server, bearer(secret)), shut);
    await server.stop();
  }

  // An explicit setting opens the server to every client; but no reload opens a closed server.
  const server = await start('--allow-unauthenticated');
  assert.deepEqual(await seen(server), open);
  const [secret] = made('alice', '--keys-file', file, '--admin');
  await reload(server, 'reloaded');
  assert.deepEqual(await seen(server), shut);
  writeFileSync(file, '');
  await reload(server, 'the configuration has faults; the old one stays');
  assert.deepEqual(await seen(server), shut);
  assert.deepEqual(await seen(server, bearer(secret)), open);
  await server.stop();
});

test('a key that is removed ends its sockets, streams and background responses', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-keys-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'api-keys');
  const [secret] = made('alice', '--keys-file', file, '--concurrent', '4');
  const [other] = made('bob', '--keys-file', file, '--admin');
  const bobs = readFileSync(file, 'utf8').split('\n').filter((l) => l.startsWith('bob')).join('\n') + '\n';
  const server = await serve('--device', 'fake', '--keys-file', file, '--set', 'engine.fake_tick_us=2000', '--set', 'drain.grace_ms=0');
  t.after(() => server.stop());
  const socket = new WebSocket(`ws://127.0.0.1:${server.port}/v1/responses`, ['realtime', `openai-insecure-api-key.${secret}`]);
  await within(once(socket, 'open'), 'an open socket');
  const say = (input, more = {}) => socket.send(JSON.stringify({ type: 'response.create', input, max_output_tokens: 5, ...more }));
  const hear = (type) => within(new Promise((done) => {
    const listen = (data) => {
      const event = JSON.parse(data);
      if (event.type !== type) return;
      socket.off('message', listen);
      done(event);
    };
    socket.on('message', listen);
  }), type);
  const first = hear('response.incomplete');  // it ends at max_output_tokens
  say('hello');
  await first;

  const endless = { max_tokens: 1000000, stream: true, ignore_eos: true };
  const stream = await server.fetch('/v1/completions', { method: 'POST', headers: bearer(secret), body: JSON.stringify(wish(endless)) });
  const long = await server.post('/v1/responses', { input: 'x', background: true, store: true, max_output_tokens: 1000000 }, bearer(secret));
  assert.equal(long.status, 200);
  const follower = await server.fetch(`/v1/responses/${long.body.id}?stream=true`, { headers: bearer(secret) });
  assert.equal(follower.status, 200);

  writeFileSync(file, bobs);
  server.process.kill('SIGHUP');
  await server.says('reloaded');
  const closed = within(once(socket, 'close'), 'the end of the socket');
  say('still there?');
  const [code] = await closed;
  assert.equal(code, 1008);
  assert.match(await within(stream.text(), 'the end of the stream'), /key of this request was revoked/);
  await within(follower.text().catch(() => ''), 'the end of the follower');
  server.secret = other;
  await server.counters((h) => h.requests.running === 0 && h.slots.used === 0);
  assert.equal((await server.post('/v1/completions', wish(), bearer(other))).status, 200);
});

test('a server with keys', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-keys-'));
  const file = join(folder, 'api-keys');
  const key = {
    root: made('root', '--keys-file', file, '--admin')[0],
    alice: made('alice', '--keys-file', file, '--concurrent', '2')[0],
    bob: made('bob', '--keys-file', file, '--tokens-per-minute', '60')[0],
    carl: made('carl', '--keys-file', file, '--models', 'another-model')[0],
  };
  const server = await serve('--device', 'fake', '--keys-file', file, '--set', 'engine.fake_tick_us=1000', '--set', 'drain.grace_ms=0');
  t.after(async () => {
    await server.stop();
    rmSync(folder, { recursive: true });
  });
  const complete = (who, more) => server.post('/v1/completions', wish(more), bearer(key[who]));
  const numbers = async () => {
    const page = await server.fetch('/metrics', { headers: bearer(key.root) });
    return readExposition(await page.text());
  };

  await t.test('accepts a key in every supported form', async () => {
    assert.equal((await server.get('/v1/models')).status, 401);
    assert.equal((await server.get('/v1/models', bearer('sk-skein-wrong'))).status, 401);
    assert.equal((await server.get('/v1/models', bearer(key.alice))).status, 200);
    assert.equal((await server.get('/v1/models', { 'x-api-key': key.alice })).status, 200);
    assert.equal((await complete('alice')).status, 200);
    assert.equal((await server.post('/v1/completions', wish({ password: key.alice }))).status, 200);
    assert.equal((await server.post('/v1/completions', wish({ password: 'wrong' }))).status, 401);
    assert.equal((await server.get('/livez')).status, 200);
  });

  await t.test('tells strangers whether it is well, and no more', async () => {
    for (const path of ['/health', '/v1/health', '/healthz', '/readyz', '/livez'])
      for (const headers of [{}, bearer('wrong'), bearer(key.alice)])
        assert.deepEqual((await server.get(path, headers)).body, { status: 'ok' }, path);
    assert.deepEqual((await server.get('/health', bearer(key.root))).body.model.id, 'fake');
    assert.equal((await server.get('/healthz', bearer(key.root))).body.model, 'fake');
  });

  await t.test('keeps what is for administrators from others', async () => {
    for (const path of ['/loadmodel', '/removemodel', '/v1/model/load', '/loadstatemodel', '/removestatemodel',
      '/mrss_loadstatemodel', '/mrss_set_gatingweight', '/switch-model']) {
      assert.equal((await server.post(path, {}, bearer(key.alice))).status, 403, path);
      assert.equal((await server.post(path, { password: key.alice })).status, 403, path);
    }
    assert.equal((await server.fetch('/metrics', { headers: bearer(key.alice) })).status, 403);
    assert.equal((await server.fetch('/metrics', { headers: bearer(key.root) })).status, 200);
    const may = await server.post('/removestatemodel', { state_viewname: 'none' }, bearer(key.root));
    assert.equal(may.status, 400);  // it came through; the fake engine has no such states
  });

  await t.test('separates tenants', async () => {
    const turn = (who, text) => complete(who, { prompt: text, session_id: 'diary' });
    assert.equal((await turn('alice', 'mine')).body.session.version, 1);
    assert.equal((await turn('root', 'other')).body.session.version, 1);
    assert.equal((await turn('alice', 'mine too')).body.session.version, 2);
    const list = async (who) => (await server.get('/v1/sessions', bearer(key[who]))).body.data.map((s) => s.id);
    assert.deepEqual(await list('alice'), ['diary']);
    assert.deepEqual(await list('carl'), []);
    assert.equal((await server.get('/v1/sessions/diary', bearer(key.carl))).status, 404);
    assert.equal((await server.fetch('/v1/sessions/diary', { method: 'DELETE', headers: bearer(key.carl) })).status, 404);
    assert.equal((await server.get('/v1/sessions/diary', bearer(key.alice))).status, 200);
    const held = await server.post('/state/status', { password: key.bob });
    assert(!JSON.stringify(held.body).includes('diary'));
    // A beginning that one tenant has made known is not known to another.
    const long = 'a beginning of many tokens, as a system text is; '.repeat(20);
    const cached = async (who) => (await complete(who, { prompt: long })).body.usage.prompt_tokens_details?.cached_tokens ?? 0;
    await cached('alice');
    let known = 0;
    for (let i = 0; i < 100 && known === 0; ++i) known = await cached('alice');
    assert(known > 0);
    assert.equal(await cached('root'), 0);
  });

  await t.test('lets administrators name another tenant', async () => {
    const list = async (who, query) => (await server.get(`/v1/sessions${query}`, bearer(key[who]))).body.data.map((s) => s.id);
    const turn = await complete('alice', { prompt: 'mine', session_id: 'letters' });
    assert.equal(turn.status, 200);
    assert.deepEqual(await list('root', ''), ['diary']);  // its own
    assert.deepEqual(await list('root', '?tenant=alice'), ['diary', 'letters']);
    assert.deepEqual(await list('alice', '?tenant=alice'), ['diary', 'letters']);
    assert.deepEqual(await list('root', '?tenant=nobody'), []);
    assert.equal((await server.get('/v1/sessions/letters', bearer(key.root))).status, 404);
    const seen = await server.get('/v1/sessions/letters?transcript=true&tenant=alice', bearer(key.root));
    assert.equal(seen.status, 200);
    assert(JSON.stringify(seen.body).includes('mine'));
    const held = await server.post('/state/status?tenant=alice', {}, bearer(key.root));
    assert(JSON.stringify(held.body).includes('letters'));
    const remove = (who, query) => server.fetch(`/v1/sessions/letters${query}`, { method: 'DELETE', headers: bearer(key[who]) });
    // Without the right the answer is the same for tenants that exist and others, also where the key comes in the body.
    for (const tenant of ['alice', 'root', 'nobody', '']) {
      assert.equal((await remove('carl', `?tenant=${tenant}`)).status, 403, tenant);
      assert.equal((await server.get(`/v1/sessions/letters?tenant=${tenant}`, bearer(key.carl))).status, 403, tenant);
      assert.equal((await server.post(`/state/status?tenant=${tenant}`, { password: key.carl })).status, 403, tenant);
      assert.equal((await server.post(`/state/delete?tenant=${tenant}`, { session_id: 'letters', password: key.carl })).status, 403, tenant);
    }
    assert.equal((await server.get('/v1/sessions?tenant=a/b', bearer(key.root))).status, 400);
    assert.equal((await remove('root', '')).status, 404);
    assert.equal((await remove('root', '?tenant=alice')).status, 200);
    assert.deepEqual(await list('alice', ''), ['diary']);
  });

  await t.test('shows and stops requests of their own tenant alone', async () => {
    const stop = new AbortController();
    const stream = server.fetch('/v1/completions', {
      method: 'POST', signal: stop.signal, headers: { ...bearer(key.alice), 'x-request-id': 'long-one' },
      body: JSON.stringify(wish({ max_tokens: 100000, stream: true })),
    });
    const reader = (await stream).body.getReader();
    await reader.read();
    const seen = async (who) =>
      (await server.get('/v1/server/status', bearer(key[who]))).body.active_requests.map((r) => r.id);
    assert.deepEqual(await seen('carl'), []);
    assert.deepEqual(await seen('alice'), ['long-one']);
    assert.deepEqual(await seen('root'), ['long-one']);
    const halt = (who) => server.post('/v1/server/stop', {}, bearer(key[who]));
    assert.equal((await halt('carl')).body.stopped, false);
    assert.equal((await halt('root')).body.stopped, true);
    for (;;) if ((await reader.read()).done) break;
  });

  await t.test('limits requests at a time, tokens and models', async () => {
    const stops = [0, 1].map(() => new AbortController());
    const streams = await Promise.all(stops.map((s) => server.fetch('/v1/completions', {
      method: 'POST', signal: s.signal, headers: bearer(key.alice),
      body: JSON.stringify(wish({ max_tokens: 100000, stream: true })),
    })));
    assert(streams.every((s) => s.status === 200));
    const third = await complete('alice');
    assert.equal(third.status, 429);
    assert.match(third.body.error.message, /this key has too many running requests/);
    assert.equal((await complete('root')).status, 200);
    stops.forEach((s) => s.abort());
    await Promise.all(streams.map((s) => s.text().catch(() => {})));
    const again = async () => { while ((await complete('alice')).status !== 200); };
    await within(again(), 'a place that was given back');

    assert.equal((await complete('bob', { max_tokens: 200 })).status, 200);
    const late = await complete('bob');
    assert.equal(late.status, 429);
    assert.match(late.body.error.message, /tokens for this minute/);
    assert(Number(late.headers.get('retry-after')) > 1);
    assert.equal((await complete('root')).status, 200);

    assert.equal((await complete('carl')).status, 403);
    assert.deepEqual((await server.get('/v1/models', bearer(key.carl))).body.data, []);
  });

  await t.test('counts them apart', async () => {
    const all = await numbers();
    assert(total(all, 'skein_generation_tokens_total', { key: 'bob' }) >= 200);
    assert(total(all, 'skein_generation_tokens_total', { key: 'alice' }) > 0);
    assert.equal(total(all, 'skein_requests_rejected_total', { key: 'carl', reason: 'forbidden' }), 1);
    assert(total(all, 'skein_requests_rejected_total', { key: 'bob', reason: 'overloaded' }) >= 1);
  });

  await t.test('names them in the log, and no secret', async () => {
    const lines = server.lines.filter((l) => l.includes('"msg":"request"')).map((l) => JSON.parse(l));
    assert(lines.some((l) => l.key_id === 'alice' && l.session === 'diary' && l.finish_reason === 'length'));
    assert(lines.some((l) => l.key_id === 'alice' && l.route === '/v1/sessions' && l.status === 200));
    for (const line of server.lines) for (const secret of Object.values(key)) assert(!line.includes(secret));
  });
});
