// What clients can make the server hold: slow uploads, readers who read nothing and bodies short of their last byte, all
// at once, and bodies from many addresses, which are worth the whole budget. Its resident memory stays within queue.bytes_max and a tenth, others are served, and all of it is given back.
// SKEIN_LONG=1 takes sizes with which a server without a budget needed gigabytes, and prints what it measured.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { frame, handshake } from './raw_socket.mjs';
import { binary, serve, short } from './support.mjs';

const MiB = 1 << 20;
const full = process.env.SKEIN_LONG === '1';
const size = full ? { budget: 256 * MiB, upload: 256 * MiB, uploads: 8, readers: 400, halves: 2500, sockets: 500, crowd: 1500 }
  : { budget: 128 * MiB, upload: 60 * MiB, uploads: 8, readers: 60, halves: 1000, sockets: 200, crowd: 750 };
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

let server, folder, keys, baseline;
const key = {};
const bearer = (name) => ({ authorization: `Bearer ${key[name]}` });

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'skein-memory-'));
  keys = join(folder, 'api-keys');
  for (const [name, more] of [['attacker', ['--concurrent', '1']], ['other', ['--admin']]]) {
    const made = spawnSync(binary, ['keys', 'new', name, '--keys-file', keys, ...more], { encoding: 'utf8' });
    assert.equal(made.status, 0, made.stderr);
    key[name] = made.stdout.trim();
  }
  await start();
  const metadata = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`k${i}`, 'x'.repeat(512)]));
  for (let i = 0; i < 1000; i += 50)
    await Promise.all(Array.from({ length: 50 }, async () => {
      const made = await server.post('/v1/conversations', { metadata }, bearer('attacker'));
      assert.equal(made.status, 200);
    }));
  await server.stop();
});
after(() => rmSync(folder, { recursive: true }));

async function start(guarded = true) {
  server = await serve('--device', 'fake', ...(guarded ? ['--keys-file', keys] : []), '--set', `queue.bytes_max=${size.budget}`,
    '--set', `server.state_dir=${join(folder, 'state')}`, '--set', 'limits.body_timeout_ms=600000',
    '--set', 'limits.header_timeout_ms=600000', '--set', 'drain.grace_ms=0');
}
async function givenBack() {
  for (let i = 0; ; ++i) {
    const { body } = await server.get('/health', bearer('other'));
    if (body.memory.held_bytes === 0) return;
    assert.ok(i < 500, `${body.memory.held_bytes} bytes are still held`);
    await pause(20);
  }
}
const complete = () => server.post('/v1/completions', { prompt: 'x'.repeat(100000), max_tokens: 3 }, bearer('other'));

