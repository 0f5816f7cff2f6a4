// The Responses API by the official client: answers, streams, turns that go on from a response, and what stays of them.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { noOracle, oracle, serve, serveTiny } from './support.mjs';

const options = { skip: noOracle };
let server;
let client;

before(async () => {
  if (noOracle) return;
  process.env.SKEIN_SERVER_PASSWORD = 'secret';
  server = await serveTiny('--set', 'drain.grace_ms=0');
  client = new OpenAI({ apiKey: 'secret', baseURL: `${server.url}/v1`, maxRetries: 0 });
});
after(async () => {
  if (!server) return;
  const { code } = await server.stop();
  assert.equal(code, 0);
});

const greedy = { model: 'tiny', input: 'Say something.', max_output_tokens: 24, temperature: 0 };

/** All events of a stream. */
async function events(stream) {
  const all = [];
  for await (const event of stream) all.push(event);
  return all;
}
const textOf = (all) => all.filter((e) => e.type === 'response.output_text.delta').map((e) => e.delta).join('');

test('an answer, whole and streamed', options, async () => {
  const whole = await client.responses.create(greedy);
  assert.equal(whole.object, 'response');
  assert.match(whole.id, /^resp_[0-9a-f]{48}$/);
  assert.ok(['completed', 'incomplete'].includes(whole.status));
  assert.ok(whole.output_text.length > 0);
  assert.equal(whole.usage.total_tokens, whole.usage.input_tokens + whole.usage.output_tokens);

  const all = await events(await client.responses.create({ ...greedy, stream: true }));
  assert.deepEqual(all.map((e) => e.sequence_number), all.map((_, i) => i));
  const types = all.map((e) => e.type).filter((t, i, list) => t !== list[i - 1]);
  assert.deepEqual(types.slice(0, 5), ['response.created', 'response.in_progress', 'response.output_item.added',
    'response.content_part.added', 'response.output_text.delta']);
  assert.deepEqual(types.slice(-4, -1), ['response.output_text.done', 'response.content_part.done', 'response.output_item.done']);
  const last = all.at(-1);
  assert.equal(last.type, whole.status === 'completed' ? 'response.completed' : 'response.incomplete');
  assert.equal(textOf(all), whole.output_text);
  assert.equal(last.response.output[0].content[0].text, whole.output_text);
  assert.deepEqual(last.response.usage, whole.usage);
  assert.equal(new Set(all.filter((e) => e.response).map((e) => e.response.id)).size, 1);
});

test('the stream helper puts a response together', options, async () => {
  const done = await client.responses.stream(greedy).finalResponse();
  assert.ok(done.output_text.length > 0);
});

test('a turn goes on from a response for its own tokens only', options, async () => {
  const first = await client.responses.create({ ...greedy, instructions: 'Be brief.', input: 'I am Anna. '.repeat(40) });
  const second = await client.responses.create({ ...greedy, previous_response_id: first.id, input: 'Who am I?' });
  assert.equal(second.previous_response_id, first.id);
  assert.ok(second.usage.input_tokens < 60, `${second.usage.input_tokens}`);
  const again = await client.responses.create({ ...greedy, previous_response_id: first.id, input: 'Who am I?' });
  assert.equal(again.output_text, second.output_text);
  assert.notEqual(again.id, second.id);
  const instructed = { ...greedy, previous_response_id: first.id, input: 'Who am I?' };
  const same = await client.responses.create({ ...instructed, instructions: 'Be brief.' });
  assert.equal(same.usage.input_tokens, second.usage.input_tokens);  // it said so at the beginning
  const other = await client.responses.create({ ...instructed, instructions: 'Be long.' });
  assert.ok(other.usage.input_tokens > same.usage.input_tokens);
  const third = await client.responses.create({ ...greedy, previous_response_id: second.id, input: 'Sure?', store: false });
  assert.ok(third.usage.input_tokens < 60);
  await assert.rejects(client.responses.create({ ...greedy, previous_response_id: third.id }), (e) => e.status === 404);
});

