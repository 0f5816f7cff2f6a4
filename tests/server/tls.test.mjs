// TLS beside the plain port: what clients get through it, hostile ones, a certificate that is exchanged, and the end.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import tls from 'node:tls';
import { binary, serve, within } from './support.mjs';

const noOpenssl = spawnSync('openssl', ['version']).error ? 'openssl makes the certificates' : false;

test('a server with a certificate', { skip: noOpenssl }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-tls-'));
  const certificate = join(folder, 'cert.pem'), key = join(folder, 'key.pem');
  const issue = (name) => {
    const told = spawnSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
      '-nodes', '-days', '2', '-subj', `/CN=${name}`, '-keyout', key, '-out', certificate], { encoding: 'utf8' });
    assert.equal(told.status, 0, told.stderr);
  };
  issue('first');
  const server = await serve('--device', 'fake', '--tls-certificate', certificate, '--tls-key', key, '--tls-port', '0',
    '--set', 'engine.fake_tick_us=500', '--set', 'limits.header_timeout_ms=2000', '--set', 'drain.grace_ms=0');
  t.after(() => rmSync(folder, { recursive: true }));
  const port = (await server.says('listening')).tls_port;
  assert(port > 0 && port !== server.port);

  const agent = new https.Agent({ rejectUnauthorized: false, keepAlive: true });
  /** Status and text; `begun` hears of the first piece and gets the request. */
  const ask = (method, path, body, begun = () => {}) => within(new Promise((done, fail) => {
    const request = https.request({ host: '127.0.0.1', port, method, path, agent }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (piece) => {
        text += piece;
        begun(request);
      });
      response.on('end', () => done({ status: response.statusCode, text }));
      response.on('error', fail);
    });
    request.on('error', fail);
    request.end(body && JSON.stringify(body));
  }), path);
  const hello = () => within(new Promise((done, fail) => {
    const socket = tls.connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: ['h2', 'http/1.1'] },
      () => {
        const seen = { name: socket.getPeerCertificate().subject.CN, protocol: socket.getProtocol(), alpn: socket.alpnProtocol };
        socket.destroy();
        done(seen);
      });
    socket.on('error', fail);
  }), 'a handshake');
  const nobody = () => server.counters((h) => h.connections.open <= 1);

  await t.test('answers as it does without', async () => {
    assert.equal((await ask('GET', '/livez')).status, 200);
    const plain = await server.post('/v1/completions', { prompt: 'abc', max_tokens: 20, ignore_eos: true, temperature: 0 });
    const secret = await ask('POST', '/v1/completions', { prompt: 'abc', max_tokens: 20, ignore_eos: true, temperature: 0 });
    assert.equal(JSON.parse(secret.text).choices[0].text, plain.body.choices[0].text);
    const long = { prompt: 'x'.repeat(1_000_000), max_tokens: 1, ignore_eos: true, echo: true };
    assert(JSON.parse((await ask('POST', '/v1/completions', long)).text).choices[0].text.startsWith(long.prompt));
    const streams = await Promise.all(Array.from({ length: 20 }, (_, i) =>
      ask('POST', '/v1/completions', { prompt: `p ${i}`, max_tokens: 200, ignore_eos: true, stream: true })));
    for (const { status, text } of streams) {
      assert.equal(status, 200);
      assert(text.endsWith('data: [DONE]\n\n'));
    }
  });

  await t.test('speaks 1.2 and 1.3, and HTTP/1.1 in them', async () => {
    assert.deepEqual(await hello(), { name: 'first', protocol: 'TLSv1.3', alpn: 'http/1.1' });
    const old = tls.connect({ host: '127.0.0.1', port, rejectUnauthorized: false, minVersion: 'TLSv1', maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0' });
    await within(new Promise((done, fail) => {
      old.on('error', done);
      old.on('secureConnect', () => fail(new Error('TLS 1.1 was taken')));
    }), 'a refusal');
  });

  await t.test('hears of clients that leave', async () => {
    const gone = ask('POST', '/v1/completions', { prompt: 'abc', max_tokens: 1_000_000, ignore_eos: true, stream: true },
      (request) => request.destroy());
    await assert.rejects(gone);
    await server.counters((h) => h.requests.running === 0 && h.slots.used === 0);
  });

  await t.test('is not held up by who says nothing, or nonsense', async () => {
    const silent = net.connect(port, '127.0.0.1');
    const rude = net.connect(port, '127.0.0.1');
    rude.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    const half = tls.connect({ host: '127.0.0.1', port, rejectUnauthorized: false });  // and asks nothing
    const ends = [silent, rude, half].map((socket) => new Promise((done) => {
      socket.on('error', () => {});
      socket.on('close', done);
      socket.resume();
    }));
    await within(Promise.all(ends), 'the end of bad connections');
    agent.destroy();
    await nobody();
    assert.equal((await ask('GET', '/livez')).status, 200);
  });

  await t.test('takes a new certificate, and keeps the old one where the new one is none', async () => {
    const reload = async (msg) => {
      const before = server.lines.length;
      server.process.kill('SIGHUP');
      const told = async () => {
        while (!server.lines.slice(before).some((l) => l.includes(`"msg":"${msg}"`))) await new Promise((r) => setTimeout(r, 5));
      };
      await within(told(), msg);
    };
    issue('second');
    await reload('reloaded');
    assert.equal((await hello()).name, 'second');
    writeFileSync(certificate, 'no certificate');
    await reload('the configuration has faults; the old one stays');
    assert.equal((await hello()).name, 'second');
    assert.equal((await ask('GET', '/livez')).status, 200);
  });

  await t.test('gives streams their end', async () => {
    let stop;
    const begun = new Promise((r) => (stop = r));
    const stream = ask('POST', '/v1/completions', { prompt: 'abc', max_tokens: 1_000_000, ignore_eos: true, stream: true }, stop);
    await begun;
    server.process.kill('SIGTERM');
    await server.says('draining');
    server.process.kill('SIGTERM');
    assert((await stream).text.endsWith('data: [DONE]\n\n'));
    agent.destroy();
    assert.deepEqual(await server.end(), { code: 0, signal: null });
  });

  await t.test('does not start without its key', () => {
    const start = (...args) => spawnSync(binary, ['serve', '--device', 'fake', '--port', '0', ...args], { encoding: 'utf8' });
    assert.equal(start('--tls-certificate', certificate).status, 78);
    const bad = start('--tls-certificate', certificate, '--tls-key', key, '--tls-port', '0');
    assert.equal(bad.status, 78);
    assert.match(bad.stderr, /server\.tls_certificate: .*cert\.pem/);
  });
});

