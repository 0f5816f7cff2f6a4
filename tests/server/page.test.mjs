// The chat page in a real browser, with the demo model: the actions of a user, and that nothing is lost whatever the
// server does meanwhile.
import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Browser, greedy, noBrowser, set } from './browser.mjs';
import { noOracle, oracle, serve, serveTiny } from './support.mjs';

const options = { skip: noBrowser };
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const directory = mkdtempSync(join(tmpdir(), 'skein-page-'));
let server;
let browser;


before(async () => {
  if (noBrowser) return;
  [server, browser] = await Promise.all([serve('--state-dir', directory, '--set', 'drain.grace_ms=0'), Browser.start()]);
});
after(async () => {
  await browser?.close();
  if (server) assert.equal((await server.stop()).code, 0);
  rmSync(directory, { recursive: true, force: true });
});

/** No finding of axe that is worse than moderate. */
async function accessible(p, where) {
  await p.page.evaluate(axe);
  const { violations } = await p.page.evaluate(() => globalThis.axe.run());
  const bad = violations.filter((v) => ['serious', 'critical'].includes(v.impact));
  assert.deepEqual(bad.map((v) => `${where}: ${v.id}: ${v.nodes.map((n) => `${n.html} ${n.failureSummary}`).join('; ')}`), []);
}

test('a conversation of five turns recalls a fact, and is there when the page comes back', options, async () => {
  await browser.with(server, async (p, page) => {
    await p.picture('empty');
    await accessible(p, 'empty');
    await set(p, greedy);
    await p.say('My name is Clara and my favourite colour is green.');
    await p.say('What is 31 + 20?');
    await p.say('What is 42 + 11?');
    await p.say('What is Skein?');
    await p.say('What is my name?');
    const answers = await p.answers();
    assert.equal(answers.length, 5);
    assert.equal(p.sockets, 5);
    assert.match(answers[1], /51/);
    assert.match(answers[4], /Clara/);
    const [, cached, all] = /^\d+ tokens .*\b(\d+) of (\d+) cached$/.exec(await p.turn(4).locator('.figures').innerText());
    assert.ok(Number(cached) > 50 && Number(all) - Number(cached) < 20, `${cached} of ${all}`);
    assert.match(await page.locator('#facts').innerText(), /\d+ tokens · state [1-9]\d* KiB( on the device| in memory| on disk)?$/);
    await p.picture('five-turns');
    await accessible(p, 'five turns');
    await page.reload();
    await p.turn(4).waitFor();
    assert.deepEqual(await p.answers(), answers);
    await page.locator('#list').getByText('My name is Clara').first().waitFor();
  });
});

test('the message box has the focus at first, and the skip link leads there from an open conversation', options, async () => {
  const focused = (page) => page.evaluate(() => document.activeElement.id);
  await browser.with(server, async (p, page) => {
    await page.getByText('What shall we talk about?').waitFor();
    assert.equal(await focused(page), 'message');
    await set(p, greedy);
    await p.say('My name is Clara and my favourite colour is green.');
    const address = page.url();
    await page.locator('.skip').focus();
    await page.keyboard.press('Enter');
    assert.equal(await focused(page), 'message');
    assert.equal(page.url(), address);
    assert.equal((await p.answers()).length, 1);
  });
});

test('an empty setting is the model default beside any other', options, async () => {
  await browser.with(server, async (p, page) => {
    const means = (label) => page.getByLabel(label, { exact: true }).getAttribute('placeholder');
    await page.getByRole('button', { name: 'Settings' }).click();
    assert.equal(await means('Top p'), 'model default');
    await page.getByLabel('Temperature', { exact: true }).fill('0.5');
    assert.deepEqual([await means('Top p'), await means('Top k'), await means('Presence penalty')], Array(3).fill('model default'));
    await page.getByLabel('Temperature', { exact: true }).fill('');
    assert.equal(await means('Top p'), 'model default');
  });
});

test('an answer that was cut at the limit goes on, and is one answer', options, async () => {
  await browser.with(server, async (p, page) => {
    await set(p, { ...greedy, 'Maximum tokens': '6' });
    await p.say('Tell me a story about a dog.');
    await page.getByText('Stopped at the token limit.').waitFor();
    await p.picture('cut');
    const cut = await p.lastAnswer();
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.locator('.turn:not(.running) .figures', { hasText: /^12 tokens/ }).waitFor();
    const longer = await p.lastAnswer();
    assert.ok(longer.startsWith(cut) && longer.length > cut.length, `${cut} | ${longer}`);
    await page.reload();
    await p.turn(0).waitFor();
    assert.equal(await p.lastAnswer(), longer);
    assert.equal(await p.turns.count(), 1);
    assert.equal(await page.getByText('2 / 2').count(), 0);
    await page.getByRole('button', { name: 'New', exact: true }).click();
    await set(p, { ...greedy, 'Maximum tokens': '' });
    await p.say('Tell me a story about a dog.');
    assert.ok((await p.lastAnswer()).startsWith(longer));
  });
});

