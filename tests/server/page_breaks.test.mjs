// The chat page when answers are broken off: by the reader, and by a server that is restarted or killed. No token is lost,
// and none is there twice.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Browser, greedy, noBrowser, set } from './browser.mjs';
import { serve, within } from './support.mjs';

const options = { skip: noBrowser };
let server;
let browser;
let expected; // what the server says to the question without any trouble

/** What a browser complains of while its server is away. */
const away = /ERR_|WebSocket connection to|(404|503) \(/;

// An answer that takes some seconds, on a device that is slow on purpose, so that something can happen meanwhile.
const long = { ...greedy, 'Maximum tokens': '1000' };
const question = 'Tell me a story about a dog.';
const directory = mkdtempSync(join(tmpdir(), 'skein-page-'));
const start = (port = 0) => serve('--device', 'fake', '--set', 'engine.fake_tick_us=5000', '--port', `${port}`,
  '--state-dir', directory, '--set', 'drain.timeout_ms=0', '--set', 'drain.grace_ms=0');

before(async () => {
  if (noBrowser) return;
  [server, browser] = await Promise.all([start(), Browser.start()]);
  const { body } = await server.post('/v1/responses', {
    model: 'fake', input: question, temperature: 0, alpha_presence: 0, alpha_frequency: 0, max_output_tokens: 1000, store: false });
  expected = body.output.at(-1).content[0].text;
});
after(async () => {
  await browser?.close();
  if (server) assert.equal((await server.stop()).code, 0);
  rmSync(directory, { recursive: true, force: true });
});

/** The last version, as the server has it, and its text. */
async function stored(p) {
  const id = decodeURIComponent(p.page.url().split('#/c/')[1]);
  const { body } = await server.get(`/v1/sessions/${id}?tree=true`);
  const last = body.tree.at(-1);
  const told = await server.get(`/v1/sessions/${id}?transcript=true&version=${last.version}`);
  return { ...last, answer: told.body.transcript.at(-1).answer };
}
/** Waits until the answer that runs has that many characters. */
const grown = (page, length) =>
  page.waitForFunction((n) => (document.querySelector('.live > .prose')?.textContent.length ?? 0) > n, length);
/** The text of the answer in sight, and as it should be. */
async function shown(page, expected) {
  return await page.evaluate(async (text) => {
    const { showMarkdown } = await import('/web/js/render.js');
    const into = document.createElement('div');
    showMarkdown(into, text);
    return [document.querySelector('.turn .answer > .prose').textContent, into.textContent];
  }, expected);
}

test('an answer is stopped, and goes on to the same end', options, async () => {
  await browser.with(server, async (p, page) => {
    await set(p, long);
    await page.locator('#message').fill(question);
    await page.getByRole('button', { name: 'Send' }).click();
    await grown(page, 100);
    await p.picture('streaming');
    await page.keyboard.press('Escape');
    await page.getByText('Interrupted here.').waitFor();
    const broken = await stored(p);
    assert.ok(broken.unfinished && broken.answer.length < expected.length && expected.startsWith(broken.answer));
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('Stopped at the token limit.').waitFor();
    assert.equal((await stored(p)).answer, expected);
    assert.equal(...(await shown(page, expected)));
    assert.equal(await page.getByText('2 / 2').count(), 0); // it is one answer
  }, { expected: /status of 404/ }); // a new conversation is there when the server has heard that its reader left
});

for (const [how, signal] of [['killed', 'SIGKILL'], ['restarted', 'SIGTERM']]) {
  test(`the server is ${how} in mid-answer: the page waits, and no token is lost`, options, async () => {
    await browser.with(server, async (p, page) => {
      await set(p, long);
      await page.locator('#message').fill(question);
      await page.keyboard.press('Enter');
      await grown(page, 150);
      const { port } = server;
      server.process.kill(signal);
      await server.end();
      await page.getByText('Waiting for the server…').waitFor();
      await page.getByText('The server is unreachable.').waitFor();
      await p.picture(`server-${how}`);
      server = await start(port);
      await p.settled();
      await page.locator('#banner').waitFor({ state: 'hidden' });
      assert.equal((await stored(p)).answer, expected);
      assert.equal(...(await shown(page, expected)));
      assert.equal(await p.turns.count(), 1);
    }, { expected: away });
  });
}

test('several answers, of which some have not begun, get over the ends of two servers', options, async () => {
  await browser.with(server, async (p, page) => {
    await set(p, { 'Maximum tokens': '200' });
    await page.getByLabel('Answers').selectOption('4');
    await page.locator('#message').fill('Tell me a story.');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => [...document.querySelectorAll('.live > .prose')].some((e) => e.textContent.length > 100));
    for (const signal of ['SIGKILL', 'SIGTERM']) {
      const { port } = server;
      server.process.kill(signal);
      await server.end();
      server = await start(port);
      await page.locator('#banner').waitFor({ state: 'hidden' });
    }
    await p.settled();
    assert.equal(await page.locator('.answers .answer').count(), 4);
    await page.getByText('/ 4').waitFor(); // each is there once
    const id = decodeURIComponent(page.url().split('#/c/')[1]);
    const { tree } = (await server.get(`/v1/sessions/${id}?tree=true`)).body;
    assert.equal(tree.filter((v) => !v.unfinished).length, 4);
  }, { expected: away });
});

test('the page is there while the model loads, and comes to life when it is there', options, async () => {
  const { port } = server;
  await browser.with(server, async (p, page) => {
    await set(p, { 'Maximum tokens': '20' });
    server.process.kill('SIGTERM');
    await server.end();
    const next = start(port);
    await page.locator('#message').fill('My name is Ada.');
    await page.keyboard.press('Enter');
    server = await within(next, 'the next server');
    await p.settled();
    assert.ok((await p.lastAnswer()).length > 0);
  }, { expected: away });
});
