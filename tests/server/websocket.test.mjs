// WebSocket as RFC 6455 has it, case by case, with raw bytes: handshakes, framing, pings, fragments, UTF-8, closing,
// limits. A text that is no request is answered by an event of type "error", which shows that it came through.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { closing, frame, handshake, open, ping, pong, RawSocket, rest, sampleKey, text } from './raw_socket.mjs';
import { noOracle, serveTiny } from './support.mjs';

const options = { skip: noOracle };
const message_max = 1 << 20;
let server;

before(async () => {
  if (noOracle) return;
  process.env.SKEIN_SERVER_PASSWORD = 'secret';
  server = await serveTiny('--set', 'server.cors_origins=https://page.example', '--set', 'limits.login_failures_max=0', '--set',
    'drain.grace_ms=0');
});
after(async () => {
  if (!server) return;
  assert.equal((await server.stop()).code, 0);
});

let cases = 0;
const check = (name, run) => {
  ++cases;
  test(name, options, run);
};

// ---- handshakes

const shakes = (name, status, headers, look = () => {}, request = {}) =>
  check(`handshake: ${name}`, async () => {
    const socket = new RawSocket(server.port);
    socket.send(handshake(server.port, headers(), request));
    const answer = await socket.answer();
    assert.equal(answer.status, status);
    look(answer.headers);
    socket.end();
  });

