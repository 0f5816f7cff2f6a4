// Starts the real server for a test and stops it again. SKEIN_BINARY names the program; SKEIN_ORACLE the folder with the
// tiny trained models (without it, tests that need a model are skipped, and show as skipped).
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
export const root = resolve(here, '../..');
export const binary = process.env.SKEIN_BINARY ?? join(root, 'build/dev/skein');

// A server must not outlive its test, however that ends, and none keeps a test alive: children do not hold the event
// loop, and those left over die with this process, also when a signal (of ctest) ends it.
const running = new Set();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => process.exit(1));

const beside = resolve(root, '../shared/oracle');
export const oracle = process.env.SKEIN_ORACLE ?? (existsSync(beside) ? beside : undefined);
export const noOracle = oracle ? false : 'no oracle folder: set SKEIN_ORACLE';

/** Fewer tokens, on every path still: a sanitizer makes each ten times as dear. */
export const short = process.env.SKEIN_SHORT === '1';

/** Ends a wait that would hang; no test measures with it. */
const patience_ms = 60000;

/** The promise, or an error that says what was waited for. */
export function within(promise, what, limit_ms = patience_ms) {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`${what} did not come within ${limit_ms} ms`)), limit_ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export class Server {
  constructor(child) {
    this.process = child;
    this.lines = [];
    this.waiting = [];
    this.exited = new Promise((done) => child.on('close', (code, signal) => done({ code, signal })));
    let rest = '';
    child.stderr.setEncoding('utf8');
    child.stderr.on('data', (text) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop();
      this.lines.push(...lines);
      this.waiting = this.waiting.filter((look) => !look());
    });
    child.unref();
    child.stderr.unref();
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The first log line with that message, as an object. */
  async says(msg) {
    const line = new Promise((done) => {
      const look = () => {
        const found = this.lines.find((l) => l.includes(`"msg":"${msg}"`));
        if (found) done(JSON.parse(found));
        return found;
      };
      if (!look()) this.waiting.push(look);
    });
    const end = this.exited.then(({ code }) => {
      throw new Error(`skein ended with ${code} before it said "${msg}":\n${this.lines.join('\n')}`);
    });
    return await within(Promise.race([line, end]), `"${msg}"`);
  }

  async fetch(path, options = {}) {
    return await fetch(this.url + path, { signal: AbortSignal.timeout(patience_ms), ...options });
  }

  async get(path, headers = {}) {
    const response = await this.fetch(path, { headers });
    return { status: response.status, headers: response.headers, body: await response.json() };
  }

  async post(path, body, headers = {}) {
    const response = await this.fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  }

  /** Polls the server's own counters until `good` says yes; the limit only ends a test that would hang. */
  async counters(good, limit_ms = 20000) {
    const end = Date.now() + limit_ms;
    for (;;) {
      const { body } = await this.get('/health', this.secret ? { authorization: `Bearer ${this.secret}` } : {});
      if (good(body)) return body;
      if (Date.now() > end) throw new Error(`counters never got there: ${JSON.stringify(body)}`);
      await new Promise((r) => setTimeout(r, 10));
    }
  }

  async end() {
    return await within(this.exited, 'the end of the server');
  }

  async stop(signal = 'SIGTERM') {
    this.process.kill(signal);
    return await this.end();
  }
}

/** Runs `skein serve` with the given arguments on a free port and waits until it listens; it then begins to load. */
export async function startServer(...args) {
  const child = spawn(binary, ['serve', '--port', '0', ...args], { stdio: ['ignore', 'inherit', 'pipe'] });
  running.add(child);
  child.on('exit', () => running.delete(child));
  const server = new Server(child);
  server.secret = args[args.indexOf('--password') + 1 || args.length] ?? process.env.SKEIN_SERVER_PASSWORD;  // strangers are not told the counters
  server.port = (await server.says('listening')).port;
  return server;
}

/** As startServer, and waits until the server is ready. */
export async function serve(...args) {
  const server = await startServer(...args);
  await server.says('ready');
  return server;
}

/** A server with the tiny trained RWKV-7 model (bytes are its tokens). */
export const serveTiny = (...args) =>
  serve('--device', 'cpu', '--model', join(oracle, 'models/tiny-7v0.pth'), '--model-name', 'tiny', ...args);