test('a conversation is called by its beginning, or as one likes', options, async () => {
  await browser.with(server, async (p, page) => {
    await p.say('Where do geese sleep?');
    await page.locator('#list [aria-current]', { hasText: 'Where do geese sleep?' }).waitFor();
    await page.getByRole('button', { name: 'Rename this conversation' }).click();
    await accessible(p, 'renaming');
    await page.getByLabel('Title').fill('On <b>geese</b>');
    await page.keyboard.press('Enter');
    await page.locator('#title', { hasText: 'On <b>geese</b>' }).waitFor();
    await page.reload();
    await page.locator('#list [aria-current]', { hasText: 'On <b>geese</b>' }).waitFor();
    assert.equal(await page.locator('#title').innerText(), 'On <b>geese</b>');
  });
});

test('edits and new answers are branches, and the tree leads to each', options, async () => {
  await browser.with(server, async (p, page) => {
    await set(p, greedy);
    await p.say('My name is Tom.');
    await p.say('What is 20 + 22?');
    await p.press(1, 'Edit this message');
    await page.locator('.editing textarea').fill('What is 10 + 15?');
    await page.keyboard.press('Enter');
    await page.locator('.turn:not(.running) .said', { hasText: '10 + 15' }).waitFor();
    assert.match(await p.lastAnswer(), /25/);
    assert.match(await p.turn(1).innerText(), /2 \/ 2/);
    await p.press(1, 'Regenerate the answer');
    await page.getByText('3 / 3').waitFor();
    await page.keyboard.press('Alt+ArrowLeft');
    await page.getByText('2 / 3').waitFor();
    await page.keyboard.press('Alt+ArrowLeft');
    await page.getByText('1 / 3').waitFor();
    assert.match(await p.lastAnswer(), /42/);

    await page.keyboard.press('Alt+KeyT');
    const tree = page.getByRole('tree');
    assert.equal(await tree.getByRole('treeitem').count(), 4);
    assert.match(await tree.locator('[aria-selected=true]').innerText(), /20 \+ 22/);
    await tree.locator('[aria-selected=true]').focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByText('2 / 3').waitFor();
    assert.match(await p.lastAnswer(), /25/);
    await tree.getByRole('treeitem').first().click(); // one may go on from any of them
    await p.turn(1).waitFor({ state: 'detached' });
    await p.say('What is my name?');
    assert.match(await p.lastAnswer(), /Tom/);
    assert.equal(await tree.getByRole('treeitem').count(), 5);
    await accessible(p, 'branches');
    await p.picture('branches');
  });
});

test('a fork goes its own way, and one goes back', options, async () => {
  await browser.with(server, async (p, page) => {
    await set(p, greedy);
    await p.say('My name is Anna.');
    await p.say('What is 11 + 11?');
    const origin = page.url();
    await p.press(0, 'Fork');
    await page.waitForURL((url) => url.href !== origin);
    await p.turn(1).waitFor({ state: 'detached' });
    await p.say('What is my name?');
    assert.match(await p.lastAnswer(), /Anna/);
    await page.goBack();
    await page.getByText('What is 11 + 11?').waitFor();
    assert.equal(await p.turns.count(), 2);

    await p.press(0, 'Roll back');
    await p.turn(1).waitFor({ state: 'detached' });
    await page.reload();
    await p.turn(0).waitFor();
    assert.equal(await p.turns.count(), 1); // also for the server
    await page.getByRole('button', { name: 'Delete this conversation' }).click();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByText('What shall we talk about?').waitFor();
    const known = (await server.get('/v1/sessions')).body.data.map((s) => s.id);
    assert.ok(!known.some((id) => origin.includes(id)));
  });
});

test('several answers side by side, to go on from one', options, async () => {
  await browser.with(server, async (p, page) => {
    await p.say('My name is Ben.');
    await page.getByLabel('Answers').selectOption('8');
    await p.say('Tell me a story about a dog.');
    assert.equal(await page.locator('.answers .answer').count(), 8);
    const answers = await p.answers();
    assert.ok(new Set(answers.slice(1)).size > 1);
    await page.getByRole('button', { name: 'Use this answer' }).nth(2).click();
    await page.locator('.answer.chosen', { has: page.getByText('Answer 4') }).waitFor();
    await p.picture('side-by-side');
    await accessible(p, 'side by side');
    assert.equal(await page.getByLabel('Answers').inputValue(), '1'); // eight were wished for that prompt alone
    await p.say('What is my name?');
    assert.deepEqual((await p.answers()).slice(0, 2), [answers[0], answers[4]]);
    assert.match(await p.turn(1).innerText(), /[1-8] \/ 8/); // they began in any order
  });
});

