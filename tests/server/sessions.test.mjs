// Sessions of a running server, through the official client and plain requests: a chat told by increments or by whole
// histories gives the same text; versions, forks and files; writers side by side, hang-ups and retries; restarts. With
// the demo model, and with the fake engine, whose text tells every token that was ever fed. SKEIN_LONG=1: the long form.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { serve } from './support.mjs';

const quiet = ['--set', 'drain.grace_ms=0'];
const long = process.env.SKEIN_LONG === '1';

function folder() {
  const path = mkdtempSync(join(tmpdir(), 'skein-sessions-'));
  process.on('exit', () => rmSync(path, { recursive: true, force: true }));  // when its server has stopped
  return path;
}

const said = (role, content) => ({ role, content });
const path = (id) => `/v1/sessions/${encodeURIComponent(id)}`;

describe('chats with the demo model', () => {
  const questions = ['Hello! My name is Anna.', 'What is my name?', 'Count from three to six.', 'What color is the sky?', 'Thank you. Goodbye!'];
  const greedy = { model: 'skein-demo', temperature: 0, presence_penalty: 0, frequency_penalty: 0, max_tokens: 48 };
  let server;
  let client;

  before(async () => {
    server = await serve('--device', 'cpu', ...quiet);
    client = new OpenAI({ apiKey: 'any', baseURL: `${server.url}/v1`, maxRetries: 0 });
  });
  after(async () => assert.equal((await server.stop()).code, 0));

  const turn = (session_id, messages, more = {}) => client.chat.completions.create({ ...greedy, session_id, messages, ...more });
  const text = (answer) => answer.choices[0].message.content;

  async function increments(id) {
    const answers = [];
    for (const q of questions) answers.push(text(await turn(id, [said('user', q)])));
    return answers;
  }

  test('five turns by increments, by whole histories and streamed give the same text', async () => {
    const expected = await increments('by increments');
    const history = [];
    const cached = [];
    for (const [i, q] of questions.entries()) {
      history.push(said('user', q));
      const { data, response } = await turn('by histories', history).withResponse();
      assert.equal(text(data), expected[i]);
      assert.equal(response.headers.get('x-session-state'), i === 0 ? 'new' : 'continued');
      assert.deepEqual(data.session, { id: 'by histories', version: i + 1, durable: 'memory' });
      cached.push(data.usage.prompt_tokens_details.cached_tokens);
      history.push(said('assistant', text(data)));
    }
    assert.ok(cached.every((c, i) => i === 0 || c > cached[i - 1]), `${cached}`);
    for (const [i, q] of questions.entries()) {
      let all = '';
      let last;
      const stream = await turn('streamed', [said('user', q)], { stream: true, stream_options: { include_usage: true } });
      for await (const chunk of stream) {
        all += chunk.choices[0]?.delta.content ?? '';
        last = chunk;
      }
      assert.equal(all, expected[i]);
      assert.equal(last.session.version, i + 1);
      assert.ok(last.usage.prompt_tokens > 0);
    }
  });

  test('an answer of a schema that was cut continues if the schema is sent again', async () => {
    const schema = { type: 'object', properties: { a: { enum: ['x"y', 5] } }, required: ['a'], additionalProperties: false };
    for (let max_tokens = 1; max_tokens < 6; ++max_tokens) {
      const fields = { ...greedy, session_id: `cut after ${max_tokens}`, response_format: { type: 'json_schema', json_schema: { name: 's', schema } } };
      const first = (await server.post('/v1/chat/completions', { ...fields, messages: [said('user', 'x')], max_tokens })).body;
      assert.equal(first.choices[0].finish_reason, 'length');
      const { status, body } = await server.post('/v1/chat/completions', { ...fields, continue: true });
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal(body.choices[0].finish_reason, 'stop');
      assert.ok(['x"y', 5].includes(JSON.parse(text(first) + text(body)).a), text(first) + text(body));
    }
  });

  test('an answer is made again and a question is edited, from an earlier version', async () => {
    const answers = await increments('edited');
    const again = await turn('edited', [said('user', questions[2])], { from_version: 2 });
    assert.equal(text(again), answers[2]);
    assert.equal(again.session.version, 6);
    const other = await turn('edited', [said('user', questions[0]), said('assistant', answers[0]), said('user', questions[3])]);
    assert.equal(other.session.version, 7);
    const { body } = await server.get(`${path('edited')}?tree=true`);
    assert.deepEqual(body.tree.map((v) => v.parent), [0, 1, 2, 3, 4, 2, 1]);
    assert.equal(body.head, 7);
  });

  test('forks and rollbacks go on from where they were', async () => {
    const answers = await increments('trunk');
    const fork = await server.post(`${path('trunk')}/fork`, { to: 'a/branch', version: 2 });
    assert.equal(fork.status, 200);
    assert.equal(text(await turn('a/branch', [said('user', questions[2])])), answers[2]);
    assert.equal((await server.get(path('trunk'))).body.head, 5);
    const back = await server.post(`${path('trunk')}/rollback`, { version: 3 });
    assert.equal(back.body.head, 3);
    assert.equal(text(await turn('trunk', [said('user', questions[3])])), answers[3]);
    assert.equal((await server.post(`${path('trunk')}/rollback`, { version: 99 })).status, 404);
    assert.equal((await server.post(`${path('nobody')}/fork`, { to: 'x' })).status, 404);
    const { body } = await server.get(`${path('a/branch')}?transcript=true`);
    assert.deepEqual(body.transcript.map((v) => v.messages[0].content), questions.slice(0, 3));
    assert.deepEqual(body.transcript.map((v) => v.answer), answers.slice(0, 3));
  });

  test('a session leaves as a file and comes in again', async () => {
    const answers = await increments('file');
    await server.post(`${path('file')}/rollback`, { version: 4 });
    const file = Buffer.from(await (await server.fetch(`${path('file')}/export`)).arrayBuffer());
    const put = (id, body) => server.fetch(path(id), { method: 'PUT', body });
    assert.equal((await put('copy', file)).status, 200);
    assert.equal(text(await turn('copy', [said('user', questions[4])])), answers[4]);
    const again = await put('copy', file);
    assert.equal(again.status, 409);
    const { error } = await again.json();
    assert.deepEqual([error.param, error.code], ['replace', null]);
    assert.match(error.message, /'copy' already exists; set replace=true/);
    const torn = Buffer.from(file);
    torn[torn.length >> 1] ^= 1;
    assert.ok([400, 410].includes((await put('torn', torn)).status));
    assert.equal((await server.get(path('torn'))).status, 404);
    assert.equal((await server.fetch(path('copy'), { method: 'DELETE' })).status, 200);
    assert.equal((await server.fetch(path('copy'), { method: 'DELETE' })).status, 404);
  });

  test('a page of the list at a time', async () => {
    for (const id of ['list/a', 'list/b', 'list/c']) await turn(id, [said('user', 'Hi')], { max_tokens: 1 });
    const seen = [];
    for (let after = 'list/'; ; ) {
      const { body } = await server.get(`/v1/sessions?limit=2&after=${encodeURIComponent(after)}`);
      seen.push(...body.data.map((s) => s.id));
      if (!body.has_more) break;
      after = body.last_id;
    }
    assert.deepEqual(seen.filter((id) => id.startsWith('list/')), ['list/a', 'list/b', 'list/c']);
    assert.deepEqual([...seen].sort(), seen);
  });

  test('a shared beginning is read once', async () => {
    const system = 'You answer briefly. '.repeat(40);
    const ask = (content, more = {}) =>
      client.chat.completions.create({ ...greedy, messages: [said('system', system), said('user', content)], max_tokens: 8, ...more });
    const first = await ask('Hello!');
    assert.equal(first.usage.prompt_tokens_details.cached_tokens, 0);
    const second = await ask('Who are you?');
    assert.ok(second.usage.prompt_tokens_details.cached_tokens > 0.8 * second.usage.prompt_tokens);
    const cold = await ask('Who are you?', { use_prefix_cache: false });
    assert.equal(cold.usage.prompt_tokens_details.cached_tokens, 0);
    assert.equal(text(second), text(cold));
  });
});

