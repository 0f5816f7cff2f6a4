// Starts the real server for a test and stops it again. SKEIN_BINARY names the program; SKEIN_ORACLE the folder with the
// tiny trained models (without it, tests that need a model are skipped, and show as skipped).
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
export const root = resolve(here, '../..');
export const binary = process.env.SKEIN_BINARY ?? join(root, 'build/dev/skein');

// A test that fails before it stops its server must not keep the file alive: children do not hold the event loop, and
// those left over die with this process.
const running = new Set();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

const beside = resolve(root, '../shared/oracle');
export const oracle = process.env.SKEIN_ORACLE ?? (existsSync(beside) ? beside : undefined);
export const noOracle = oracle ? false : 'no oracle folder: set SKEIN_ORACLE';

export class Server {
  constructor(process, port) {
    this.process = process;
    this.port = port;
    this.lines = [];
    this.exited = new Promise((done) => process.on('exit', (code, signal) => done({ code, signal })));
    process.unref();
    process.stderr.unref();
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  async get(path, headers = {}) {
    const response = await fetch(this.url + path, { headers });
    return { status: response.status, headers: response.headers, body: await response.json() };
  }

  async post(path, body, headers = {}) {
    const response = await fetch(this.url + path, {
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
      const { body } = await this.get('/health');
      if (good(body)) return body;
      if (Date.now() > end) throw new Error(`counters never got there: ${JSON.stringify(body)}`);
      await new Promise((r) => setTimeout(r, 10));
    }
  }

  async stop(signal = 'SIGTERM') {
    this.process.ref();
    this.process.kill(signal);
    return await this.exited;
  }
}

/** Runs `skein serve` with the given arguments on a free port and waits until it says that it listens. */
export async function serve(...args) {
  const child = spawn(binary, ['serve', '--port', '0', ...args], { stdio: ['ignore', 'inherit', 'pipe'] });
  running.add(child);
  return await new Promise((done, fail) => {
    let server;
    let rest = '';
    const seen = [];
    child.on('exit', () => running.delete(child));
    child.on('exit', (code) => fail(new Error(`skein ended with ${code} before it listened:\n${seen.join('\n')}`)));
    child.stderr.setEncoding('utf8');
    child.stderr.on('data', (text) => {
      rest += text;
      const lines = rest.split('\n');
      rest = lines.pop();
      for (const line of lines) {
        (server ? server.lines : seen).push(line);
        if (server || !line.includes('"msg":"listening"')) continue;
        server = new Server(child, JSON.parse(line).port);
        server.lines.push(...seen);
        done(server);
      }
    });
  });
}

/** A server with the tiny trained RWKV-7 model (bytes are its tokens). */
export const serveTiny = (...args) =>
  serve('--device', 'cpu', '--model', join(oracle, 'models/tiny-7v0.pth'), '--model-name', 'tiny', ...args);