test('what was stored is told, listed and deleted', options, async () => {
  const made = await client.responses.create({ ...greedy, instructions: 'Be brief.', metadata: { a: 'b' },
    input: [{ role: 'user', content: 'One.' }, { role: 'assistant', content: [{ type: 'output_text', text: 'Two.' }] },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Three.' }] }] });
  const told = await client.responses.retrieve(made.id);
  const { session, ...rest } = made;
  assert.equal(session.durable, 'memory');
  assert.deepEqual({ ...told }, { ...rest });
  assert.equal(told.instructions, 'Be brief.');
  assert.deepEqual(told.metadata, { a: 'b' });

  const items = await client.responses.inputItems.list(made.id, { order: 'asc' });
  assert.deepEqual(items.data.map((i) => [i.role, i.content[0].text]),
    [['user', 'One.'], ['assistant', 'Two.'], ['user', 'Three.']]);
  const pages = [];
  for await (const item of client.responses.inputItems.list(made.id, { limit: 1 })) pages.push(item.content[0].text);
  assert.deepEqual(pages, ['Three.', 'Two.', 'One.']);
  await assert.rejects(client.responses.inputItems.list(made.id, { after: 'msg_1' }), (e) => e.status === 400 && e.param === 'after');

  const next = await client.responses.create({ ...greedy, previous_response_id: made.id });
  await client.responses.delete(made.id);
  assert.equal((await client.responses.retrieve(next.id)).output_text, next.output_text);
  await client.responses.delete(next.id);
  for (const id of [made.id, next.id, 'resp_1', `resp_${'0'.repeat(48)}`]) {
    await assert.rejects(client.responses.retrieve(id), (e) => e.status === 404);
    await assert.rejects(client.responses.delete(id), (e) => e.status === 404);
    await assert.rejects(client.responses.inputItems.list(id), (e) => e.status === 404);
    await assert.rejects(client.responses.cancel(id), (e) => e.status === 404);
  }
  const unkept = await client.responses.create({ ...greedy, store: false });
  await assert.rejects(client.responses.retrieve(unkept.id), (e) => e.status === 404);
});

test('a stream is told again from any number on', options, async () => {
  const all = await events(await client.responses.create({ ...greedy, stream: true }));
  const id = all[0].response.id;
  const bare = (list) => list.map(({ response, ...e }) => (response ? { ...e, response: { ...response, session: undefined } } : e));
  assert.deepEqual(bare(await events(await client.responses.retrieve(id, { stream: true }))), bare(all));
  for (const after of [0, 3, 7, all.length - 2, all.length - 1, all.length + 9])
    assert.deepEqual(bare(await events(await client.responses.retrieve(id, { stream: true, starting_after: after }))),
      bare(all.slice(after + 1)), `after ${after}`);
});

// Greedy text is the same however often it broke.
test('a conversation goes on by its name', options, async () => {
  const { id, object } = await client.conversations.create();
  assert.equal(object, 'conversation');
  assert.deepEqual((await client.conversations.retrieve(id)).metadata, {});
  const first = await client.responses.create({ ...greedy, conversation: id });
  const second = await client.responses.create({ ...greedy, conversation: { id }, input: [
    { role: 'user', content: 'And?' }, { role: 'assistant', content: 'Well.' }, { role: 'user', content: 'Well what?' }] });
  assert.deepEqual(first.conversation, { id });
  assert.deepEqual([first.session.version, second.session.version], [1, 2]);
  assert.ok(second.usage.input_tokens < 100);
  assert.equal((await client.conversations.retrieve(id)).id, id);
  await assert.rejects(client.conversations.create({ items: [{ role: 'user', content: 'x' }] }), (e) => e.param === 'items');
  assert.equal((await client.conversations.delete(id)).deleted, true);
  for (const gone of [id, 'conv_1']) {
    await assert.rejects(client.conversations.retrieve(gone), (e) => e.status === 404);
    await assert.rejects(client.conversations.delete(gone), (e) => e.status === 404);
  }
  await assert.rejects(client.responses.retrieve(second.id), (e) => e.status === 404);
});

test('a conversation tells its items', options, async () => {
  const { id } = await client.conversations.create();
  const list = (query) => client.conversations.items.list(id, query);
  const empty = await list();
  assert.deepEqual([empty.data, empty.has_more], [[], false]);
  const first = await client.responses.create({ ...greedy, conversation: id, instructions: 'Be brief.', input: 'Hello.' });
  const second = await client.responses.create({ ...greedy, conversation: id, input: [
    { role: 'user', content: 'And?' }, { role: 'assistant', content: 'Well.' }, { role: 'user', content: 'Well what?' }] });
  const all = (await list({ order: 'asc' })).data;
  const text = (i) => [i.role, i.content[0].text];
  assert.deepEqual(all.map(text), [['user', 'Hello.'], ['assistant', first.output_text], ['user', 'And?'], ['assistant', 'Well.'],
    ['user', 'Well what?'], ['assistant', second.output_text]]);
  assert.deepEqual([all[1], all[5]], [first.output[0], second.output[0]].map((i) => ({ ...i })));
  assert.equal(all[0].content[0].type, 'input_text');
  const pages = [];
  for await (const item of client.conversations.items.list(id, { limit: 2 })) pages.push(item);
  assert.deepEqual(pages, all.toReversed());
  for (const item of all) assert.deepEqual({ ...(await client.conversations.items.retrieve(item.id, { conversation_id: id })) }, item);

  // A turn of another route, and one that thought.
  await server.post('/v1/chat/completions', { session_id: id, messages: [{ role: 'user', content: 'More.' }], max_tokens: 4 },
    { authorization: 'Bearer secret' });
  const more = (await list({ order: 'asc' })).data.slice(6);
  assert.deepEqual(more.map((i) => i.role), ['user', 'assistant']);
  assert.deepEqual(text(more[0]), ['user', 'More.']);
  assert.equal(new Set([...all, ...more].map((i) => i.id)).size, 8);

  await assert.rejects(list({ limit: 0 }), (e) => e.status === 400 && e.param === 'limit');
  await assert.rejects(list({ after: 'msg_1' }), (e) => e.status === 400 && e.param === 'after');
  await assert.rejects(client.conversations.items.retrieve('msg_1', { conversation_id: id }), (e) => e.status === 404);
  await assert.rejects(client.conversations.items.list('conv_1'), (e) => e.status === 404);
  await assert.rejects(client.conversations.items.create(id, { items: [{ role: 'user', content: 'x' }] }),
    (e) => e.status === 400 && /POST \/v1\/responses/.test(e.message));
  await assert.rejects(client.conversations.items.delete(all[0].id, { conversation_id: id }),
    (e) => e.status === 400 && /DELETE \/v1\/responses/.test(e.message));
});

test('a conversation outlives its last response, if a client made it', options, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-responses-'));
  const start = () => serveTiny('--state-dir', folder, '--set', 'drain.grace_ms=0');
  let own = await start();
  try {
    const { id } = (await own.post('/v1/conversations', { metadata: { k: 'v' } }, auth)).body;
    const conversation = () => own.get(`/v1/conversations/${id}`, auth);
    const empty = (await conversation()).body;
    const respond = async (more) => (await own.post('/v1/responses', { ...greedy, max_output_tokens: 2, ...more }, auth)).body;
    const remove = async (response) =>
      assert.equal((await own.fetch(`/v1/responses/${response}`, { method: 'DELETE', headers: auth })).status, 200);
    for (let round = 0; round < 2; ++round) {
      const { id: made, usage } = await respond({ conversation: id, input: 'My secret.' });
      assert.equal(usage.input_tokens, (await respond({ input: 'My secret.' })).usage.input_tokens, 'nothing before it');
      await remove(made);
      assert.equal((await own.get(`/v1/responses/${made}`, auth)).status, 404);
      if (round === 0) {
        await own.stop();
        own = await start();
      }
      assert.deepEqual((await conversation()).body, empty);
      assert.deepEqual((await own.get(`/v1/conversations/${id}/items`, auth)).body.data, []);
      const session = (await own.get(`/v1/sessions/${id}`, auth)).body;
      assert.deepEqual([session.title, session.versions, session.head], [null, 0, 0]);
    }
    const alone = await respond({});
    await remove(alone.id);
    assert.equal((await own.get(`/v1/sessions/${alone.id.replace('resp_', 'conv_').slice(0, 29)}`, auth)).status, 404);
  } finally {
    await own.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a conversation keeps metadata, from before its first response on', options, async () => {
  const { id, metadata } = await client.conversations.create({ metadata: { topic: 'weather', who: 'Anna' } });
  assert.deepEqual(metadata, { topic: 'weather', who: 'Anna' });
  assert.deepEqual((await client.conversations.update(id, { metadata: { topic: 'rain' } })).metadata, { topic: 'rain' });
  await client.responses.create({ ...greedy, conversation: id });
  assert.deepEqual((await client.conversations.retrieve(id)).metadata, { topic: 'rain' });
  const { data } = await (await server.fetch('/v1/sessions?limit=1000', { headers: { authorization: 'Bearer secret' } })).json();
  const listed = data.find((s) => s.id === id);
  assert.deepEqual([listed.title, listed.metadata], [greedy.input, { topic: 'rain' }]);

  const fits = { ...Object.fromEntries([...Array(15)].map((_, i) => [`name ${i}`, 'x'])), ['n'.repeat(64)]: 'v'.repeat(512) };
  assert.deepEqual((await client.conversations.update(id, { metadata: fits })).metadata, fits);
  for (const wrong of [{ ...fits, more: 'x' }, { ['n'.repeat(65)]: 'x' }, { a: 'v'.repeat(513) }, { a: 1 }]) {
    await assert.rejects(client.conversations.create({ metadata: wrong }), (e) => e.status === 400 && e.param === 'metadata');
    await assert.rejects(client.conversations.update(id, { metadata: wrong }), (e) => e.status === 400 && e.param === 'metadata');
  }
  assert.deepEqual((await client.conversations.retrieve(id)).metadata, fits);
  await assert.rejects(client.conversations.update(`conv_${'c'.repeat(24)}`, { metadata: {} }), (e) => e.status === 404);
});

test('a conversation goes on from any of its versions', options, async () => {
  const conversation = `conv_${'b'.repeat(24)}`;
  const ask = (input, from_version, more) => client.responses.create({ ...greedy, conversation, input, from_version, ...more });
  const first = await ask('One.', 0);
  const second = await ask('Two.', 1);
  const other = await ask('Two.', 1);
  assert.equal(other.output_text, second.output_text);
  assert.deepEqual(other.usage, second.usage);
  const beginning = await ask('One.', 0);
  assert.equal(beginning.output_text, first.output_text);
  const { body } = await server.get(`/v1/sessions/${conversation}?tree=true`, { authorization: 'Bearer secret' });
  assert.deepEqual(body.tree.map((v) => [v.version, v.parent, v.response_id]),
    [[1, 0, first.id], [2, 1, second.id], [3, 1, other.id], [4, 0, beginning.id]]);
  await assert.rejects(ask('Three.', 9), { status: 404, param: 'from_version' });
  await assert.rejects(ask('Three.', -1), { status: 400, param: 'from_version' });
  for (const place of [{ conversation: undefined }, { conversation: undefined, previous_response_id: first.id }])
    await assert.rejects(ask('Three.', 1, place), { status: 400, param: 'from_version' });
});

test('the tokens of an input are counted', options, async () => {
  const input = { ...greedy, instructions: 'Be brief.' };
  const { usage } = await client.responses.create(input);
  const counted = await client.responses.inputTokens.count({ model: 'tiny', input: input.input, instructions: input.instructions });
  assert.deepEqual({ ...counted }, { object: 'response.input_tokens', input_tokens: usage.input_tokens });

  const old = await client.responses.create(input);
  const next = await client.responses.create({ ...greedy, previous_response_id: old.id });
  const [fresh, used] = [await client.conversations.create(), await client.conversations.create()];
  for (const instructions of ['Be brief.', undefined])
    await client.responses.create({ ...greedy, instructions, conversation: used.id });
  const places = [{ previous_response_id: old.id }, { previous_response_id: next.id }, { conversation: used.id },
    { conversation: fresh.id }, { conversation: `conv_${'a'.repeat(24)}` }, { conversation: used.id, from_version: 0 },
    { conversation: used.id, from_version: 1 }];
  for (const place of places)
    for (const more of [{}, { instructions: 'Be brief.' }, { instructions: 'Be long.' }, { reasoning: { effort: 'low' } }]) {
      const body = { model: 'tiny', input: 'And then?', ...place, ...more };
      const count = await client.responses.inputTokens.count(body);
      const answer = await client.responses.create({ ...body, max_output_tokens: 1, store: false });
      assert.equal(count.input_tokens, answer.usage.input_tokens, JSON.stringify(body));
    }
  const unknown = { model: 'tiny', input: 'And?', previous_response_id: `resp_${'a'.repeat(48)}` };
  await assert.rejects(client.responses.inputTokens.count(unknown), { status: 404, param: 'previous_response_id' });
});

const long = { ...greedy, max_output_tokens: 400, alpha_presence: 0, alpha_frequency: 0 };

test('a stream that broke goes on where it stood', options, async () => {
  const whole = await client.responses.create(long);
  const broken = await client.responses.create({ ...long, stream: true });
  const seen = [];
  for await (const event of broken) {
    seen.push(event);
    if (seen.length === 20) break;  // hangs up
  }
  const rest = await events(await client.responses.retrieve(seen[0].response.id, { stream: true, starting_after: 19 }));
  assert.equal(rest.at(-1).response.output[0].content[0].text, whole.output_text);
  assert.equal(textOf([...seen, ...rest]), whole.output_text);
  const told = await client.responses.retrieve(seen[0].response.id);
  assert.equal(told.output_text, whole.output_text);
  const replay = await events(await client.responses.retrieve(seen[0].response.id, { stream: true }));
  assert.equal(textOf(replay), whole.output_text);
});

test('a stream is taken over while another connection reads it', options, async () => {
  const whole = await client.responses.create(long);
  const first = await client.responses.create({ ...long, stream: true });
  const seen = [];
  const second = [];
  for await (const event of first) {
    seen.push(event);
    if (event.sequence_number !== 12) continue;
    second.push(...await events(await client.responses.retrieve(seen[0].response.id, { stream: true })));
  }
  assert.equal(textOf(second), whole.output_text);
  const last = seen.at(-1).response;
  assert.ok(last.output_text === whole.output_text || last.incomplete_details.reason === 'client_gone' || last.status === 'incomplete');
});

test('in the background: followed while it runs, by many, and cancelled', options, async () => {
  const whole = await client.responses.create(long);
  const begun = await client.responses.create({ ...long, background: true });
  assert.equal(begun.status, 'queued');
  const [a, b] = await Promise.all([undefined, 8].map(async (starting_after) =>
    textOf(await events(await client.responses.retrieve(begun.id, { stream: true, starting_after })))));
  assert.equal(a, whole.output_text);
  assert.ok(whole.output_text.endsWith(b) && b.length < a.length);
  const told = await client.responses.retrieve(begun.id);
  assert.equal(told.output_text, whole.output_text);
  assert.equal(told.background, true);

  const endless = await client.responses.create({ ...long, max_output_tokens: 100000, background: true, stream: true });
  let id;
  const first = [];
  for await (const event of endless) {
    if (first.length < 3) first.push(`${event.type} ${event.response.status}`);
    id = event.response?.id ?? id;
    if (event.sequence_number > 30) break;  // leaves; it runs on
  }
  assert.deepEqual(first, ['response.created queued', 'response.queued queued', 'response.in_progress in_progress']);
  assert.equal((await client.responses.retrieve(id)).status, 'in_progress');
  const ended = await client.responses.cancel(id);
  assert.equal(ended.status, 'cancelled');
  assert.ok(ended.output[0].content[0].text.length > 0);
  assert.equal((await client.responses.retrieve(id)).status, 'cancelled');
});

const auth = { authorization: 'Bearer secret' };

test('followers that leave make room for others while the response runs', async (t) => {
  const slow = await serve('--device', 'fake', '--io-threads', '2', '--set', 'engine.fake_tick_us=2000', '--set', 'drain.grace_ms=0',
    '--set', 'limits.response_followers_max=4');
  t.after(() => slow.stop());
  const begun = await slow.post('/v1/responses', { input: 'x', background: true, max_output_tokens: 1000000, logit_bias: { 0: -100 } },
    auth);
  assert.equal(begun.status, 200);
  const follow = async () => {
    const gone = new AbortController();
    const { status, body } = await slow.fetch(`/v1/responses/${begun.body.id}?stream=true`, { signal: gone.signal, headers: auth });
    const reader = body.getReader();
    const first = Buffer.from((await reader.read()).value).toString();
    return { status, first, reader, leave: () => gone.abort() };
  };
  // A connection may notice that its client has gone only after the next client asks.
  const admitted = async () => {
    for (const end = Date.now() + 20000; ;) {
      const one = await follow();
      if (one.status === 200) return one;
      assert.ok(Date.now() < end, one.first);
      await new Promise((go) => setTimeout(go, 10));
    }
  };
  for (let round = 0; round < 4; ++round) {
    const all = [];
    while (all.length < 4) all.push(await admitted());
    const one_more = await follow();
    assert.equal(one_more.status, 429);
    assert.match(one_more.first, /limits\.response_followers_max/);
    for (const one of all) {
      assert.match(one.first, /response\.created/);
      await one.reader.read();
      one.leave();
    }
  }
  assert.equal((await slow.get(`/v1/responses/${begun.body.id}`, auth)).body.status, 'in_progress');
  assert.equal((await slow.post(`/v1/responses/${begun.body.id}/cancel`, {}, auth)).body.status, 'cancelled');
});

test('a response that runs is removed only when it has ended', { timeout: 60000 }, async (t) => {
  const slow = await serve('--device', 'fake', '--set', 'engine.fake_tick_us=1000', '--set', 'drain.grace_ms=0');
  t.after(() => slow.stop());
  const endless = { input: 'x', max_output_tokens: 1000000, logit_bias: { 0: -100 } };
  const remove = async (path) => {
    const answer = await slow.fetch(path, { method: 'DELETE', headers: auth });
    return [answer.status, (await answer.json()).error];
  };
  const gone = new AbortController();
  const { id } = (await slow.post('/v1/responses', { ...endless, background: true }, auth)).body;
  const { body } = await slow.fetch('/v1/responses', { method: 'POST', signal: gone.signal, headers: auth, body: JSON.stringify({ ...endless, stream: true }) });
  const streamed = Buffer.from((await body.getReader().read()).value).toString().match(/resp_[0-9a-f]+/)[0];
  for (const running of [id, streamed]) {
    const path = `/v1/responses/${running}`;
    const [status, error] = await remove(path);
    assert.equal(status, 409, JSON.stringify(error));
    assert.equal(error.code, 'session_busy');
    assert.match(error.message, /cancel it/);
    assert.equal((await slow.post(`${path}/cancel`, {}, auth)).body.status, 'cancelled');
    let ended;
    do ended = (await remove(path))[0]; while (ended === 409);  // until the turn is in the log
    assert.equal(ended, 200);
    assert.equal((await remove(path))[0], 404);
  }
  gone.abort();
});

test('one that has ended is cancelled only if it was in the background', { ...options, timeout: 60000 }, async () => {
  const base = { ...greedy, max_output_tokens: 2 };
  const { id } = await client.responses.create(base);
  await assert.rejects(client.responses.cancel(id), (e) => e.status === 400 && /background/.test(e.message));
  const behind = await client.responses.create({ ...base, background: true });
  let now;
  do now = await client.responses.retrieve(behind.id); while (['queued', 'in_progress'].includes(now.status));
  assert.equal((await client.responses.cancel(behind.id)).status, now.status);
});

test('a long answer is followed from its beginning while it runs', async (t) => {
  const fast = await serve('--device', 'fake', '--io-threads', '2', '--set', 'engine.fake_tick_us=50', '--set', 'drain.grace_ms=0',
    '--set', 'limits.outbound_bytes_max=16777216');  // the whole stream, so that no reader is too slow
  t.after(() => fast.stop());
  const begun = await fast.post('/v1/responses', { input: 'x', background: true, max_output_tokens: 40000, logit_bias: { 0: -100 } },
    auth);
  const path = `/v1/responses/${begun.body.id}`;
  const told = async () => (await fast.get(path, auth)).body;
  const text = (response) => response.output[0]?.content[0]?.text ?? '';
  for (let now = await told(); text(now).length < 20000; now = await told()) {  // with its steps more than is written on the io thread
    assert.match(now.status, /^(queued|in_progress)$/);
    await new Promise((go) => setTimeout(go, 50));
  }
  const streams = await Promise.all([`${path}?stream=true`, `${path}?stream=true&starting_after=9000`].map(async (url) =>
    (await (await fast.fetch(url, { headers: auth })).text()).split('\n').filter((l) => l.startsWith('data: {')).map((l) => JSON.parse(l.slice(6)))));
  const whole = text(await told());
  for (const [stream, first] of [[streams[0], 0], [streams[1], 9001]]) {
    assert.equal(stream.findIndex((e, i) => e.sequence_number !== first + i), -1);
    assert.match(stream.at(-1).type, /^response\.(completed|incomplete)$/);
    assert.equal(text(stream.at(-1).response), whole);
    assert.ok(whole.endsWith(textOf(stream)));
  }
  assert.equal(textOf(streams[0]), whole);
});

test('a slow reader gets a long answer from its beginning', { timeout: 120_000 }, async (t) => {
  const fast = await serve('--device', 'fake', '--io-threads', '2', '--set', 'engine.fake_tick_us=50', '--set', 'drain.grace_ms=0',
    '--set', 'limits.outbound_bytes_max=262144', '--set', 'limits.unsent_bytes_max=16384');
  t.after(() => fast.stop());
  const begun = await fast.post('/v1/responses', { input: 'x', background: true, max_output_tokens: 26000, logit_bias: { 0: -100 } },
    auth);
  const path = `/v1/responses/${begun.body.id}`;
  const told = async () => (await fast.get(path, auth)).body;
  for (let now = await told(); (now.output[0]?.content[0]?.text ?? '').length < 20000; now = await told()) {  // 4 MB of events
    assert.match(now.status, /^(queued|in_progress)$/);
    await new Promise((go) => setTimeout(go, 20));
  }
  const socket = connect({ port: Number(new URL(fast.url).port), host: '127.0.0.1' });
  t.after(() => socket.destroy());
  let stream = '';
  let failure;
  const closed = new Promise((go) => socket.once('close', go));
  socket.on('error', (error) => { failure = error; });
  socket.write(`GET ${path}?stream=true HTTP/1.0\r\nAuthorization: Bearer secret\r\n\r\n`);
  socket.pause();
  while ((await told()).status === 'in_progress') await new Promise((go) => setTimeout(go, 50));  // 6000 more events
  socket.on('data', (bytes) => {  // a megabyte in a second
    stream += bytes.toString('latin1');
    socket.pause();
    setTimeout(() => socket.resume(), bytes.length / 1000);
  });
  socket.resume();
  await closed;
  assert.equal(failure, undefined);
  const numbers = [...stream.matchAll(/"sequence_number":(\d+)/g)].map((found) => Number(found[1]));
  assert.equal(numbers.findIndex((number, i) => number !== i), -1);
  assert.ok(numbers.length > 26000);
  assert.match(stream.slice(-200000), /event: response\.(completed|incomplete)/);
});

test('one that ended at its limit goes on behind it, under its id', options, async () => {
  const plain = long;
  const whole = await client.responses.create({ ...plain, max_output_tokens: 30 });
  const cut = await client.responses.create({ ...plain, max_output_tokens: 10, stream: true });
  const before = await events(cut);
  const { response } = before.at(-1);
  assert.equal(response.incomplete_details.reason, 'max_output_tokens');
  const more = async (body) => {
    const answer = await server.fetch(`/v1/responses/${response.id}/continue`, {
      method: 'POST', headers: { authorization: 'Bearer secret' }, body: JSON.stringify(body) });
    assert.equal(answer.status, 200);
    return (await answer.text()).split('\n').filter((l) => l.startsWith('data: {')).map((l) => JSON.parse(l.slice(6)));
  };
  const after = await more({ max_output_tokens: 20, starting_after: before.at(-1).sequence_number });
  assert.deepEqual(after.filter((e, i) => i > 0 && e.sequence_number !== after[i - 1].sequence_number + 1), []);
  assert.equal(after[0].sequence_number, before.at(-1).sequence_number + 1);
  assert.equal(textOf(before) + textOf(after), whole.output_text);
  const told = await client.responses.retrieve(response.id);
  assert.equal(told.output_text, whole.output_text);
  assert.deepEqual([told.usage.output_tokens, told.max_output_tokens], [30, 30]);
  assert.equal(textOf(await events(await client.responses.retrieve(response.id, { stream: true }))), whole.output_text);

  const ended = await client.responses.create({ ...plain, max_output_tokens: 30, stop: whole.output_text.slice(3, 6) });
  assert.equal(ended.status, 'completed');
  const same = await server.fetch(`/v1/responses/${ended.id}/continue`, { method: 'POST', headers: { authorization: 'Bearer secret' } });
  assert.match(await same.text(), /response\.completed/);
  assert.equal((await client.responses.retrieve(ended.id)).output_text, ended.output_text);
});

test('one that continues keeps its constraint and its penalties', options, async () => {
  const more = (id) => server.fetch(`/v1/responses/${id}/continue`, { method: 'POST',
    headers: { authorization: 'Bearer secret' }, body: '{"max_output_tokens": 30}' }).then((answer) => answer.text());
  const text = 'abcdefghij'.repeat(30);
  for (const rule of [{ guided_regex: text }, { guided_choice: [text] }, { structured_outputs: { regex: text } }]) {
    const cut = await client.responses.create({ ...long, ...rule, max_output_tokens: 10 });
    await more(cut.id);
    const told = await client.responses.retrieve(cut.id);
    assert.ok(told.output_text.length > cut.output_text.length && text.startsWith(told.output_text), told.output_text);
  }
  const seen = [];
  for await (const event of await client.responses.create({ ...long, guided_regex: text, stream: true })) {
    seen.push(event);
    if (seen.length === 20) break;  // hangs up
  }
  const rest = await events(await client.responses.retrieve(seen[0].response.id, { stream: true, starting_after: 19 }));
  assert.equal(textOf([...seen, ...rest]), text);

  const penalised = { input: 'q', temperature: 1, seed: 77, global_penalty: true, frequency_penalty: 1 };
  const whole = await client.responses.create({ ...penalised, max_output_tokens: 50 });
  const cut = await client.responses.create({ ...penalised, max_output_tokens: 20 });
  await more(cut.id);
  assert.equal((await client.responses.retrieve(cut.id)).output_text, whole.output_text);
});

test('one that began with a tuned state continues with it', options, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-responses-'));
  const start = (...more) => serveTiny('--set', 'drain.grace_ms=0', '--state-dir', folder, '--states-dir', oracle, ...more);
  const tuned = ['--set', 'model.tuned_states=["st=models/state-tiny-7v0.pth"]'];
  let one = await start(...tuned);
  const post = (id) => one.fetch(`/v1/responses/${id}/continue`, { method: 'POST',
    headers: { authorization: 'Bearer secret' }, body: '{"max_output_tokens": 30}' });
  const responses = () => new OpenAI({ apiKey: 'secret', baseURL: `${one.url}/v1`, maxRetries: 0 }).responses;
  try {
    const whole = await responses().create({ ...long, state_name: 'st', max_output_tokens: 50 });
    const cut = [];
    for (const begun of [{ state_name: 'st' }, { model: 'tiny st' }])
      cut.push(await responses().create({ ...long, ...begun, max_output_tokens: 20 }));
    assert.equal((await post(cut[0].id)).status, 200);
    assert.equal((await one.stop()).code, 0);
    one = await start(...tuned);
    assert.match(await (await post(cut[1].id)).text(), /response\.incomplete|response\.completed/);
    for (const { id } of cut) assert.equal((await responses().retrieve(id)).output_text, whole.output_text);
    assert.equal((await one.stop()).code, 0);
    one = await start();
    const refused = await post(cut[0].id);
    assert.equal(refused.status, 409);
    assert.match(await refused.text(), /began with the tuned state/);
  } finally {
    await one.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a retry with the same Idempotency-Key is answered from the record', options, async () => {
  const post = async (body, key, more = {}) => {
    const answer = await server.fetch('/v1/responses', { method: 'POST', body: JSON.stringify(body),
      headers: { authorization: 'Bearer secret', ...(key && { 'idempotency-key': key }), ...more } });
    const text = await answer.text();
    return { status: answer.status, replayed: answer.headers.get('idempotent-replayed'), text,
      ...(text.startsWith('{') && { body: JSON.parse(text) }) };
  };
  const versions = async (id) => (await (await server.fetch(`/v1/sessions/${id}`,
    { headers: { authorization: 'Bearer secret' } })).json()).versions;
  const { id: conversation } = await client.conversations.create();
  const { id: previous } = await client.responses.create(greedy);
  for (const place of [{ conversation }, { previous_response_id: previous }, {}]) {
    const body = { ...greedy, ...place };
    const key = `of ${Object.keys(place)}`;
    const [first, beside] = await Promise.all([post(body, key), post(body, key)]);
    assert.deepEqual([first.status, beside.status], [200, 200]);
    assert.deepEqual([first, beside].map((a) => a.replayed).sort(), ['true', null].sort());
    const again = await post(body, key);
    const { session, ...told } = again.body;
    assert.equal(again.replayed, 'true');
    assert.equal(session.replayed, true);
    assert.deepEqual([told.id, told.output, told.usage], [beside.body.id, beside.body.output, beside.body.usage]);
    const streamed = (await post({ ...body, stream: true }, key)).text;
    const replay = await events(await client.responses.retrieve(told.id, { stream: true }));
    const sent = streamed.split('\n').filter((l) => l.startsWith('data: {')).map((l) => JSON.parse(l.slice(6)));
    assert.equal(textOf(sent), textOf(replay));
    assert.deepEqual(sent.map((e) => e.sequence_number), replay.map((e) => e.sequence_number));
    const other = await post({ ...body, input: 'Another.' }, key);
    assert.deepEqual([other.status, other.body.error.param], [422, 'Idempotency-Key']);
    assert.notEqual((await post(body, `${key} 2`)).body.id, told.id);
    assert.notEqual((await post(body)).body.id, told.id);
  }
  assert.equal(await versions(conversation), 3);
  const { body: kept } = await post(greedy, 'then deleted');
  await client.responses.create({ ...greedy, previous_response_id: kept.id });
  await client.responses.delete(kept.id);
  const made = await post(greedy, 'then deleted');
  assert.deepEqual([made.status, made.replayed, made.body.usage.input_tokens], [200, null, kept.usage.input_tokens]);
  const unkept = await post({ ...greedy, store: false }, 'nothing is stored');
  assert.deepEqual([unkept.status, unkept.body.error.param], [400, 'Idempotency-Key']);

  for (const [version, status] of [[2, 409], [4, 409], [3, 200], [3, 409]])
    assert.equal((await post({ ...greedy, conversation, expected_version: version })).status, status);
  assert.equal((await post({ ...greedy, expected_version: 1 })).status, 409);
  assert.equal((await post({ ...greedy, expected_version: 1, store: false })).status, 400);
});

test('one that waits is cancelled, and stays cancelled', options, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-responses-'));
  const start = () => serveTiny('--set', 'drain.grace_ms=0', '--set', 'engine.slots=1', '--set', 'queue.turn_tokens=4000000000',
    '--state-dir', folder);
  let single = await start();
  const ask = () => new OpenAI({ apiKey: 'secret', baseURL: `${single.url}/v1`, maxRetries: 0 }).responses;
  try {
    const holder = await ask().create({ ...long, max_output_tokens: 1000000, background: true });
    while ((await ask().retrieve(holder.id)).status !== 'in_progress') await new Promise((go) => setTimeout(go, 20));
    const first = await ask().create({ ...long, background: true });
    const waiting = await ask().create({ ...long, background: true });
    const reader = events(await ask().retrieve(waiting.id, { stream: true }));
    assert.equal((await ask().retrieve(waiting.id)).status, 'queued');
    for (const { id } of [waiting, first]) {
      assert.equal((await ask().cancel(id)).status, 'cancelled');
      assert.equal((await ask().retrieve(id)).status, 'cancelled');
    }
    const last = (await reader).at(-1);
    assert.deepEqual([last.type, last.response.status], ['response.incomplete', 'cancelled']);
    assert.equal((await ask().cancel(holder.id)).status, 'cancelled');
    assert.equal((await single.stop()).code, 0);
    single = await start();
    const told = await ask().retrieve(waiting.id);
    assert.deepEqual([told.status, told.output_text, told.usage.output_tokens], ['cancelled', '', 0]);
    assert.equal((await events(await ask().retrieve(waiting.id, { stream: true }))).at(-1).response.status, 'cancelled');
  } finally {
    await single.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

test('what is not done here is refused by name', options, async () => {
  const refused = async (more, param) =>
    await assert.rejects(client.responses.create({ ...greedy, ...more }), (e) => e.status === 400 && e.param === param, param);
  await refused({ tools: [{ type: 'web_search' }] }, 'tools[0].type');
  await refused({ tool_choice: 'required' }, 'tool_choice');
  await refused({ text: { format: { type: 'xml' } } }, 'text.format.type');
  await refused({ top_logprobs: 2 }, 'top_logprobs');
  await refused({ prompt: { id: 'x' } }, 'prompt');
  await refused({ input: undefined }, 'input');
  await refused({ input: [] }, 'input');
  await refused({ input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'x' }] }] }, 'input[0].content[0].type');
  await refused({ input: [{ type: 'function_call_output', call_id: 'x', output: 5 }] }, 'input[0].output');
  await refused({ input: [{ type: 'web_search_call' }] }, 'input[0].type');
  await refused({ input: [{ role: 'nobody', content: 'x' }] }, 'input[0].role');
  await refused({ previous_response_id: 'resp_x' }, 'previous_response_id');
  await refused({ conversation: 'anna' }, 'conversation');
  await refused({ metadata: { a: 1 } }, 'metadata');
  await refused({ background: true, store: false }, 'background');
  await refused({ reasoning: { effort: 'infinite' } }, 'reasoning.effort');
  await refused({ max_output_tokens: 'many' }, 'max_output_tokens');
  for (const truncation of ['weird', 5]) await refused({ truncation }, 'truncation');
  for (const include of [['weird'], [5], [null], 'all', ['message.output_text.logprobs']]) await refused({ include }, 'include');
  const lost = `resp_${'a'.repeat(48)}`;
  await assert.rejects(client.responses.create({ ...greedy, previous_response_id: lost }),
    (e) => e.status === 404 && e.param === 'previous_response_id');
  const fine = await client.responses.create({ ...greedy, tools: [], tool_choice: 'auto', parallel_tool_calls: true, truncation: 'auto',
    include: ['reasoning.encrypted_content', 'file_search_call.results', 'web_search_call.action.sources', 'web_search_call.results',
      'code_interpreter_call.outputs', 'computer_call_output.output.image_url', 'message.input_image.image_url'], service_tier: 'auto', prompt_cache_key: 'x', text: { verbosity: 'low' }, user: 'u' });
  assert.deepEqual([fine.user, fine.truncation], ['u', 'auto']);
  assert.equal((await client.responses.retrieve(fine.id)).truncation, 'auto');
  assert.equal((await client.responses.create(greedy)).truncation, 'disabled');
});
