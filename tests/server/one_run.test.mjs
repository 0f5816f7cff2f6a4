// Sessions of real models, more than there are slots: before every turn their states have left the device for RAM or
// disk, or are lost; the server ends in order or is killed; sessions are forked. Then one run over all
// tokens of a session, in one prompt and with no session at all, must find the same log-probability, to the last digit
// of its float, for every token of every answer, and must like no token more. SKEIN_LONG=1: the long form.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { noOracle, serve, serveTiny, short } from './support.mjs';

const long = process.env.SKEIN_LONG === '1';
const [sessions, turns] = long ? [64, 50] : short ? [6, 7] : [12, 12];
const turnsOfLife = long ? 4 : 2;

// What a state meets between two turns, in one life of the server after another.
const lives = [
  { sends: 'disk', set: ['sessions.ram_states_max=1', 'sessions.write_behind_ms=0', 'engine.vram_states_max=0'] },
  { sends: 'log', set: ['sessions.ram_states_max=1', 'sessions.disk_states_max=1', 'engine.vram_states_max=0'] },
  { sends: 'slots', set: ['sessions.ram_states_max=2', 'sessions.write_behind_ms=0'] },
];
// What the server counted of it.
const seen = {
  disk: ({ sessions: s }) => s.states.loaded,
  log: ({ sessions: s }) => s.rebuilt,
  slots: ({ sessions: s }) => s.states.vram,
};

const models = [
  {
    name: 'the tiny model',
    skip: noOracle,
    start: serveTiny,
    ask: (s, t) => `${s} asks ${'again and '.repeat((s + t) % 4)}again.`,
  },
  {
    name: 'the demo model',
    skip: false,
    start: (...options) => serve('--device', 'cpu', ...options),
    ask: (s, t) =>
      `User: ${[`My name is Anna and I am ${s + 20}.`, `What is ${s} + ${t}?`, 'What is my name?', 'What is Skein?', 'Thank you!'][t % 5]}\n\nAssistant:`,
  },
];

for (const { name, skip, start, ask } of models)
  describe(`${sessions} sessions of ${name} over ${turns} turns`, { skip, timeout: 3000000 }, () => {
    const folder = mkdtempSync(join(tmpdir(), 'skein-one-run-'));
    let server;
    after(async () => {
      await server?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    const begin = async (life) => {
      const settings = ['drain.grace_ms=0', ...life.set].flatMap((s) => ['--set', s]);
      server = await start('--state-dir', folder, '--slots', '4', ...settings);
    };
    const complete = async (body) => {
      const answer = await server.post('/v1/completions', { temperature: 0, logprobs: 1, ...body });
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      return answer.body;
    };
    const tokensOf = async (content) => (await server.post('/tokenize', { content })).body.tokens;
    const ids = new Map(); // of tokens, by their text
    async function idOf(text) {
      if (!ids.has(text)) ids.set(text, await tokensOf(text));
      assert.equal(ids.get(text).length, 1, `${JSON.stringify(text)} is one token`);
      return ids.get(text)[0];
    }

    /** One turn; what it added to the session is remembered as tokens, and as what was said of those of the answer. */
    async function turn(known, t) {
      const prompt = ask(known.number, t);
      const { choices } = await complete({ session_id: known.id, prompt, max_tokens: 6 + ((known.number + t) % 5) });
      const { tokens, token_logprobs } = choices[0].logprobs;
      known.tokens.push(...(await tokensOf((known.tokens.length > 0 ? '\n\n' : '') + prompt)));
      for (const [i, text] of tokens.entries()) {
        if (text === '') continue; // the end of text is scored, but not said
        known.answers.push({ at: known.tokens.length, text, logprob: token_logprobs[i] });
        known.tokens.push(await idOf(text));
      }
    }

    /** All of a session in one prompt. */
    async function checkOneRun({ id, tokens, answers }) {
      const { choices } = await complete({ prompt: tokens, max_tokens: 0, echo: true, use_prefix_cache: false });
      const { token_logprobs, top_logprobs } = choices[0].logprobs;
      assert.equal(token_logprobs.length, tokens.length);
      for (const { at, text, logprob } of answers) {
        const where = `${id}: token ${at} of ${tokens.length}, ${JSON.stringify(text)}`;
        assert.equal(token_logprobs[at], logprob, where);
        assert.equal(Math.max(...Object.values(top_logprobs[at])), logprob, where);
      }
    }

    test('each is one uninterrupted run', async () => {
      const all = Array.from({ length: sessions }, (_, number) => ({ number, id: `session ${number}`, tokens: [], answers: [] }));
      const counted = { disk: 0, log: 0, slots: 0 };
      await begin(lives[0]);
      for (let t = 0; t < turns; ++t) {
        await Promise.all(all.map((known) => turn(known, t)));
        if (t % 3 === 1) {
          const from = all[t % sessions];
          const id = `fork of ${from.id} at ${t}`;
          assert.equal((await server.post(`/v1/sessions/${encodeURIComponent(from.id)}/fork`, { to: id })).status, 200);
          all.push({ ...from, number: from.number + 100, id, tokens: [...from.tokens], answers: [...from.answers] });
        }
        if ((t + 1) % turnsOfLife > 0 || t + 1 === turns) continue;
        const life = (t + 1) / turnsOfLife;
        const { sends } = lives[(life - 1) % lives.length];
        // The last states of a life may still be on their way to where they are kept.
        counted[sends] += seen[sends](await server.counters((now) => seen[sends](now) > 0));
        const { code, signal } = await server.stop(life % 2 === 0 ? 'SIGKILL' : 'SIGTERM');
        assert.deepEqual([code, signal], life % 2 === 0 ? [null, 'SIGKILL'] : [0, null]);
        await begin(lives[life % lives.length]);
      }
      for (const [what, count] of Object.entries(counted)) assert.ok(count > 0, `${what}: ${JSON.stringify(counted)}`);
      assert.ok(all.every(({ answers }) => answers.length > turns));
      for (const known of all) await checkOneRun(known);
    });
  });