test('a server without a certificate gets one', { skip: noOpenssl }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-tls-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'skein.toml'), certificate = join(folder, 'cert.pem'), key = join(folder, 'key.pem');
  const settings = (more) => writeFileSync(file, `[server]\ntls_port = 0\n${more}[engine]\ndevice = "fake"\n`);
  settings('');
  const server = await serve('--config', file, '--set', 'drain.grace_ms=0');
  assert.equal((await server.says('listening')).tls_port, 0);
  const reload = async (msg) => {
    const before = server.lines.length;
    server.process.kill('SIGHUP');
    const told = async () => {
      for (;;) {
        const line = server.lines.slice(before).find((l) => l.includes(`"msg":"${msg}"`));
        if (line) return JSON.parse(line);
        await new Promise((r) => setTimeout(r, 5));
      }
    };
    return within(told(), msg);
  };
  const named = `tls_certificate = "${certificate}"\ntls_key = "${key}"\n`;
  settings(named);
  assert.match((await reload('the configuration has faults; the old one stays')).why, /cert\.pem/);

  assert.equal(spawnSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
    '-days', '2', '-subj', '/CN=first', '-keyout', key, '-out', certificate]).status, 0);
  const port = (await reload('listening with TLS')).tls_port;
  const status = () => within(new Promise((done, fail) => {
    https.get({ host: '127.0.0.1', port, path: '/livez', rejectUnauthorized: false, agent: false },
      (response) => done(response.resume().statusCode)).on('error', fail);
  }), 'an answer');
  assert.equal(await status(), 200);

  settings('');
  await reload('TLS can be disabled only by a restart; the old certificate stays');
  assert.equal(await status(), 200);
  server.process.kill('SIGTERM');
  await server.says('stopped');
});