describe('sessions on the fake engine', () => {
  const state_dir = folder();
  // Few places everywhere, so that states move between all tiers, or are made again from the log. A tick takes a little,
  // so that an endless answer stays short.
  const options = ['--device', 'fake', '--set', 'engine.fake_tick_us=100', '--state-dir', state_dir, '--slots', '8', '--set', 'sessions.ram_states_max=4', '--set', 'sessions.disk_states_max=16', ...quiet];
  let server;
  before(async () => (server = await serve(...options)));
  after(async () => assert.equal((await server.stop()).code, 0));

  const raw = (session_id, prompt, more = {}) => server.post('/v1/completions', { session_id, prompt, temperature: 0, max_tokens: 12, ...more });
  const answered = ({ status, body }) => {
    assert.equal(status, 200, JSON.stringify(body));
    return body.choices[0].text;
  };
  /** The answer of the model to this text without any cached state. */
  const fresh = async (prompt, more = {}) =>
    answered(await server.post('/v1/completions', { prompt, temperature: 0, max_tokens: 12, use_prefix_cache: false, ...more }));

  /** One turn of a session whose whole text is known, and the text after it. */
  async function checked(id, known, prompt, more = {}) {
    const before = known + (known && !prompt.startsWith('\n\n') ? '\n\n' : '') + prompt;
    const [mine, reference] = await Promise.all([raw(id, prompt, more), fresh(before, more)]);
    assert.equal(answered(mine), reference, `${id} after ${JSON.stringify(before.slice(-60))}`);
    return before + reference;
  }

  test('a stop string that cuts text leaves a state of what is seen', async () => {
    let known = '';
    for (let i = 0; i < 6; ++i) {
      const before = known + (known ? '\n\n' : '') + `turn ${i}`;
      const whole = await fresh(before, { max_tokens: 20 });
      const stop = whole.slice(7, 10);
      const said = answered(await raw('cut', `turn ${i}`, { max_tokens: 20, stop: [stop] }));
      assert.equal(said, whole.slice(0, whole.indexOf(stop)));
      known = before + said;
    }
  });

  test('an echo is the prompt as it was sent', async () => {
    const echoed = async (prompt) => {
      const { status, body } = await raw('echo', prompt, { echo: true });
      assert.equal(status, 200, JSON.stringify(body));
      const { choices, usage } = body;
      assert.ok(choices[0].text.startsWith(prompt), JSON.stringify(choices[0].text.slice(0, 80)));
      return { text: choices[0].text, usage };
    };
    const first = await echoed('one');
    const { usage } = await echoed('two');
    const blank = (await server.post('/tokenize', { content: '\n\ntwo' })).body.tokens.length;
    assert.equal(usage.prompt_tokens, blank, 'counts are of what was fed');
    await echoed('\n\nthree');
    const all = (await server.get('/v1/sessions/echo?transcript=true')).body.transcript.map((v) => v.prompt + v.answer).join('');
    assert.ok(all.startsWith(`${first.text}\n\ntwo`));
    await echoed(`${all}\n\nfour`);  // all but the end is known
    const streamed = await (await server.fetch('/v1/completions', { method: 'POST', body: JSON.stringify(
      { session_id: 'echo', prompt: 'five', echo: true, stream: true, temperature: 0, max_tokens: 4 }) })).text();
    const pieces = [...streamed.matchAll(/^data: (\{.*)$/gm)].flatMap(([, json]) => JSON.parse(json).choices ?? []);
    assert.ok(pieces.map((c) => c.text).join('').startsWith('five'), streamed);
  });

  test('a file is exported up to a version', async () => {
    for (const prompt of ['one', 'two', 'three']) answered(await raw('until', prompt));
    const file = async (query, status = 200) => {
      const answer = await server.fetch(`${path('until')}${query}`);
      const bytes = Buffer.from(await answer.arrayBuffer());
      assert.equal(answer.status, status, `${query}: ${bytes.toString('latin1').slice(0, 200)}`);
      return bytes;
    };
    for (const route of ['/state', '/export']) {
      const copy = `until by ${route.slice(1)}`;
      const put = await server.fetch(path(copy), { method: 'PUT', body: await file(`${route}?version=2`) });
      assert.equal(put.status, 200);
      assert.deepEqual((await put.json()).head, 2);
      assert.ok((await file(`${route}?version=2`)).length < (await file(route)).length);
      for (const missing of [0, 4, 99]) assert.match((await file(`${route}?version=${missing}`, 404)).toString(), /has no version/);
      for (const wrong of ['x', '-1', '']) assert.match((await file(`${route}?version=${wrong}`, 400)).toString(), /"param": ?"version"/);
    }
  });

  test('two writers take turns', async () => {
    let known = await checked('two', '', 'start');
    const [a, b] = await Promise.all([raw('two', 'A'), raw('two', 'B')]);
    const order = a.body.session.version < b.body.session.version ? [['A', a], ['B', b]] : [['B', b], ['A', a]];
    for (const [prompt, answer] of order) {
      known += `\n\n${prompt}`;
      assert.equal(answered(answer), await fresh(known));
      known += answered(answer);
    }
  });

  test('a client that hangs up in the middle leaves nothing, unless it asks for that', async () => {
    const known = await checked('hang', '', 'start');
    for (const store_on_disconnect of [false, true]) {
      const going = new AbortController();
      const response = await server.fetch('/v1/completions', {
        method: 'POST',
        signal: going.signal,
        body: JSON.stringify({ session_id: 'hang', prompt: 'on', temperature: 0, max_tokens: 1000000, stream: true, store_on_disconnect }),
      });
      await response.body.getReader().read();
      going.abort();
      await server.counters((c) => c.requests.running === 0 && c.requests.waiting === 0);
      if (!store_on_disconnect) {
        assert.equal((await server.get(path('hang'))).body.head, 1);
        continue;
      }
      const { body } = await server.get(`${path('hang')}?transcript=true`);
      assert.equal(body.head, 2);
      assert.equal(body.transcript[1].finish_reason, 'length');
      const all = known + body.transcript[1].prompt + body.transcript[1].answer;
      assert.equal(body.transcript[1].prompt, '\n\non');
      assert.equal(answered(await raw('hang', 'and')), await fresh(`${all}\n\nand`));
    }
    const { status } = await server.get(path('never'));
    assert.equal(status, 404);
  });

  test('a retry with its key is answered once', async () => {
    const headers = { 'idempotency-key': 'k-1' };
    const body = { session_id: 'retry', prompt: 'x', temperature: 1, max_tokens: 12 };
    const first = await server.post('/v1/completions', body, headers);
    const second = await server.post('/v1/completions', body, headers);
    assert.equal(answered(second), answered(first));
    assert.equal(second.body.session.version, 1);
    assert.equal(second.body.session.replayed, true);
    assert.equal(second.headers.get('idempotent-replayed'), 'true');
    const streamed = await (await server.fetch('/v1/completions', { method: 'POST', headers, body: JSON.stringify({ ...body, stream: true }) })).text();
    const events = streamed.split('\n\n').filter((e) => e.startsWith('data: {')).map((e) => JSON.parse(e.slice(6)));
    assert.equal(events.map((e) => e.choices[0].text).join(''), answered(first));
    assert.ok(streamed.endsWith('data: [DONE]\n\n'));
    assert.equal((await server.get(path('retry'))).body.versions, 1);
  });

  test('a retry that overtakes its first call waits for it', async () => {
    const body = { session_id: 'overtaken', prompt: 'x', temperature: 1, max_tokens: 40 };
    const both = await Promise.all([1, 2, 3].map(() => server.post('/v1/completions', body, { 'idempotency-key': 'k-2' })));
    assert.equal(new Set(both.map(answered)).size, 1);
    assert.equal((await server.get(path('overtaken'))).body.versions, 1);
  });

  test('a turn on another version than expected is refused', async () => {
    await checked('match', '', 'x');
    const late = await server.post('/v1/completions', { session_id: 'match', prompt: 'y', max_tokens: 1 }, { 'if-match': '"0"' });
    assert.equal(late.status, 409);
    assert.equal(late.body.error.code, 'version_conflict');
    assert.equal(late.headers.get('x-should-retry'), 'false');
    const right = await server.post('/v1/completions', { session_id: 'match', prompt: 'y', max_tokens: 1 }, { 'if-match': '"1"' });
    assert.equal(right.status, 200);
  });

  test('the routes of the older servers', async () => {
    const native = (path, body) => server.post(path, { temperature: 0, max_tokens: 6, stop_tokens: [], ...body });
    const one = await native('/state/chat/completions', { session_id: 'old', contents: ['User: a'] });
    assert.equal(one.body.choices[0].message.content, await fresh('User: a', { max_tokens: 6, stop_tokens: [] }));
    const branches = [];
    for (const dialogue_idx of [0, 1, 1])
      branches.push((await native('/multi_state/chat/completions', { session_id: 'tree', dialogue_idx, contents: [`say ${branches.length}`] })).body);
    assert.deepEqual(branches.map((b) => [b.dialogue_idx, b.parent]), [[1, 0], [2, 1], [3, 1]]);
    const root = `say 0${branches[0].choices[0].message.content}`;
    assert.equal(branches[2].choices[0].message.content, await fresh(`${root}\n\nsay 2`, { max_tokens: 6, stop_tokens: [] }));
    const gone = await native('/multi_state/chat/completions', { session_id: 'tree', dialogue_idx: 9, contents: ['x'] });
    assert.equal(gone.status, 404);
    assert.deepEqual(gone.body, { error: 'State not found for dialogue_idx=9' });
    // A branch is also reached by its own name, on every route.
    const read = async (id, more = '') => (await server.get(`${path(id)}${more}`)).body;
    assert.deepEqual((await read('tree:1', '?transcript=true')).transcript, (await read('tree', '?transcript=true&version=1')).transcript);
    assert.deepEqual([(await read('tree:2')).id, (await read('tree:2')).head], ['tree:2', 2]);
    assert.equal((await server.get(`${path('tree:2')}/versions`)).status, 200);
    assert.equal((await server.fetch(`${path('tree:2')}/export`)).status, 200);
    assert.equal((await server.post(`${path('tree:2')}/fork`, { to: 'twig' })).status, 200);
    assert.equal((await server.post('/state/delete', { session_id: 'twig' })).status, 200);
    assert.equal((await server.post(path('tree:2'), { title: 'x' })).status, 404);  // no session yet
    assert.equal((await server.post(`${path('tree:2')}/rollback`, { version: 1 })).status, 404);
    const branch = await native('/state/chat/completions', { session_id: 'tree:1', contents: ['more'] });
    assert.equal(branch.body.choices[0].message.content, await fresh(`${root}\n\nmore`, { max_tokens: 6, stop_tokens: [] }));

    const { body } = await server.post('/state/status', {});
    assert.equal(body.status, 'success');
    assert.equal(body.total_sessions, body.l1_cache_count + body.l2_cache_count + body.database_count);
    assert.equal(new Set(body.sessions.map((s) => s.session_id)).size, body.total_sessions);
    const remove = (session_id) => server.post('/state/delete', { session_id });
    assert.deepEqual((await remove('old')).body, { status: 'success', message: 'Session old deleted successfully' });
    assert.equal((await remove('old')).status, 404);
    // A branch goes by its name.
    assert.deepEqual((await remove('tree:3')).body, { status: 'success', message: 'Session tree:3 deleted successfully' });
    assert.equal((await native('/multi_state/chat/completions', { session_id: 'tree', dialogue_idx: 3, contents: ['x'] })).status, 404);
    assert.equal((await remove('tree:2')).status, 200);
    assert.equal((await server.get(path('tree'))).body.versions, 1);
    // One that others go on from goes too, and they go on.
    const on = (dialogue_idx, say) => native('/multi_state/chat/completions', { session_id: 'tree', dialogue_idx, contents: [say] });
    const leaf = (await on(1, 'leaf')).body;
    for (const status of [200, 200, 404]) assert.equal((await remove('tree:1')).status, status); // a session, a version
    assert.equal((await on(1, 'x')).status, 404);
    const more = (await on(leaf.dialogue_idx, 'more')).body.choices[0].message.content;
    assert.equal(more, await fresh(`${root}\n\nleaf${leaf.choices[0].message.content}\n\nmore`, { max_tokens: 6, stop_tokens: [] }));
    const { body: tree } = await server.get(`${path('tree')}?tree=true`);
    assert.deepEqual(tree.tree.map((v) => [v.version, v.deleted ?? false]), [[1, true], [4, false], [5, false]]);
  });

  test('a fork lives on the states of its origin, after a restart and when that is deleted', async () => {
    let known = await checked('origin', '', 'a'.repeat(300));
    known = await checked('origin', known, 'b');
    assert.equal((await server.post(`${path('origin')}/fork`, { to: 'heir' })).status, 200);
    assert.equal((await server.stop()).code, 0);
    server = await serve(...options);
    assert.equal((await server.fetch(path('origin'), { method: 'DELETE' })).status, 200);
    assert.equal((await server.get(path('heir'))).body.tier, 'disk');
    assert.equal(answered(await raw('heir', 'c')), await fresh(`${known}\n\nc`));
    const { sessions: s } = await server.counters(() => true);
    assert.deepEqual([s.rebuilt, s.states.loaded], [0, 1]); // nothing was fed again
    assert.equal((await server.fetch(path('heir'), { method: 'DELETE' })).status, 200);
  });

  test('nothing is kept where the request says so', async () => {
    const known = await checked('free', '', 'x');
    const answer = await raw('free', 'y', { store: false });
    assert.equal(answered(answer), await fresh(`${known}\n\ny`));
    assert.deepEqual(answer.body.session, { id: 'free', version: 1, stored: false });
    await checked('free', known, 'z');
  });

  const sessions = 64;
  const turns = long ? 50 : 6;
  test(`${sessions} sessions over ${turns} turns, with restarts, are each one uninterrupted run`, { timeout: 3000000 }, async () => {
    const known = Array(sessions).fill('');
    for (let t = 0; t < turns; ++t) {
      if (t === 2 || (t > 0 && t % 20 === 0)) {
        assert.equal((await server.stop()).code, 0);
        server = await serve(...options);
      }
      await Promise.all(known.map(async (text, s) => (known[s] = await checked(`many ${s}`, text, `s${s} t${t}`))));
      if (t % 3 === 1) {
        const fork = await server.post(`${path(`many ${t}`)}/fork`, { to: `fork ${t}` });
        assert.equal(fork.status, 200);
        await checked(`fork ${t}`, known[t], 'aside');
      }
    }
  });

  test('an answer that ended at its limit can be continued', async () => {
    const prompt = 'limited';
    const first = await raw('limited', prompt, { max_tokens: 5 });
    assert.equal(first.body.choices[0].finish_reason, 'length');
    const more = { session_id: 'limited', continue: true, temperature: 0, max_tokens: 4 };
    const rest = await server.post('/v1/completions', more);
    assert.equal(answered(rest), await fresh(prompt + answered(first), { max_tokens: 4 }));
    assert.equal(rest.body.session.version, 2);
    const headers = { 'idempotency-key': 'once' };
    const [a, b] = [await server.post('/v1/completions', more, headers), await server.post('/v1/completions', more, headers)];
    assert.deepEqual([a.body.session.version, b.body.session.version], [3, 3]); // not once more
    assert.equal(b.headers.get('idempotent-replayed'), 'true');
    assert.equal(answered(await raw('limited', 'next')), await fresh(`${prompt}${answered(first)}${answered(rest)}${answered(a)}\n\nnext`));
    assert.equal((await server.post('/v1/completions', { ...more, session_id: 'origin 2' })).status, 404);
  });

  test('titles and metadata are in the list, and survive restarts and forks', async () => {
    await raw('titled', '  What a day!\nAnd more.');
    const listed = async (id) => (await server.get('/v1/sessions?limit=1000')).body.data.find((s) => s.id === id);
    assert.deepEqual([(await listed('titled')).title, (await listed('titled')).metadata], ['What a day!', {}]);
    const named = await server.post(path('titled'), { title: 'A day', metadata: { colour: 'blue' } });
    assert.deepEqual([named.status, named.body.title, named.body.metadata], [200, 'A day', { colour: 'blue' }]);
    await raw('titled', 'Later.');
    assert.equal((await server.post(path('titled'), { metadata: {} })).body.title, 'A day');
    await server.post(path('titled'), { metadata: { colour: 'red' } });
    assert.equal((await server.post(`${path('titled')}/fork`, { to: 'titled too' })).body.title, 'A day');
    assert.equal((await server.stop()).code, 0);
    server = await serve(...options);
    for (const id of ['titled', 'titled too'])
      assert.deepEqual([(await listed(id)).title, (await listed(id)).metadata], ['A day', { colour: 'red' }]);
    for (const wrong of [{}, { title: '' }, { title: 5 }, { title: 'x'.repeat(257) }, { metadata: [] }])
      assert.equal((await server.post(path('titled'), wrong)).status, 400, JSON.stringify(wrong));
    assert.equal((await server.post(path('nobody'), { title: 'x' })).status, 404);
  });

  test('an answer that a drain ends can be continued after it', async () => {
    await server.stop();
    server = await serve(...options, '--set', 'drain.timeout_ms=0');
    const prompt = 'endless';
    const response = await server.fetch('/v1/completions', {
      method: 'POST',
      body: JSON.stringify({ session_id: 'drained', prompt, temperature: 0, max_tokens: 1000000, stream: true }),
    });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = (await reader.read()).value;
    server.process.kill('SIGTERM');
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value;
    assert.equal((await server.end()).code, 0);
    const events = text.split('\n\n').filter((e) => e.startsWith('data: {')).map((e) => JSON.parse(e.slice(6)));
    const said = events.map((e) => e.choices[0].text).join('');
    assert.equal(events.at(-1).rwkv.stop_reason, 'drain');
    assert.equal(events.at(-1).session.unfinished, true);

    server = await serve(...options);
    const rest = await server.post('/v1/completions', { session_id: 'drained', continue: true, temperature: 0, max_tokens: 9 });
    assert.equal(answered(rest), await fresh(prompt + said, { max_tokens: 9 }));
    assert.equal(answered(await raw('drained', 'next')), await fresh(`${prompt}${said}${answered(rest)}\n\nnext`));
  });
});