test('a conversation leaves as a file and comes back', options, async () => {
  await browser.with(server, async (p, page) => {
    await set(p, greedy);
    await p.say('My name is Eva.');
    const [download] = await Promise.all([
      page.waitForEvent('download'), page.getByRole('button', { name: 'Export this conversation' }).click()]);
    assert.equal(download.suggestedFilename(), 'My name is Eva.session');
    const file = await download.path();
    const origin = page.url();
    const [chooser] = await Promise.all([
      page.waitForEvent('filechooser'), page.getByRole('button', { name: 'Import a conversation' }).click()]);
    await chooser.setFiles(file);
    await page.waitForURL((url) => url.href !== origin);
    await p.turn(0).waitFor();
    await p.say('What is my name?');
    assert.match(await p.lastAnswer(), /Eva/);
  });
});

test('a message that is sent while a conversation loads goes into that conversation', options, async () => {
  await browser.with(server, async (p, page) => {
    await set(p, greedy);
    await p.say('My name is Nora.');
    const nora = page.url();
    await page.keyboard.press('Alt+KeyN');
    await p.say('My name is Otto.');
    await page.route(/tree=true/, async (route) => {
      await new Promise((done) => setTimeout(done, 500));
      await route.continue();
    });
    await page.locator('#list').getByText('My name is Nora.').click();
    await page.waitForURL(nora);
    await page.locator('#message').fill('What is my name?');
    await page.keyboard.press('Enter');
    await p.turn(1).locator('.said').waitFor();
    await p.settled();
    assert.equal(page.url(), nora);
    assert.match(await p.lastAnswer(), /Nora/);
    // Of two that are chosen, the later one is shown, even if the earlier one arrives last.
    await page.unroute(/tree=true/);
    await page.keyboard.press('Alt+KeyN');
    await page.route(/tree=true/, async (route) => {
      if (nora.includes(/sessions\/([^?]+)/.exec(route.request().url())[1])) await new Promise((done) => setTimeout(done, 500));
      await route.continue();
    });
    const late = page.waitForResponse((r) => r.url().includes('transcript=true') && nora.includes(/sessions\/([^?]+)/.exec(r.url())[1]));
    await page.locator('#list').getByText('My name is Nora.').click();
    await page.locator('#list').getByText('My name is Otto.').click();
    await late;
    await p.turn(0).getByText('My name is Otto.').waitFor();
    assert.equal(await p.turns.count(), 1);
  });
});

test('a session of another client is shown, and goes on in a copy', options, async () => {
  await server.post('/v1/chat/completions', { session_id: 'of another client', messages: [{ role: 'user', content: 'My name is Paul.' }] });
  await browser.with(server, async (p, page) => {
    await page.locator('#list').getByText('My name is Paul.').click();
    await page.getByText('of another client').waitFor();
    await p.turn(0).waitFor();
    await p.say('What is my name?');
    assert.match(await p.lastAnswer(), /Paul/);
    const { body } = await server.get('/v1/sessions/of%20another%20client');
    assert.equal(body.versions, 1);
  });
});

test('a conversation stays with its tuned state', { skip: noBrowser || noOracle }, async () => {
  copyFileSync(join(oracle, 'models/state-tiny-7v0.pth'), join(directory, 'poet.pth'));
  const tiny = await serveTiny('--states-dir', directory, '--set', 'model.tuned_states=poet=poet.pth', '--set', 'drain.grace_ms=0');
  try {
    await browser.with(tiny, async (p, page) => {
      const model = page.getByLabel('Model');
      await set(p, { 'Maximum tokens': '8' });
      await model.selectOption('tiny poet');
      await p.say('The sea.');
      await page.keyboard.press('Alt+KeyN');
      await model.selectOption('tiny');
      await p.say('The hills.');
      await page.reload();
      await page.locator('#list').getByText('The sea.').click();
      await page.locator('.said', { hasText: 'The sea.' }).waitFor();
      assert.equal(await model.inputValue(), 'tiny poet');
      await p.say('And the sky.');
      assert.equal(await p.turns.count(), 2);
    });
  } finally {
    await tiny.stop();
  }
});

test('another model is loaded by choosing it', { skip: noBrowser || noOracle }, async () => {
  for (const name of ['one', 'two']) copyFileSync(join(oracle, 'models/tiny-7v0.pth'), join(directory, `${name}.pth`));
  const tiny = await serve('--device', 'cpu', '--model-root', directory, '--model', join(directory, 'one.pth'), '--set', 'drain.grace_ms=0');
  try {
    await browser.with(tiny, async (p, page) => {
      await page.locator('#model optgroup[label="Not loaded"] option', { hasText: 'two' }).waitFor({ state: 'attached' });
      assert.equal(await page.getByLabel('Model').inputValue(), 'one');
      await page.getByLabel('Model').selectOption('two');
      await page.getByText('two is loaded.').waitFor();
      await page.reload();
      await page.locator('#model optgroup[label="Loaded"] option', { hasText: 'two' }).waitFor({ state: 'attached' });
      assert.equal(await page.getByLabel('Model').inputValue(), 'two');
    });
  } finally {
    await tiny.stop();
  }
});

