// Two answers side by side on one WebSocket (npm install ws). A page would use the browser's own WebSocket.
import WebSocket from 'ws';

const url = (process.env.SKEIN_URL ?? 'http://127.0.0.1:8000').replace(/^http/, 'ws');
const key = process.env.SKEIN_KEY;
const socket = new WebSocket(`${url}/v1/responses`, { headers: key ? { authorization: `Bearer ${key}` } : {} });

const questions = ['What is Skein?', 'Tell me a story.'];
const ends = new Set(['response.completed', 'response.incomplete', 'response.failed']);
const texts = new Map();  // by item
let running = questions.length;

socket.on('open', () => {
  for (const input of questions) socket.send(JSON.stringify({ type: 'response.create', input, max_output_tokens: 64 }));
});
socket.on('message', (data) => {
  const event = JSON.parse(data);
  if (event.type === 'response.output_text.delta') texts.set(event.item_id, (texts.get(event.item_id) ?? '') + event.delta);
  if (ends.has(event.type) && --running === 0) socket.close();
});
socket.on('error', (error) => {
  console.error(error.message);
  process.exitCode = 1;
});
socket.on('close', () => {
  for (const text of texts.values()) console.log(text, '\n');
});
