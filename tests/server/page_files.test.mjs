// The chat page as HTTP has it: part of the program, with types, hashes and a strict policy; open where all else wants a
// password; there while the model loads; and not there where the operator says so.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { root, serve, startServer } from './support.mjs';

let server;
before(async () => {
  server = await serve('--device', 'fake', '--password', 'secret', '--set', 'drain.grace_ms=0');
});
after(async () => {
  assert.equal((await server.stop()).code, 0);
});

const scripts = readdirSync(join(root, 'web/js')).map((name) => [`/web/js/${name}`, `web/js/${name}`, 'text/javascript; charset=utf-8']);
const files = [
  ['/', 'web/index.html', 'text/html; charset=utf-8'],
  ['/web/index.html', 'web/index.html', 'text/html; charset=utf-8'],
  ['/web/style.css', 'web/style.css', 'text/css; charset=utf-8'],
  ['/web/icon.svg', 'web/icon.svg', 'image/svg+xml'],
  ...scripts,
];

test('every file is served as it is, with its type and policy, without the password', async () => {
  for (const [path, source, type] of files) {
    const response = await server.fetch(path);
    const body = Buffer.from(await response.arrayBuffer());
    const expected = readFileSync(join(root, source));
    assert.equal(response.status, 200, path);
    assert.ok(body.equals(expected), path);
    assert.equal(response.headers.get('content-type'), type);
    assert.equal(response.headers.get('etag'), `"${createHash('sha256').update(expected).digest('hex').slice(0, 32)}"`);
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
    const policy = response.headers.get('content-security-policy');
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/);
    assert.match(policy, /require-trusted-types-for 'script'; trusted-types 'none'/);
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
  }
});

test('a client that has a file gets 304, HEAD gets no body, and other methods 405', async () => {
  const { headers } = await server.fetch('/');
  const etag = headers.get('etag');
  for (const known of [etag, `"other", W/${etag}`, '*']) {
    const again = await server.fetch('/', { headers: { 'if-none-match': known } });
    assert.deepEqual([again.status, await again.text(), again.headers.get('etag')], [304, '', etag]);
  }
  assert.equal((await server.fetch('/', { headers: { 'if-none-match': '"other"' } })).status, 200);
  const head = await server.fetch('/web/style.css', { method: 'HEAD' });
  assert.equal(head.headers.get('content-length'), `${readFileSync(join(root, 'web/style.css')).length}`);
  assert.equal(await head.text(), '');
  assert.equal((await server.fetch('/', { method: 'POST', headers: { authorization: 'Bearer secret' } })).status, 405);
});

test('there is nothing else below it', async () => {
  const authorization = 'Bearer secret';
  for (const path of ['/web/', '/web', '/web/embed.cmake', '/web/package.json', '/web/js/%2e%2e%2findex.html', '/web/js/app.js%20', '/index.html', '/js/app.js', '//'])
    assert.ok((await server.fetch(path, { headers: { authorization } })).status >= 400, path);
  assert.equal((await server.get('/v1/models')).status, 401);
});

test('it is there while the model loads, and not where it is switched off', async () => {
  const loading = await startServer('--device', 'cpu', '--set', 'drain.grace_ms=0');
  assert.equal((await loading.fetch('/')).status, 200);
  await loading.says('ready');
  assert.equal((await loading.fetch('/')).status, 200);
  await loading.stop();
  const without = await startServer('--device', 'fake', '--set', 'server.web_page=false', '--set', 'drain.grace_ms=0');
  await without.says('ready');
  assert.equal((await without.fetch('/')).status, 404);
  assert.equal((await without.fetch('/web/js/app.js')).status, 404);
  await without.stop();
});
