// One answer over connections and servers that come and go: every event is taken once, and what the server kept is what
// is shown.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Answer, Refused } from '../../web/js/answer.js';
import { Broken } from '../../web/js/events.js';

const text = (sequence_number, delta) => ({ type: 'response.output_text.delta', sequence_number, delta });
const thought = (sequence_number, delta) => ({ type: 'response.reasoning_text.delta', sequence_number, delta });
const created = { type: 'response.created', sequence_number: 0, response: { id: 'resp_1' } };
const ended = (sequence_number, said, more = {}) => ({
  type: 'response.completed', sequence_number,
  response: { id: 'resp_1', output: [{ type: 'message', content: [{ text: said }] }], session: { version: 3 },
    usage: { input_tokens: 9, output_tokens: 4, input_tokens_details: { cached_tokens: 5 } }, ...more },
});

/** A line whose streams are given: lists of events, of which an Error is thrown. What was asked is kept. */
function line(...streams) {
  const asked = [];
  async function* next(what) {
    asked.push(what);
    for (const event of streams.shift() ?? []) {
      if (event instanceof Error) throw event;
      yield event;
    }
  }
  return {
    asked,
    create: () => next('create'),
    resume: (id, after) => next(`${id} after ${after}`),
    find: async () => (asked.push('find'), null),
    ready: async () => void asked.push('ready'),
  };
}
const run = (l, ...more) => new Answer(l, { input: 'x' }, ...more).run();

test('an answer in one go', async () => {
  const l = line([created, thought(1, 'hm'), text(2, 'a'), text(3, 'b'), ended(4, 'ab')]);
  const a = await run(l, { before: 10 });
  assert.deepEqual([a.status, a.text, a.reasoning, a.id, a.version, a.tokens], ['done', 'ab', 'hm', 'resp_1', 3, 4]);
  assert.deepEqual(a.memory, { cached: 15, all: 19 });
  assert.deepEqual(l.asked, ['create']);
});

test('a broken stream is resumed after the last event', async () => {
  const l = line([created, text(1, 'a'), new Broken('gone')], [new Broken('still away')], [text(1, 'a'), text(2, 'b'), ended(3, 'ab')]);
  const shown = [];
  await run(l, { changed: (a) => shown.push(a.text) });
  assert.deepEqual([...new Set(shown)], ['a', 'ab']); // nothing twice, at no time
  assert.deepEqual(l.asked, ['create', 'ready', 'resp_1 after 1', 'ready', 'resp_1 after 1']);
});

test('a server that ends parks the answer, and the next one has the rest', async () => {
  const parked = { ...ended(2, 'a'), type: 'response.incomplete' };
  parked.response = { ...parked.response, incomplete_details: { reason: 'drain' } };
  const a = await run(line([created, text(1, 'a'), parked], [text(3, 'b'), ended(4, 'ab')]));
  assert.deepEqual([a.status, a.text], ['done', 'ab']);
});

test('a server that was killed may know less: then all is told again', async () => {
  const l = line([created, text(1, 'a'), text(2, 'b'), text(3, 'c'), new Broken('killed')], [], [created, text(1, 'a'), ended(2, 'a')]);
  const a = await run(l);
  assert.equal(a.text, 'a');
  assert.deepEqual(l.asked.slice(-3), ['resp_1 after 3', 'ready', 'resp_1 after null']);
});

test('what the server kept wins over what it told before it was killed', async () => {
  const a = await run(line([created, text(1, 'a'), text(2, 'b'), new Broken('killed')], [text(3, 'z'), ended(4, 'ayz')]));
  assert.equal(a.text, 'ayz');
});

test('an answer that the server no longer knows is requested again', async () => {
  const l = line([created, text(1, 'a'), new Broken('killed')], [new Refused('no response', 404)], [created, text(1, 'b'), ended(2, 'b')]);
  const a = await run(l);
  assert.equal(a.text, 'b');
  assert.deepEqual(l.asked, ['create', 'ready', 'resp_1 after 1', 'ready', 'find', 'create']);
});

test('one whose beginning was lost is looked for first', async () => {
  const l = line([new Broken('lost')], [created, text(1, 'a'), ended(2, 'a')]);
  l.find = async () => 'resp_1';
  const a = await run(l);
  assert.deepEqual([a.text, l.asked], ['a', ['create', 'ready', 'resp_1 after null']]);
});

test('a refusal ends it, but one of a server that is away', async () => {
  const error = { type: 'error', status: 400, error: { message: 'no such model', param: 'model' } };
  const a = await run(line([error]));
  assert.deepEqual([a.status, a.error], ['failed', 'no such model']);
  const b = await run(line([new Refused('loading', 503)], [created, ended(1, '')]));
  assert.equal(b.status, 'done');
  const c = await run(line([new Refused('another model', 409)]));
  assert.equal(c.status, 'failed');
  const d = await run(line([created, { type: 'response.failed', sequence_number: 1, response: { error: { message: 'lost' } } }]));
  assert.deepEqual([d.status, d.error], ['failed', 'lost']);
});

test('one that goes on, of an answer that is gone, fails', async () => {
  const a = await new Answer(line([new Refused('no response', 404)]), null, { id: 'resp_1' }).run();
  assert.equal(a.status, 'failed');
});

test('stopping ends it at once, also while the server is away', async () => {
  let a;
  const l = line([created, text(1, 'a'), new Broken('gone')]);
  l.ready = async () => a.stop();
  a = new Answer(l, {});
  await a.run();
  assert.deepEqual([a.status, a.text], ['stopped', 'a']);
});

test('speed counts from the first token', async () => {
  let now = 0;
  const l = line([created, text(1, 'a'), text(2, 'b'), text(3, 'c'), ended(4, 'abc', { usage: null })]);
  const a = await run(l, { now: () => (now += 1000) });
  assert.equal(a.tokens, 3);
  assert.equal(a.speed, 2);
});
