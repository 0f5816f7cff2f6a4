// Every file of examples/ runs against a real server and does what it says; so do the commands of docs/api.md and docs/sessions.md.
// nginx is looked for in PATH or at SKEIN_NGINX; its test, and systemd's, show as skipped where there is none.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join, relative } from 'node:path';
import { after, before, test } from 'node:test';
import { binary, root, serve, within } from './support.mjs';

const examples = join(root, 'examples');
const folder = mkdtempSync(join(tmpdir(), 'skein-examples-'));
const inPath = (name) => process.env.PATH.split(delimiter).concat('/usr/sbin').map((p) => join(p, name)).find(existsSync);
const nginx = process.env.SKEIN_NGINX ?? inPath('nginx');
const ran = new Set(['README.md']);

/** Runs a program to its end; its output, or an error with all that it said. */
async function run(command, args, { input = '', env = {}, cwd = folder } = {}) {
  const ended = new Promise((done, fail) => {
    const child = execFile(command, args, { env: { ...process.env, ...env }, cwd, maxBuffer: 1 << 26 }, (error, stdout, stderr) =>
      error ? fail(new Error(`${command} ${args}: ${error.message}\n${stdout}\n${stderr}`)) : done({ stdout, stderr }));
    // A program may end before it has read its input.
    child.stdin.on('error', (error) => error.code === 'EPIPE' || fail(error));
    child.stdin.end(input);
  });
  return await within(ended, command);
}
const example = (name) => {
  ran.add(name);
  return join(examples, name);
};

let server;
let env;
before(async () => {
  process.env.SKEIN_SERVER_PASSWORD = 'secret';
  server = await serve('--device', 'fake', '--set', 'drain.grace_ms=0', '--set', 'engine.fake_tick_us=500', '--set', 'server.trusted_proxies=127.0.0.1');
  delete process.env.SKEIN_SERVER_PASSWORD;
  env = { SKEIN_URL: server.url, SKEIN_KEY: 'secret' };
});
after(async () => {
  if (server) assert.equal((await server.stop()).code, 0);
  rmSync(folder, { recursive: true, force: true });
});

/** An example among the packages that the tests have. */
function withPackages(name) {
  const copy = join(folder, 'javascript');
  mkdirSync(copy, { recursive: true });
  if (!existsSync(join(copy, 'node_modules'))) symlinkSync(join(root, 'tests/server/node_modules'), join(copy, 'node_modules'));
  const file = join(copy, name.split('/').pop());
  writeFileSync(file, readFileSync(example(name)));
  return file;
}

test('python/chat.py keeps a session', async () => {
  const { stdout } = await run('python3', [example('python/chat.py'), 'terminal'], { env, input: 'Hi\nAgain\n\nnever\n' });
  assert.ok(stdout.length > 2, stdout);
  const { body } = await server.get('/v1/sessions/terminal?transcript=true', { authorization: 'Bearer secret' });
  assert.deepEqual(body.transcript.map((turn) => turn.messages[0].content), ['Hi', 'Again']);
  await assert.rejects(run('python3', [join(examples, 'python/chat.py')], { env: { ...env, SKEIN_KEY: 'wrong' }, input: 'Hi\n' }), /401/);
});

test('python/resume.py resumes where the stream broke', async () => {
  const { stdout, stderr } = await run('python3', [example('python/resume.py')], { env });
  assert.match(stderr, /closed after event 7/);
  assert.ok(stdout.length > 10, stdout);
});

test('javascript/chat.mjs', async () => {
  const { stdout } = await run(process.execPath, [withPackages('javascript/chat.mjs')], { env });
  assert.match(stdout, /^[0-9]+ input tokens: earlier/m);
});

test('javascript/socket.mjs', async () => {
  const { stdout } = await run(process.execPath, [withPackages('javascript/socket.mjs')], { env });
  assert.ok(stdout.split(' \n\n').length > 2, stdout);  // after each answer, which may be white space alone
});

test('curl/tour.sh', { skip: inPath('curl') ? false : 'no curl' }, async () => {
  const { stdout } = await run('bash', [example('curl/tour.sh')], { env });
  for (const what of ['"object":"list"', '"chat.completion"', 'data: [DONE]', '"version":2', '"transcript"', '"deleted":true'])
    assert.ok(stdout.includes(what), `${what} in\n${stdout}`);
  await assert.rejects(run('bash', [join(examples, 'curl/tour.sh')], { env: { ...env, SKEIN_KEY: 'wrong' } }), /invalid_api_key/);
});

