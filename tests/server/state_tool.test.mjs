// `skein state` through a running server's admin socket: the same words do the same and print the same as on the
// directory of one that was stopped, while turns go on.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { binary, serve } from './support.mjs';

const folder = mkdtempSync(join(tmpdir(), 'skein-state-tool-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const at = (name) => join(folder, name);

/** Exit code and what was printed. */
const run = (...words) =>
  new Promise((done) =>
    execFile(binary, words, { encoding: 'buffer' }, (error, stdout, stderr) =>
      done({ code: error ? error.code : 0, out: stdout.toString(), err: stderr.toString() })));
const state = (dir, ...words) => run('state', ...words, '--state-dir', at(dir));
async function prints(dir, ...words) {
  const { code, out, err } = await state(dir, ...words);
  assert.equal(code, 0, `${words}: ${err}`);
  return out;
}

const options = (dir) => ['--device', 'fake', '--state-dir', at(dir), '--set', 'drain.grace_ms=0', '--set', 'sessions.write_behind_ms=0'];
const say = (server, session_id, prompt) =>
  server.post('/v1/completions', { session_id, prompt, max_tokens: 8, temperature: 0 });

describe('a server that runs and one that was stopped', () => {
  let server;
  before(async () => {
    server = await serve(...options('one'));
    for (const id of ['a', 'b/b', 'c d'])
      for (let t = 0; t < 3; ++t) assert.equal((await say(server, id, `${id} ${t}`)).status, 200);
    await server.counters((c) => c.sessions.states.dirty === 0 && c.sessions.states.disk === 9);
  });
  after(async () => assert.equal((await server.stop()).code, 0));

  const questions = [
    ['list'], ['list', '--json'], ['list', '--tenant', 'nobody'], ['info', 'b/b'], ['info', 'c d', '--json'], ['verify'], ['verify', '--json'],
    ['info', 'nobody'], ['export', 'nobody', '--out', at('x')], ['delete', 'nobody'], ['fork', 'nobody', 'x'],
    ['fork', 'a', 'x', '--version-number', '9'], ['import', at('absent')]];

  test('print the same, and the same errors', async () => {
    const all = async (name) => {
      const told = [];
      for (const words of questions) told.push(await state('one', ...words));
      for (const id of ['a', 'b/b']) await prints('one', 'export', id, '--out', at(`${name} ${id.length}`));
      return told;
    };
    const running = await all('running');
    assert.match(running[0].out, /^a\t3 versions/);
    assert.equal(running[2].out, "no sessions of tenant 'nobody'; tenants with sessions (--tenant): default\n");
    assert.match(running[5].out, /^states +9$/m);
    assert.ok(!existsSync(at('one/looked-at')));
    assert.equal((await server.stop()).code, 0);
    assert.ok(!existsSync(at('one/admin.socket')));
    const stopped = await all('stopped');
    server = await serve(...options('one'));
    const plain = ({ code, out, err }) => ({ code, out, err: err.replace(/ of tenant 'default'/, '') });
    running.forEach((told, i) => assert.deepEqual(plain(told), plain(stopped[i]), questions[i].join(' ')));
    for (const length of [1, 3]) assert.deepEqual(readFileSync(at(`running ${length}`)), readFileSync(at(`stopped ${length}`)));
  });

  test('change the same', async () => {
    const before = (await say(server, 'a', 'next')).body.choices[0].text;
    await prints('one', 'fork', 'a', 'a2', '--version-number', '3');
    assert.equal((await say(server, 'a2', 'next')).body.choices[0].text, before);
    await prints('one', 'export', 'a2', '--out', at('a2'));
    assert.equal(await prints('one', 'import', at('a2'), '--as', 'a3'), 'a3\n');
    assert.equal((await say(server, 'a3', 'x')).body.session.version, 5);
    assert.equal((await state('one', 'import', at('a2'), '--as', 'a3')).code, 65);
    await prints('one', 'import', at('a2'), '--as', 'a3', '--replace');
    assert.equal((await server.get('/v1/sessions/a3')).body.head, 4);
    writeFileSync(at('torn'), readFileSync(at('a2')).subarray(0, 100));
    assert.equal((await state('one', 'import', at('torn'))).code, 65);
    await prints('one', 'delete', 'a2');
    assert.equal((await server.get('/v1/sessions/a2')).status, 404);
    await prints('one', 'compact');
    assert.equal((await say(server, 'a3', 'x')).status, 200);
  });

  test('are copied, also in the middle of turns', async () => {
    const turns = Promise.all(Array.from({ length: 40 }, (_, i) => say(server, `m${i % 8}`, `turn ${i}`)));
    await Promise.all([prints('one', 'backup', at('copy')), prints('one', 'verify'), prints('one', 'verify')]);
    assert.ok((await turns).every(({ status }) => status === 200));
    assert.deepEqual(server.lines.filter((l) => l.includes('"msg":"rocksdb"')), [], 'a copy is nothing to warn of');
    assert.match(await prints('copy', 'verify'), /^damaged +0$/m);
    assert.match(await prints('copy', 'list'), /^a3\t/m);
    assert.notEqual((await state('one', 'backup', at('copy'))).code, 0);
  });

  test('find what is damaged', async () => {
    assert.equal((await server.stop()).code, 0);
    const store = at('one/sessions');
    const blob = join(store, readdirSync(store).filter((f) => f.endsWith('.blob')).sort()[0]);
    const bytes = readFileSync(blob);
    bytes[bytes.length >> 1] ^= 1;
    writeFileSync(blob, bytes);
    server = await serve(...options('one'));
    const { code, out, err } = await state('one', 'verify');
    assert.equal(code, 65);
    assert.match(out, /^damaged +[1-9]/m);
    assert.match(err, /records are damaged/);
  });
});

describe('the admin socket', () => {
  test('is open to its owner alone, who needs no password', async () => {
    const socketPath = at('two.socket');
    const secret = ['--password', 'secret'];
    let server = await serve(...options('two'), ...secret, '--set', `server.admin_socket=${socketPath}`, '--set', 'sessions.signature_key=k');
    assert.equal(statSync(socketPath).mode & 0o777, 0o600);
    const over = (path) =>
      new Promise((done, fail) =>
        request({ socketPath, path }, (r) => r.resume().on('end', () => done(r.statusCode))).on('error', fail).end());
    assert.equal(await over('/v1/sessions'), 200);
    assert.equal((await server.get('/v1/sessions')).status, 401);
    const authorization = 'Bearer secret';
    assert.equal((await server.post('/admin/state/list', '', { authorization })).status, 404);

    const said = await server.post('/v1/completions', { session_id: 's', prompt: 'x', max_tokens: 4 }, { authorization });
    assert.equal(said.status, 200);
    const socket = ['--admin-socket', socketPath];
    assert.match(await prints('two', 'list', ...socket), /^s\t1 versions/);
    writeFileSync(at('key'), 'k\n');
    await prints('two', 'export', 's', '--out', at('signed'), '--key-file', at('key'), ...socket);
    await prints('two', 'export', 's', '--out', at('unsigned'), ...socket);
    await prints('two', 'import', at('signed'), '--as', 't', '--key-file', at('key'), ...socket);
    await prints('two', 'import', at('unsigned'), '--as', 'u', ...socket);
    assert.equal((await state('two', 'import', at('unsigned'), '--key-file', at('key'), ...socket)).code, 77);
    // What comes over the network is still asked for the server's signature.
    const put = (file) => server.fetch('/v1/sessions/v', { method: 'PUT', body: readFileSync(at(file)), headers: { authorization } });
    assert.equal((await put('unsigned')).status, 403);
    assert.equal((await put('signed')).status, 200);

    const lost = await state('two', 'list');
    assert.equal(lost.code, 65);
    assert.match(lost.err, /a server is running on .* but does not answer on .*two\/admin\.socket/);
    await server.stop('SIGKILL');
    server = await serve(...options('two'), '--set', `server.admin_socket=${socketPath}`); // replaces what the other left
    assert.match(await prints('two', 'list', ...socket), /^t\t1 versions/m);
    assert.equal((await server.stop()).code, 0);
  });
});

describe('a database with a damaged file', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const files = (dir, pattern) => readdirSync(at(`${dir}/sessions`)).filter((name) => pattern.test(name)).sort();
  const contents = (dir) =>
    Object.fromEntries(readdirSync(dir).filter((name) => name !== 'LOCK').map((name) => [name, readFileSync(join(dir, name)).toString('base64')]));
  const exported = async (dir, id) => {
    await prints(dir, 'export', id, '--no-states', '--out', at('file'));
    return readFileSync(at('file'));
  };
  const before = {};

  before.ready = async () => {
    for (const id of names) { // each server writes what the log of the one before has into table files
      const server = await serve(...options('whole'));
      assert.equal((await say(server, id, `${id} says`)).status, 200);
      assert.equal((await server.stop()).code, 0);
    }
    for (const id of names) before[id] = await exported('whole', id);
  };
  const copy = (dir) => cpSync(at('whole'), at(dir), { recursive: true });
  const refusesToStart = async (dir) => {
    const { code, err } = await run('serve', '--port', '0', ...options(dir));
    assert.ok([65, 66, 74].includes(code), `${code}: ${err}`);
    assert.ok(err.includes(`skein state repair --state-dir ${at(dir)}`), err);
  };

  test('does not start, names the repair, and starts after it with all that is left', async () => {
    await before.ready();
    const kinds = {
      current: (dir) => rmSync(at(`${dir}/sessions/CURRENT`)),
      manifest: (dir) => rmSync(at(`${dir}/sessions/${files(dir, /^MANIFEST/)[0]}`)),
      cut: (dir) => truncateSync(at(`${dir}/sessions/${files(dir, /\.sst$/)[0]}`), 50),
      gone: (dir) => rmSync(at(`${dir}/sessions/${files(dir, /\.sst$/).at(-1)}`)),
    };
    for (const [kind, damage] of Object.entries(kinds)) {
      copy(kind);
      damage(kind);
      await refusesToStart(kind);
      const damaged = contents(at(`${kind}/sessions`));
      const told = await state(kind, 'repair', '--dry-run');
      assert.equal(told.code, 65, told.err);
      assert.deepEqual(contents(at(`${kind}/sessions`)), damaged);
      const out = await prints(kind, 'repair');
      const aside = /^old_database +(.+)$/m.exec(out)[1];
      assert.deepEqual(contents(aside), damaged);
      const list = JSON.parse(await prints(kind, 'list', '--json')).map((one) => one.id);
      for (const id of names)
        if (list.includes(id)) assert.deepEqual(await exported(kind, id), before[id], `${kind}: ${id}`);
        else assert.match(out, new RegExp(`session '${id}'|session number`), `${kind}: ${id}`);
      if (kind === 'current' || kind === 'manifest') assert.deepEqual(list, names);
      const server = await serve(...options(kind));
      if (list.includes('a')) assert.equal((await say(server, 'a', 'more')).headers.get('x-session-state'), 'continued');
      assert.equal((await server.stop()).code, 0);
    }
  });

  test('is not repaired while a server runs on it', async () => {
    copy('used');
    const server = await serve(...options('used'));
    const { code, err } = await state('used', 'repair');
    assert.equal(code, 75);
    assert.match(err, /a server is running on .*; stop it first/);
    assert.equal((await server.stop()).code, 0);
  });

  test('is as it was, or repaired, when a repair is killed', async () => {
    for (let delay = 0; delay < 12; ++delay) {
      const dir = `killed-${delay}`;
      copy(dir);
      rmSync(at(`${dir}/sessions/CURRENT`));
      const damaged = contents(at(`${dir}/sessions`));
      const child = spawn(binary, ['state', 'repair', '--state-dir', at(dir)], { stdio: 'ignore' });
      const ended = new Promise((done) => child.on('exit', done));
      await new Promise((done) => setTimeout(done, 12 * delay));
      child.kill('SIGKILL');
      await ended;
      if (!existsSync(at(`${dir}/sessions/CURRENT`))) {
        assert.deepEqual(contents(at(`${dir}/sessions`)), damaged);
        await prints(dir, 'repair');
      }
      assert.deepEqual(JSON.parse(await prints(dir, 'list', '--json')).map((one) => one.id), names);
    }
  });
});
