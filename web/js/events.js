// Event streams of the Responses API as async iterables: over a WebSocket or as server-sent events.

import { Refused } from './answer.js';

/** A stream ended before its answer. `code`: the close code of its socket. */
export class Broken extends Error {
  constructor(message, code = 0) {
    super(message);
    this.code = code;
  }
}

/** The close code for a message that is longer than the server accepts on a socket. */
export const tooBig = 1009;
/** Close codes with which the server rejects what it was sent; sending it again would not help. */
const refusals = new Map([
  [1002, 'protocol error'], [1003, 'unsupported data'], [1007, 'invalid text'],
]);

function closed(code, reason) {
  const why = reason || refusals.get(code);
  const message = `the connection closed (${code}${why ? `: ${why}` : ''})`;
  return refusals.has(code) ? new Refused(message) : new Broken(message, code);
}

/** The events of one request over its own WebSocket, which is closed when the loop ends or `signal` aborts. */
export async function* socketEvents(url, protocols, request, signal, Socket = globalThis.WebSocket) {
  const socket = new Socket(url, protocols);
  const arrived = [];
  let over = null;
  let wake = () => {};
  const put = (event) => {
    arrived.push(event);
    wake();
  };
  const end = (why) => {
    over ??= why;
    wake();
  };
  socket.onopen = () => socket.send(JSON.stringify({ type: 'response.create', ...request }));
  socket.onmessage = ({ data }) => put(JSON.parse(data));
  socket.onclose = ({ code, reason }) => end(closed(code, reason));
  const leave = () => end(new Broken('left'));
  signal?.addEventListener('abort', leave);
  if (signal?.aborted) leave();
  try {
    for (;;) {
      while (arrived.length === 0 && !over) await new Promise((go) => (wake = go));
      if (arrived.length === 0) throw over;
      yield arrived.shift();
    }
  } finally {
    signal?.removeEventListener('abort', leave);
    socket.close();
  }
}

/** The JSON of every event in a body of server-sent events. */
export async function* bodyEvents(body) {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of chunks(body)) {
    rest += decoder.decode(bytes, { stream: true });
    for (let at; (at = rest.indexOf('\n')) >= 0; rest = rest.slice(at + 1)) {
      const line = rest.slice(0, at).replace(/\r$/, '');
      if (line.startsWith('data: ') && line !== 'data: [DONE]') yield JSON.parse(line.slice(6));
    }
  }
}

/** The chunks of a stream; not every browser supports async iteration of streams. */
async function* chunks(stream) {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