shakes('the example of the RFC', 101, () => ({}), (h) => {
  assert.equal(h['sec-websocket-accept'], 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
  assert.equal(h.upgrade, 'websocket');
  assert.equal(h.connection.toLowerCase(), 'upgrade');
  assert.equal(h['sec-websocket-protocol'], undefined);
});
shakes('no extension is agreed to', 101, () => ({ 'Sec-WebSocket-Extensions': 'permessage-deflate; client_max_window_bits' }),
  (h) => assert.equal(h['sec-websocket-extensions'], undefined));
shakes('letters of either case', 101, () => ({ Upgrade: 'WebSocket', Connection: 'keep-alive, UPGRADE' }));
shakes('Connection in two fields', 101, () => ({ Connection: ['keep-alive', 'upgrade'] }));
shakes('no Upgrade', 426, () => ({ Upgrade: undefined }), (h) => assert.equal(h['sec-websocket-version'], '13'));
shakes('another Upgrade', 426, () => ({ Upgrade: 'h2c' }));
shakes('no Connection', 400, () => ({ Connection: undefined }));
shakes('Connection without upgrade', 400, () => ({ Connection: 'keep-alive' }));
shakes('no version', 426, () => ({ 'Sec-WebSocket-Version': undefined }));
shakes('version 8', 426, () => ({ 'Sec-WebSocket-Version': '8' }), (h) => assert.equal(h['sec-websocket-version'], '13'));
shakes('no key', 400, () => ({ 'Sec-WebSocket-Key': undefined }));
shakes('a short key', 400, () => ({ 'Sec-WebSocket-Key': 'AAAA' }));
shakes('a key that is no base64', 400, () => ({ 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAA*A==' }));
shakes('a key whose last digit says too much', 400, () => ({ 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAB==' }));
shakes('two keys', 400, () => ({ 'Sec-WebSocket-Key': [sampleKey, sampleKey] }));
shakes('a body', 400, () => ({ 'Content-Length': '5' }));
shakes('HEAD', 405, () => ({}), () => {}, { method: 'HEAD' });
shakes('HTTP/1.0', 400, () => ({}), () => {}, { version: '1.0' });
shakes('another path', 404, () => ({}), () => {}, { path: '/v1/nothing' });
shakes('no password', 401, () => ({ Authorization: undefined }));
shakes('a wrong password', 401, () => ({ Authorization: 'Bearer wrong' }));
shakes('x-api-key', 101, () => ({ Authorization: undefined, 'X-Api-Key': 'secret' }));
shakes('api-key', 101, () => ({ Authorization: undefined, 'Api-Key': 'secret' }));
shakes('a wrong api-key', 401, () => ({ Authorization: undefined, 'Api-Key': 'wrong' }));
shakes('the password as a protocol', 101,
  () => ({ Authorization: undefined, 'Sec-WebSocket-Protocol': 'realtime, openai-insecure-api-key.secret' }),
  (h) => assert.equal(h['sec-websocket-protocol'], 'realtime'));
shakes('the password as the only protocol', 101,
  () => ({ Authorization: undefined, 'Sec-WebSocket-Protocol': 'openai-insecure-api-key.secret' }),
  (h) => assert.equal(h['sec-websocket-protocol'], undefined, 'the secret is not echoed'));
shakes('a wrong password as a protocol', 401,
  () => ({ Authorization: undefined, 'Sec-WebSocket-Protocol': 'openai-insecure-api-key.wrong' }));
shakes('a page of our own', 101, () => ({ Origin: `http://127.0.0.1:${server.port}` }));
shakes('a page of the list', 101, () => ({ Origin: 'https://page.example' }));
const stranger = { Authorization: undefined };
shakes('a page of another place', 403, () => ({ ...stranger, Origin: 'https://other.example' }));
shakes('a page of another place that knows the password', 101, () => ({ Origin: 'https://other.example' }));
shakes('a page whose name begins like ours', 403, () => ({ ...stranger, Origin: `http://127.0.0.1:${server.port}.evil.example` }));
shakes('a page without a place', 403, () => ({ ...stranger, Origin: 'null' }));

// ---- frames that are none: closed with a code, then the connection ends

const faults = (name, code, ...bytes) =>
  check(`${code}: ${name}`, async () => {
    const socket = await open(server.port);
    socket.send(...bytes);
    const frames = await socket.all();
    const last = frames.at(-1);
    assert.equal(last?.opcode, 8);
    assert.equal(last.code, code);
    assert.equal(frames.length, 1);
  });

for (const rsv of [1, 2, 4])
  for (const [name, opcode] of [['text', 1], ['ping', 9], ['close', 8]])
    faults(`reserved bit ${rsv} of a ${name}`, 1002, frame(opcode, '', { rsv }));
for (const opcode of [3, 4, 5, 6, 7, 11, 12, 13, 14, 15]) faults(`opcode ${opcode}`, 1002, frame(opcode, 'x'));
for (const [name, opcode] of [['text', 1], ['ping', 9], ['close', 8]])
  faults(`an unmasked ${name}`, 1002, frame(opcode, '', { mask: false }));
for (const [name, opcode] of [['ping', 9], ['pong', 10], ['close', 8]]) {
  faults(`a ${name} in parts`, 1002, frame(opcode, '', { fin: false }));
  faults(`a ${name} of 126 bytes`, 1002, frame(opcode, Buffer.alloc(126)));
}
faults('a continuation of nothing', 1002, rest('x'));
faults('the begin of a continuation of nothing', 1002, rest('x', { fin: false }));
faults('a text inside a text', 1002, text('a', { fin: false }), text('b'));
faults('a text inside a text, later', 1002, text('a', { fin: false }), rest('b', { fin: false }), text('c', { fin: false }));
faults('a length in more bytes than it needs: 2', 1002, text('x'.repeat(100), { width: 2 }));
faults('a length in more bytes than it needs: 8', 1002, text('', { width: 8, length: 65535 }));
faults('a length with its highest bit', 1002, text('', { width: 8, length: (1n << 63n) + 5n }));
faults('binary', 1003, frame(2, 'x'));
faults('an empty binary', 1003, frame(2, ''));
faults('the begin of a binary', 1003, frame(2, 'x', { fin: false }));
faults('a message of a byte too much, before it comes', 1009, text('', { width: 8, length: message_max + 1 }));
faults('a message of 2^62 bytes', 1009, text('', { width: 8, length: 1n << 62n }));
faults('a message that its last part makes too long', 1009, text(Buffer.alloc(message_max, 97), { fin: false }), rest('b'));

const bad = { 'overlong 2': [0xc0, 0x80], 'overlong 2, high': [0xc1, 0xbf], 'overlong 3': [0xe0, 0x80, 0x80], surrogate: [0xed, 0xa0, 0x80],
  'overlong 4': [0xf0, 0x80, 0x80, 0x80], 'above the last': [0xf4, 0x90, 0x80, 0x80], f5: [0xf5], ff: [0xff], 'a tail': [0x80],
  'another tail': [0xbf], 'a head and no tail': [0xc3, 0x28], 'two heads': [0xe2, 0xe2, 0x82, 0xac], 'a cut end': [0x61, 0xc3],
  'a cut end of four': [0xf0, 0x9f, 0x98] };
for (const [name, bytes] of Object.entries(bad)) faults(`UTF-8: ${name}`, 1007, text(Buffer.from(bytes)));
faults('UTF-8: wrong over two parts', 1007, text(Buffer.from([0xe2, 0x82]), { fin: false }), rest(Buffer.from([0x28])));
faults('UTF-8: wrong in a part that is not the last', 1007, text(Buffer.from([0x61, 0xff]), { fin: false }));
faults('UTF-8: wrong in a frame that is not whole', 1007, text(Buffer.concat([Buffer.from([0xff])]), { length: 50 }));

// ---- what is answered

/** What the server says of texts that are no requests: once a text. */
const errors = (name, count, ...bytes) =>
  check(`text: ${name}`, async () => {
    const socket = await open(server.port);
    socket.send(...bytes);
    for (let i = 0; i < count; ++i) {
      const f = await socket.next();
      assert.deepEqual([f.opcode, f.fin, f.rsv, f.masked], [1, 1, 0, 0]);
      assert.equal(f.json.type, 'error');
      assert.equal(f.json.status, 400);
      assert.equal(typeof f.json.error.message, 'string');
    }
    socket.send(closing(1000));
    assert.equal((await socket.all()).at(-1).code, 1000);
  });

errors('empty', 1, text(''));
errors('no JSON', 1, text('hello'));
errors('no object', 1, text('[]'));
errors('no type', 1, text('{}'));
errors('an unknown type', 1, text('{"type":"session.update"}'));
errors('two in one write', 2, text('a'), text('b'));
for (const size of [125, 126, 127, 128, 65535, 65536, message_max]) errors(`${size} bytes`, 1, text('x'.repeat(size)));
for (const [name, said] of Object.entries({ Greek: 'κόσμε', 'four bytes': '😀', 'the last character': '\u{10ffff}',
  'no character': '\uffff', 'the zero byte': '\0' })) errors(`UTF-8, ${name}`, 1, text(said));
errors('in two parts', 1, text('he', { fin: false }), rest('llo'));
errors('in three parts, the middle empty', 1, text('he', { fin: false }), rest('', { fin: false }), rest('llo'));
errors('in parts that are all empty', 1, text('', { fin: false }), rest('', { fin: false }), rest(''));
errors('parted inside a character', 1, text(Buffer.from([0xe2, 0x82]), { fin: false }), rest(Buffer.from([0xac])));
errors('a thousand parts', 1, text('x', { fin: false }), ...Array.from({ length: 998 }, () => rest('y', { fin: false })), rest('z'));

const pongs = (name, expected, ...bytes) =>
  check(`ping: ${name}`, async () => {
    const socket = await open(server.port);
    socket.send(...bytes, closing(1000));
    const frames = await socket.all();
    assert.deepEqual(frames.slice(0, -1).map((f) => [f.opcode, f.opcode === 10 ? f.data.toString('latin1') : '']),
      expected.map((e) => (e === undefined ? [1, ''] : [10, e])));
    assert.equal(frames.at(-1).code, 1000);
  });

pongs('empty', [''], ping(''));
pongs('with data', ['hello'], ping('hello'));
pongs('of 125 bytes', ['x'.repeat(125)], ping('x'.repeat(125)));
pongs('with bytes that are no text', ['\xff\xfe\x00'], ping(Buffer.from([0xff, 0xfe, 0])));
pongs('ten in one write', [...'0123456789'], ...[...'0123456789'].map((d) => ping(d)));
pongs('between the parts of a text', ['p', undefined], text('a', { fin: false }), ping('p'), rest('b'));
pongs('an unsolicited pong', [], pong('hello'));
pongs('a pong of 125 bytes', [], pong('x'.repeat(125)));
pongs('after a pong', ['x'], pong(''), ping('x'));

check('frames that come byte by byte', async () => {
  const socket = await open(server.port);
  for (const byte of Buffer.concat([ping('abc'), text('é', { fin: false }), rest('x'), ping('def')])) {
    socket.send(Buffer.from([byte]));
    await new Promise((done) => setImmediate(done));
  }
  const frames = [await socket.next(), await socket.next(), await socket.next()];
  assert.deepEqual(frames.map((f) => f.opcode), [10, 1, 10]);
  socket.end();
});
check('a frame behind the handshake in one write', async () => {
  const socket = new RawSocket(server.port);
  socket.send(handshake(server.port), ping('early'));
  assert.equal((await socket.answer()).status, 101);
  assert.equal((await socket.next()).data.toString(), 'early');
  socket.end();
});

// ---- goodbyes

const goodbye = (name, code, bytes) =>
  check(`close: ${name}`, async () => {
    const socket = await open(server.port);
    socket.send(bytes, ping('too late'));
    const frames = await socket.all();
    assert.deepEqual(frames.map((f) => [f.opcode, f.code]), [[8, code]]);
  });

goodbye('without a code', 1005, closing());
for (const code of [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999])
  goodbye(`${code}`, code, closing(code));
goodbye('with a reason', 1000, closing(1000, 'that was all'));
goodbye('with a reason of 123 bytes', 1000, closing(1000, 'é'.repeat(61) + 'x'));
for (const code of [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535])
  goodbye(`${code}, which must not be sent`, 1002, closing(code));
goodbye('with half a code', 1002, frame(8, 'x'));
goodbye('with a reason that is not UTF-8', 1007, closing(1000, Buffer.from([0xff])));
goodbye('in the middle of a text', 1000, Buffer.concat([text('a', { fin: false }), closing(1000)]));

check('a client that leaves without a word costs nothing', async () => {
  const socket = await open(server.port);
  socket.send(text('x', { fin: false }));
  socket.end();
  (await open(server.port)).end();
});

test('there are enough cases', () => assert.ok(cases >= 100, `${cases}`));