const resident = () => 1024 * Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.process.pid}/status`, 'utf8'))[1]);

/** Sends a head and what `body` yields, and reads `reads` or nothing of the answer. */
function client(head, body = [], reads = true, from = '127.0.0.1') {
  const socket = connect({ port: server.port, host: '127.0.0.1', localAddress: from });
  const state = { socket, got: '' };
  socket.on('error', () => {});
  if (reads) socket.on('data', (data) => (state.got += data.toString('latin1').slice(0, 4096)));
  state.closed = new Promise((done) => socket.on('close', done));
  state.sent = (async () => {
    socket.write(head);
    for (const piece of body) {
      if (socket.destroyed) return;
      if (!socket.write(piece)) await Promise.race([new Promise((done) => socket.once('drain', done)), state.closed]);
    }
  })();
  return state;
}
/** Returns when everything is sent, or when the server has read nothing for three seconds. */
async function sentOrHeldBack(clients) {
  let over = false;
  const end = Promise.all(clients.map((c) => c.sent)).then(() => (over = true));
  const written = () => clients.reduce((sum, c) => sum + c.socket.bytesWritten, 0);
  for (let before = -1, since = Date.now(); !over && Date.now() < since + 3000; await Promise.race([end, pause(100)]))
    if (written() !== before) [before, since] = [written(), Date.now()];
}
const statusOf = (c) => Number(/^HTTP\/1\.1 (\d+)/.exec(c.got)?.[1] ?? 0);
const count = (clients) => {
  const counts = {};
  for (const c of clients) counts[statusOf(c)] = (counts[statusOf(c)] ?? 0) + 1;
  return counts;
};

function* zeros(bytes) {
  const piece = Buffer.alloc(256 * 1024, 1);
  for (; bytes > piece.length; bytes -= piece.length) yield piece;
  yield piece.subarray(0, bytes);
}

/** Watches memory and how long /livez takes, while `work` runs: on a thread of its own, which no client keeps waiting. */
async function watched(work) {
  const looking = new Worker(`
    const { parentPort, workerData: { url, status } } = require('node:worker_threads');
    const { readFileSync } = require('node:fs');
    let over = false, most = 0, slowest = 0;
    parentPort.on('message', () => (over = true));
    (async () => {
      while (!over) {
        const began = Date.now();
        const live = await fetch(url);
        await live.arrayBuffer();
        if (live.status !== 200) throw new Error('/livez: ' + live.status);
        slowest = Math.max(slowest, Date.now() - began);
        most = Math.max(most, 1024 * Number(/VmRSS:\\s+(\\d+) kB/.exec(readFileSync(status, 'utf8'))[1]));
        await new Promise((done) => setTimeout(done, 20));
      }
      parentPort.postMessage({ most, slowest });
    })();`, { eval: true, workerData: { url: `${server.url}/livez`, status: `/proc/${server.process.pid}/status` } });
  const found = new Promise((done, fail) => looking.on('message', done).on('error', fail));
  await work();
  looking.postMessage('over');
  const seen = await found;
  await looking.terminate();
  return seen;
}

const slowUploads = () => Array.from({ length: size.uploads }, (_, i) =>
  client(`PUT /v1/sessions/upload${i} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key.attacker}\r\nContent-Length: ${size.upload}\r\n\r\n`,
    zeros(size.upload - 1)));
const idleReaders = () => Array.from({ length: size.readers }, () =>
  client(`GET /v1/sessions?limit=1000 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key.attacker}\r\n\r\n`, [], false));
const halfRequests = () => Array.from({ length: size.halves }, () =>
  client(`POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: ${256 * 1024}\r\n\r\n`, zeros(256 * 1024 - 1)));

function* chunks(bytes) {
  const piece = Buffer.from(`1000\r\n${'x'.repeat(4096)}\r\n`);
  for (; bytes > 0; bytes -= 4096) yield piece;
}
/** Every other body does not say how long it is. */
const crowd = () => Array.from({ length: size.crowd }, (_, i) => {
  const head = 'POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n', from = `127.0.0.${2 + (i % 8)}`;
  return i % 2 === 0 ? client(`${head}Content-Length: ${256 * 1024}\r\n\r\n`, zeros(256 * 1024 - 1), true, from)
    : client(`${head}Transfer-Encoding: chunked\r\n\r\n`, chunks(256 * 1024), true, from);
});

const openMessages = () => Array.from({ length: size.sockets }, () =>
  client(handshake(server.port, { Authorization: `Bearer ${key.attacker}` }), [frame(1, 'x'.repeat(MiB - 1), { fin: false })]));

/** No secret protects the server, and what the crowd leaves is too little for others. */
const isOpen = (begin) => begin === crowd;
const cases = { 'slow uploads': slowUploads, 'readers who read nothing': idleReaders, 'bodies short of their last byte': halfRequests,
  'messages that do not end': openMessages, 'bodies from many addresses': crowd };
if (!full) cases['all of them at once'] = () => [...slowUploads(), ...idleReaders(), ...halfRequests(), ...openMessages()];
for (const [name, begin] of Object.entries(cases)) {
  test(name, { skip: short && 'a sanitizer has its own memory' }, async (t) => {
    await start(!isOpen(begin));
    t.after(() => server.stop());
    assert.equal((await complete()).status, 200);
    await pause(500);
    baseline = resident();
    let clients;
    const { most, slowest } = await watched(async () => {
      clients = begin();
      await sentOrHeldBack(clients);
      await pause(2000);
      if (isOpen(begin)) return;
      const other = await complete();
      assert.equal(other.status, 200, JSON.stringify(other.body));
    });
    const held = most - baseline;
    console.log(`# ${name}: ${(held / MiB).toFixed(0)} MiB above ${(baseline / MiB).toFixed(0)} MiB, /livez within ${slowest} ms, statuses ${JSON.stringify(count(clients))}`);
    clients.forEach((c) => c.socket.destroy());
    await Promise.all(clients.map((c) => c.closed));
    await givenBack();
    console.log(`# ${name}: afterwards ${((resident() - baseline) / MiB).toFixed(0)} MiB`);
    assert.ok(held <= 1.1 * size.budget, `${(held / MiB).toFixed(0)} MiB`);
    assert.ok(slowest < 2000, `/livez took ${slowest} ms`);
  });
}
