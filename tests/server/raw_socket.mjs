// A WebSocket client that sends whatever bytes it is told to, and says what came back.
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { within } from './support.mjs';

export const sampleKey = 'dGhlIHNhbXBsZSBub25jZQ==';

/** The bytes of a frame. `mask: false` leaves it unmasked; `length` lies about its size, in `width` bytes. */
export function frame(opcode, payload = '', { fin = true, rsv = 0, mask = true, width, length } = {}) {
  const data = Buffer.from(payload);
  const size = BigInt(length ?? data.length);
  const wide = width ?? (size < 126n ? 0 : size < 65536n ? 2 : 8);
  const head = Buffer.alloc(2 + wide);
  head[0] = (fin ? 0x80 : 0) | (rsv << 4) | opcode;
  head[1] = (mask ? 0x80 : 0) | (wide === 0 ? Number(size) : wide === 2 ? 126 : 127);
  if (wide === 2) head.writeUInt16BE(Number(size), 2);
  if (wide === 8) head.writeBigUInt64BE(BigInt.asUintN(64, size), 2);
  if (!mask) return Buffer.concat([head, data]);
  const key = randomBytes(4);
  return Buffer.concat([head, key, data.map((byte, i) => byte ^ key[i % 4])]);
}
export const text = (payload, more) => frame(1, payload, more);
export const rest = (payload, more) => frame(0, payload, more);
export const ping = (payload, more) => frame(9, payload, more);
export const pong = (payload, more) => frame(10, payload, more);
export const closing = (code, reason = '') =>
  frame(8, code === undefined ? '' : Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason)]));

/** The request of a handshake; a header that is undefined is left out, one that is a list is sent several times. */
export function handshake(port, headers = {}, { method = 'GET', path = '/v1/responses', version = '1.1' } = {}) {
  const all = { Host: `127.0.0.1:${port}`, Upgrade: 'websocket', Connection: 'Upgrade', 'Sec-WebSocket-Key': sampleKey,
    'Sec-WebSocket-Version': '13', Authorization: 'Bearer secret', ...headers };
  const lines = Object.entries(all).flatMap(([name, value]) => [value ?? []].flat().map((v) => `${name}: ${v}`));
  return `${method} ${path} HTTP/${version}\r\n${lines.join('\r\n')}\r\n\r\n`;
}

export class RawSocket {
  constructor(port) {
    this.bytes = Buffer.alloc(0);
    this.waiting = [];
    this.socket = connect(port, '127.0.0.1');
    this.socket.setNoDelay(true);
    this.socket.on('data', (data) => {
      this.bytes = Buffer.concat([this.bytes, data]);
      this.wake();
    });
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.gone = true;
      this.wake();
    });
  }
  wake() {
    this.waiting.splice(0).forEach((again) => again());
  }
  async until(look, what) {
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      if (this.gone) return undefined;
      await within(new Promise((done) => this.waiting.push(done)), what);
    }
  }
  send(...pieces) {
    this.socket.write(Buffer.concat(pieces.map((p) => Buffer.from(p))));
  }
  /** Status and headers of the answer to a handshake. */
  async answer() {
    return await this.until(() => {
      const end = this.bytes.indexOf('\r\n\r\n');
      if (end < 0) return undefined;
      const [first, ...lines] = this.bytes.subarray(0, end).toString().split('\r\n');
      this.bytes = this.bytes.subarray(end + 4);
      const headers = Object.fromEntries(lines.map((l) => [l.slice(0, l.indexOf(':')).toLowerCase(), l.slice(l.indexOf(':') + 2)]));
      return { status: Number(first.split(' ')[1]), headers };
    }, 'the answer to a handshake');
  }
  /** The next frame of the server; undefined when it has ended the connection. */
  async next() {
    return await this.until(() => {
      const b = this.bytes;
      if (b.length < 2) return undefined;
      const mark = b[1] & 127;
      const head = mark === 126 ? 4 : mark === 127 ? 10 : 2;
      if (b.length < head) return undefined;
      const size = mark === 126 ? b.readUInt16BE(2) : mark === 127 ? Number(b.readBigUInt64BE(2)) : mark;
      if (b.length < head + size) return undefined;
      const data = b.subarray(head, head + size);
      this.bytes = b.subarray(head + size);
      const opcode = b[0] & 15;
      const found = { opcode, fin: b[0] >> 7, rsv: (b[0] >> 4) & 7, masked: b[1] >> 7, data };
      if (opcode === 8) found.code = size === 0 ? 1005 : data.readUInt16BE(0);
      if (opcode === 1) found.json = JSON.parse(data);
      return found;
    }, 'a frame');
  }
  /** The frames from now on to the end of the connection. */
  async all() {
    const frames = [];
    for (let f = await this.next(); f; f = await this.next()) frames.push(f);
    return frames;
  }
  end() {
    this.socket.destroy();
  }
}

/** An open WebSocket. */
export async function open(port, headers) {
  const socket = new RawSocket(port);
  socket.send(handshake(port, headers));
  const { status } = await socket.answer();
  if (status !== 101) throw new Error(`the handshake was answered ${status}`);
  return socket;
}
