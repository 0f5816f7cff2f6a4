// Pages of other origins against a server without a password, as an attacker would write them: a real browser tries
// every route of the route table in every way in which a page can send a request, from another origin and from a name
// that resolves to this machine (DNS rebinding). The server must refuse each one.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Browser, noBrowser } from './browser.mjs';
import { root, serve } from './support.mjs';

const options = { skip: noBrowser, timeout: 120000 };

// The route table itself: a route that is added to it is attacked here without a change of this file.
const table = readFileSync(join(root, 'actors/request/service/api_service.cpp'), 'utf8');
const routes = [...new Set([...table.matchAll(/(?:\{|speaks\()"(\/[^"]*)", /g)].map((m) => m[1]))]
  .filter((path) => !path.startsWith('/admin/'))
  .map((path) => path.replace('/web/{*}', '/web/js/app.js').replace(/\{\*?\}/g, 'victim'));
const pageFiles = ['/', '/web/js/app.js'];

const body = JSON.stringify({
  session_id: 'victim', id: 'victim', request_id: 'victim', model: 'fake', messages: [{ role: 'user', content: 'x' }],
  prompt: 'x', input: 'x', contents: ['x'], max_tokens: 1, text_list: ['x'], target_lang: 'en', to: 'stolen', version: 0,
});

let server, browser, elsewhere;
before(async () => {
  if (noBrowser) return;
  [server, browser] = await Promise.all([
    serve('--device', 'fake', '--set', 'drain.grace_ms=0'),
    // Newer versions of Chromium ask their user before a page may reach this machine; older ones and others do not.
    Browser.start('--host-resolver-rules=MAP *.test 127.0.0.1', '--disable-features=LocalNetworkAccessChecks'),
  ]);
  elsewhere = createServer((_, out) => out.setHeader('content-type', 'text/html').end('<!doctype html><title>x</title>'));
  await new Promise((done) => elsewhere.listen(0, '127.0.0.1', done));
  assert.equal((await server.post('/state/chat/completions', { session_id: 'victim', contents: ['mine'], max_tokens: 4 })).status, 200);
});
after(async () => {
  await browser?.close();
  elsewhere?.close();
  if (server) assert.equal((await server.stop()).code, 0);
});

/** Runs in the page: sends every request and tells what the page could read or open. */
async function attack({ target, routes, body }) {
  const gained = [];
  const settled = (promise) => promise.catch(() => undefined);
  const read = async (how, path, options) => {
    const response = await settled(fetch(target + path, options));
    if (!response || response.type === 'opaque') return;
    if (response.status !== 403) gained.push(`${how} ${path}: ${response.status} ${await response.text()}`);
  };
  const load = (make, path) => new Promise((done) => {
    const element = make(target + path);
    element.onload = element.onerror = () => (element.remove(), done());
    document.body.append(element);
  });
  let frames = 0;
  const submit = (method, enctype, path) => new Promise((done) => {
    const frame = document.createElement('iframe');
    frame.name = `frame${++frames}`;
    const form = Object.assign(document.createElement('form'), { method, enctype, action: target + path, target: frame.name });
    const field = Object.assign(document.createElement('input'), { name: body.slice(0, -1) + ',"', value: '":0}' });
    form.append(field);
    document.body.append(frame, form);
    frame.onload = () => (frame.remove(), form.remove(), done());
    form.submit();
  });
  const listen = (path) => new Promise((done) => {
    const source = new EventSource(target + path);
    source.onopen = () => (gained.push(`EventSource ${path}`), source.close(), done());
    source.onerror = () => (source.close(), done());
  });
  const open = (path) => new Promise((done) => {
    const socket = new WebSocket(target.replace('http', 'ws') + path);
    socket.onopen = () => (gained.push(`WebSocket ${path}`), socket.close());
    socket.onclose = () => done();
  });
  const text = { 'content-type': 'text/plain' };
  for (const path of routes)
    await Promise.all([
      read('cors GET', path, {}),
      read('cors POST', path, { method: 'POST', body, headers: text }),
      read('cors JSON', path, { method: 'POST', body, headers: { 'content-type': 'application/json' } }),
      read('cors DELETE', path, { method: 'DELETE' }),
      read('cors PUT', path, { method: 'PUT', body }),
      settled(fetch(target + path, { mode: 'no-cors' })),
      settled(fetch(target + path, { mode: 'no-cors', method: 'POST', body, headers: text })),
      settled(Promise.resolve(navigator.sendBeacon(target + path, body))),
      load((src) => Object.assign(new Image(), { src }), path),
      load((src) => Object.assign(document.createElement('script'), { src }), path),
      submit('get', 'application/x-www-form-urlencoded', path),
      submit('post', 'text/plain', path),
      listen(path),
    ]);
  await open('/v1/responses'); // the one route for sockets; a browser delays further attempts by seconds each
  return gained;
}

/** Everything that the server keeps and that an attack could change or take. */
async function kept() {
  const told = async (path) => await (await server.fetch(path, { headers: { 'x-request-id': 'own' } })).text();
  const tokens = (await told('/metrics')).match(/^skein_generation_tokens_total.*$/gm);
  return { sessions: await told('/v1/sessions'), models: await told('/v1/models'), tokens };
}

/** Attacks from a page at `origin`; `harmless` says which answers other than 403 are no gain. */
async function attackFrom(origin, target, harmless = () => false) {
  const context = await browser.chromium.newContext();
  const page = await context.newPage();
  const answers = [];
  page.on('response', (r) => {
    const url = new URL(r.url());
    if (url.port === `${server.port}` && url.pathname !== '/attack') answers.push({ path: url.pathname, status: r.status(), request: r.request() });
  });
  await page.route('**/attack', (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html><body>' }));
  await page.goto(`${origin}/attack`);
  const before = await kept();
  const logged = server.lines.length;
  const gained = await page.evaluate(attack, { target, routes, body });
  assert.deepEqual(gained, []);
  const wrong = answers.filter((a) => a.status !== 403 && !harmless(a)).map((a) => `${a.request.method()} ${a.path} ${a.status}`);
  assert.deepEqual(wrong, []);
  // A browser does not tell the status of what a page may not read; the server's log does.
  const requests = server.lines.slice(logged).map((line) => JSON.parse(line)).filter((line) => line.msg === 'request' && line.request_id !== 'own');
  assert.ok(requests.length >= 10 * routes.length / 2, `${requests.length} requests`);
  assert.deepEqual(requests.filter((line) => line.status !== 403), []);
  const reached = new Set(answers.map((a) => a.path));
  assert.deepEqual(routes.filter((path) => !reached.has(path)), []);
  assert.deepEqual(await kept(), before);
  await context.close();
}

// A link or an image of the page's own files is served; a page that has no CORS headers cannot read it.
const isLink = ({ path, status, request }) =>
  pageFiles.includes(path) && request.method() === 'GET' && !request.headers().origin && (status === 200 || status === 304);

test('the route table was read', () => {
  assert.ok(routes.length >= 80, `${routes.length} routes`);
  for (const path of ['/state/delete', '/removemodel', '/v1/sessions', '/v1/sessions/victim', '/v1/chat/completions', '/livez'])
    assert.ok(routes.includes(path), path);
});

test('a page of another site changes and reads nothing', options, async () => {
  await attackFrom(`http://evil.test:${elsewhere.address().port}`, server.url, isLink);
});
test('a page of another port of this machine changes and reads nothing', options, async () => {
  await attackFrom(`http://127.0.0.1:${elsewhere.address().port}`, server.url, isLink);
});
test('a name that was made to resolve to this machine changes and reads nothing', options, async () => {
  await attackFrom(`http://rebound.test:${server.port}`, `http://rebound.test:${server.port}`);
});

test('names of this server', async (t) => {
  const named = await serve('--device', 'fake', '--set', 'drain.grace_ms=0', '--set', 'server.host_names=skein.lan,Box');
  t.after(() => named.stop());
  const asked = async (host) => await new Promise((done, fail) => {
    import('node:http').then(({ get }) =>
      get({ port: named.port, host: '127.0.0.1', path: '/v1/models', headers: { host } }, (r) => (r.resume(), done(r.statusCode))).on('error', fail));
  });
  for (const host of ['localhost', 'LOCALHOST:8000', 'localhost.', 'app.localhost:1', '127.0.0.1', '10.1.2.3:80', '[::1]:8000', '[fe80::1]', 'skein.lan', 'SKEIN.LAN:8000', 'box'])
    assert.equal(await asked(host), 200, host);
  for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', 'xlocalhost', '127.1', '0x7f000001', '[::1', '[evil]', 'lan', 'skein.lan.evil.example', 'skein.lan..'])
    assert.equal(await asked(host), 403, host);
});

test('own pages, listed pages and clients that are no browsers', async (t) => {
  const listed = await serve('--device', 'fake', '--set', 'drain.grace_ms=0', '--set', 'server.cors_origins=https://page.example');
  t.after(() => listed.stop());
  const status = async (headers, method = 'GET', path = '/v1/models') => (await listed.fetch(path, { method, headers })).status;
  const here = `127.0.0.1:${listed.port}`;
  for (const headers of [{}, { origin: `http://${here}` }, { origin: `https://${here}` }, { origin: 'https://page.example' }, { 'sec-fetch-site': 'none' }, { 'sec-fetch-site': 'same-origin' }, { origin: 'https://page.example', 'sec-fetch-site': 'cross-site' }])
    assert.equal(await status(headers), 200, JSON.stringify(headers));
  for (const headers of [{ origin: 'null' }, { origin: 'http://page.example' }, { origin: `http://${here}.evil.example` }, { origin: `ftp://${here}` }, { origin: 'http://127.0.0.1' }, { origin: here }, { 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }, { 'sec-fetch-site': 'new' }])
    for (const path of ['/v1/models', '/livez', '/version', '/nowhere'])
      assert.equal(await status(headers, 'GET', path), 403, `${path} ${JSON.stringify(headers)}`);
  assert.equal(await status({ 'sec-fetch-site': 'cross-site' }, 'GET', '/'), 200);
  assert.equal(await status({ origin: 'http://evil.example' }, 'GET', '/'), 403);
});

test('with a password a page of another origin needs it in a header', async (t) => {
  process.env.SKEIN_SERVER_PASSWORD = 'secret';
  const guarded = await serve('--device', 'fake', '--set', 'drain.grace_ms=0');
  delete process.env.SKEIN_SERVER_PASSWORD;
  t.after(() => guarded.stop());
  const origin = 'http://evil.example';
  const ask = (headers, more = {}) => guarded.post('/v1/completions', { model: 'fake', prompt: 'x', max_tokens: 1, ...more }, headers);
  const good = await ask({ origin, authorization: 'Bearer secret' });
  assert.deepEqual([good.status, good.headers.get('access-control-allow-origin')], [200, '*']);
  const readable = good.headers.get('access-control-expose-headers').toLowerCase().split(', ');
  for (const name of ['retry-after', 'x-should-retry', 'openai-processing-ms', 'x-request-id']) assert.ok(readable.includes(name), name);
  assert.equal((await ask({ origin, 'x-api-key': 'secret' })).status, 200);
  assert.equal((await ask({ origin }, { password: 'secret' })).status, 403);
  assert.equal((await ask({}, { password: 'secret' })).status, 200);
  assert.equal((await ask({ origin, authorization: 'Bearer wrong' })).status, 401);
  for (const path of ['/livez', '/', '/health', '/v1/models', '/metrics']) assert.equal((await guarded.fetch(path, { headers: { origin } })).status, 403, path);
  assert.equal((await guarded.fetch('/livez', { headers: { origin, authorization: 'Bearer secret' } })).status, 200);
});
