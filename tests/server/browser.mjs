// A browser for tests of the chat page: Debian's Chromium, driven by playwright-core. Whatever a page complains about or
// asks of others is kept, so that a test can show that there was nothing.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { chromium } from 'playwright-core';
import { binary } from './support.mjs';

const program = process.env.SKEIN_CHROMIUM ?? '/usr/bin/chromium';
export const noBrowser = existsSync(program) ? false : `no ${program}: set SKEIN_CHROMIUM`;

/** Where pictures of the page are left to be looked at. */
const pictures = process.env.SKEIN_PICTURES ?? join(dirname(binary), 'pictures');

const patience_ms = 60000;

export class Browser {
  static async start(...flags) {
    const browser = new Browser();
    browser.chromium = await chromium.launch({ executablePath: program, args: ['--no-sandbox', '--disable-gpu', ...flags] });
    return browser;
  }

  /** A page of its own, with nothing kept in it, at the server's address. */
  async open(server, options = {}) {
    const context = await this.chromium.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', ...options });
    context.setDefaultTimeout(patience_ms);
    const page = await context.newPage();
    const seen = new Page(page, server.url);
    await page.goto(server.url);
    return seen;
  }

  /** Opens a page for one test, which must end without complaints but `expected` ones. */
  async with(server, work, { expected = /^$/, ...options } = {}) {
    const p = await this.open(server, options);
    try {
      await work(p, p.page);
      assert.deepEqual(p.troubles.filter((t) => !expected.test(t)), []);
      assert.deepEqual(p.strangers, []);
    } catch (trouble) {
      await p.picture('failed');
      throw trouble;
    } finally {
      await p.close();
    }
  }

  async close() {
    await this.chromium.close();
  }
}

export class Page {
  troubles = []; // what its console said of errors
  strangers = []; // requests to other places
  sockets = 0; // WebSockets that were opened

  constructor(page, url) {
    this.page = page;
    page.on('console', (m) => m.type() === 'error' && this.troubles.push(m.text()));
    page.on('pageerror', (e) => this.troubles.push(e.stack));
    page.on('websocket', () => ++this.sockets);
    page.on('request', (r) => {
      if (!/^(blob|data):/.test(r.url()) && new URL(r.url()).origin !== new URL(url).origin) this.strangers.push(r.url());
    });
  }

  /** Says something, and waits until all its answers are there. */
  async say(text) {
    const turns = await this.turns.count();
    await this.page.locator('#message').fill(text);
    await this.page.keyboard.press('Enter');
    await this.turn(turns).locator('.said').waitFor();
    await this.settled();
  }
  /** Waits until no answer runs. */
  async settled() {
    await this.page.locator('.turn.running').waitFor({ state: 'detached' });
    await this.page.locator('#send[data-stops=false]').waitFor();
  }

  get turns() {
    return this.page.locator('.turn');
  }
  turn(index) {
    return this.turns.nth(index);
  }
  /** Texts of the answers in sight. */
  async answers() {
    return await this.page.locator('.turn .answer > .prose').allInnerTexts();
  }
  async lastAnswer() {
    return (await this.answers()).at(-1);
  }
  /** A button below a turn, which shows when the mouse is there. */
  async press(index, name) {
    await this.turn(index).hover();
    await this.turn(index).getByRole('button', { name }).click();
  }

  async picture(name) {
    mkdirSync(pictures, { recursive: true });
    await this.page.screenshot({ path: join(pictures, `${name}.png`) });
  }

  async close() {
    await this.page.context().close();
  }
}

/** Fills in settings, by their labels. */
export async function set(p, values) {
  await p.page.getByRole('button', { name: 'Settings' }).click();
  for (const [label, value] of Object.entries(values)) await p.page.getByLabel(label, { exact: true }).fill(value);
  await p.page.getByRole('button', { name: 'Close' }).click();
}
/** Settings with which answers are the same each time. */
export const greedy = { Temperature: '0', 'Presence penalty': '0', 'Frequency penalty': '0' };