test('thoughts are folded', options, async () => {
  await browser.with(server, async (p, page) => {
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByLabel('Think first').selectOption('high');
    await p.say('What is 48 + 37?');
    const thoughts = p.turn(0).locator('details');
    assert.equal(await thoughts.getAttribute('open'), null);
    await thoughts.locator('summary').click();
    assert.ok((await thoughts.locator('.prose').innerText()).length > 0);
    assert.match(await p.lastAnswer(), /85/);
    await p.picture('settings');
    await accessible(p, 'settings');
  });
});

test('text is never markup', options, async () => {
  await browser.with(server, async (p, page) => {
    await p.say('<img src=x onerror="document.title=1"><script>alert(1)</script> My name is Eva.');
    assert.equal(await page.locator('.said img, .said script').count(), 0);
    const made = await page.evaluate(async () => {
      const { showMarkdown } = await import('/web/js/render.js');
      const into = document.createElement('div');
      showMarkdown(into, '<img src=x onerror=alert(1)>\n\n[a](javascript:alert(1)) [b](https://b.example/)\n\n```html\n<script>1</script>\n```\n\n| <b> |\n|---|\n| <i>x</i> |');
      return { tags: [...new Set([...into.querySelectorAll('*')].map((e) => e.tagName))].sort(), links: [...into.querySelectorAll('a')].map((a) => a.href), text: into.textContent };
    });
    assert.ok(!made.tags.some((t) => ['IMG', 'SCRIPT', 'B', 'I'].includes(t)), `${made.tags}`);
    assert.deepEqual(made.links, ['https://b.example/']);
    assert.match(made.text, /<img src=x onerror=alert\(1\)>.*<script>1<\/script>.*<i>x<\/i>/s);
  });
});

test('what the server refuses is said, and may be tried again', options, async () => {
  await browser.with(server, async (p, page) => {
    await set(p, { 'Extra fields': '{"tools": [{"type": "web_search"}]}' });
    await page.locator('#message').fill('My name is Uma.');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: 'tools' }).waitFor();
    await set(p, { 'Extra fields': '' });
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    await p.settled();
    assert.match(await p.lastAnswer(), /Uma/);
  }, { expected: /404 \(/ });
});

test('where no WebSocket comes through, the same goes over plain HTTP', options, async () => {
  await browser.with(server, async (p, page) => {
    await page.evaluate(() => {
      globalThis.WebSocket = class {
        constructor() {
          setTimeout(() => this.onclose({ code: 1006 }));
        }
        close() {}
      };
    });
    await p.say('My name is Olga.');
    await p.say('What is my name?');
    assert.match(await p.lastAnswer(), /Olga/);
    assert.equal(p.sockets, 0);
  }, { expected: /404 \(/ });
});

test('a key is asked for, and goes with sockets and requests', options, async () => {
  const guarded = await serve('--password', 'open~sesame', '--set', 'drain.grace_ms=0');
  try {
    await browser.with(guarded, async (p, page) => {
      await page.locator('#key').fill('wrong');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.locator('#key:invalid').waitFor(); // empty again
      await accessible(p, 'key');
      await page.locator('#key').fill('open~sesame');
      await page.keyboard.press('Enter');
      await page.locator('#model option').first().waitFor({ state: 'attached' });
      await p.say('My name is Ida.');
      await page.reload();
      await p.turn(0).waitFor();
      assert.deepEqual(await page.evaluate(() => [sessionStorage.length, localStorage.getItem('skein.key')]), [1, null]);
    }, { expected: /401/ });
  } finally {
    await guarded.stop();
  }
});

test('at the width of a phone, in the dark', options, async () => {
  await browser.with(server, async (p, page) => {
    await p.say('Tell me a story about a dog.');
    const width = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.equal(width[0], width[1]);
    await p.picture('phone');
    await accessible(p, 'phone');
    await page.getByRole('button', { name: 'Conversations' }).click();
    await page.locator('#sidebar').getByRole('button', { name: 'New' }).waitFor();
    await p.picture('phone-sidebar');
    await page.locator('#sidebar').getByRole('button', { name: 'New' }).click();
    await page.getByText('What shall we talk about?').waitFor();
    await page.getByRole('button', { name: 'Branches' }).click();
    await accessible(p, 'phone with a panel');
  }, { viewport: { width: 360, height: 740 }, colorScheme: 'dark', hasTouch: true });
});