const freePort = () => new Promise((done) => {
  const taken = createServer().listen(0, '127.0.0.1', () => {
    const { port } = taken.address();
    taken.close(() => done(port));
  });
});

test('nginx/skein.conf', { skip: nginx ? false : 'no nginx: set SKEIN_NGINX' }, async (t) => {
  const port = await freePort();
  let text = readFileSync(example('nginx/skein.conf'), 'utf8');
  for (const [from, to] of [['server 127.0.0.1:8000;', `server 127.0.0.1:${server.port};`], ['listen 8080;', `listen 127.0.0.1:${port};`],
    ['http {', `http {\n  access_log off;\n${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((n) => `  ${n}_temp_path ${folder}/${n};\n`).join('')}`]]) {
    assert.ok(text.includes(from), from);
    text = text.replace(from, to);
  }
  const file = join(folder, 'nginx.conf');
  writeFileSync(file, `pid ${folder}/nginx.pid;\nerror_log stderr;\ndaemon off;\nmaster_process off;\n${text}`);
  await run(nginx, ['-t', '-e', 'stderr', '-p', folder, '-c', file]);
  const proxy = spawn(nginx, ['-e', 'stderr', '-p', folder, '-c', file], { stdio: 'ignore' });
  t.after(() => proxy.kill());
  const through = { ...env, SKEIN_URL: `http://127.0.0.1:${port}` };
  for (let tries = 0; ; ++tries) {
    const up = await fetch(`${through.SKEIN_URL}/livez`).catch(() => undefined);
    if (up?.ok) break;
    assert.ok(tries < 200, 'nginx does not answer');
    await new Promise((done) => setTimeout(done, 25));
  }
  await run('python3', [join(examples, 'python/resume.py')], { env: through });
  await run(process.execPath, [withPackages('javascript/socket.mjs')], { env: through });
  const own = await fetch(`${through.SKEIN_URL}/livez`, { headers: { origin: through.SKEIN_URL } });
  assert.equal(own.status, 200, 'a page that nginx serves is not foreign');
});

test('systemd/local.conf', { skip: inPath('systemd-analyze') ? false : 'no systemd-analyze' }, async () => {
  const units = join(folder, 'units');
  mkdirSync(join(units, 'skein.service.d'), { recursive: true });
  writeFileSync(join(units, 'skein.service'), readFileSync(join(root, 'systemd/skein.service'), 'utf8').replaceAll('/usr/bin/skein', binary));
  const dropIn = readFileSync(example('systemd/local.conf'), 'utf8');
  const verify = async (text) => {
    writeFileSync(join(units, 'skein.service.d/local.conf'), text);
    return (await run('systemd-analyze', ['verify', '--man=no', join(units, 'skein.service')])).stderr;
  };
  assert.equal(await verify(dropIn), '');
  assert.notEqual(await verify(dropIn.replace('MemoryMax', 'MemoryMost')), '', 'a fault in it would be noticed');
  const variables = Object.fromEntries(
    [...dropIn.matchAll(/^Environment=(SKEIN_[A-Z_]+)=(.*)$/gm)].map((m) => [m[1], m[2].replace('/srv/models', units)]));
  const { stdout } = await run(binary, ['serve', '--dump-config'], { env: variables });
  for (const [name, value] of Object.entries(variables)) assert.match(stdout, new RegExp(`"${value}".*${name}`));
});

test('the commands of docs/api.md and docs/sessions.md', { skip: inPath('curl') ? false : 'no curl' }, async () => {
  const page = ['api', 'sessions'].map((name) => readFileSync(join(root, `docs/${name}.md`), 'utf8')).join('');
  const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map((m) => m[1]);
  assert.ok(blocks.length >= 9, `${blocks.length} blocks`);
  const ask = 'curl() { command curl --fail-with-body --no-progress-meter -H "Authorization: Bearer secret" "$@"; }\n';
  for (const block of blocks) {
    const { stdout } = await run('bash', ['-euc', `U=${server.url}\n${ask}${block}`]);
    assert.ok(stdout.length > 0, block);
  }
});

test('every example was run', () => {
  const files = readdirSync(examples, { recursive: true, withFileTypes: true }).filter((e) => e.isFile())
    .map((e) => relative(examples, join(e.path, e.name))).filter((name) => !name.includes('__pycache__'));
  const skipped = [!nginx && 'nginx/skein.conf', !inPath('systemd-analyze') && 'systemd/local.conf', !inPath('curl') && 'curl/tour.sh'];
  assert.deepEqual(files.filter((name) => !ran.has(name) && !skipped.includes(name)), []);
});
