// The turns of a conversation from its start to the shown version, and the running answers.
import { questionOf } from './conversation.js';
import { framed, h, icon, iconButton } from './dom.js';
import { copy, showMarkdown } from './render.js';

/** "48 tokens · 310 tokens/s · 24 of 40 cached" */
export function figuresOf(answer) {
  const told = [`${answer.tokens} ${answer.tokens === 1 ? 'token' : 'tokens'}`];
  if (answer.speed > 0) told.push(`${answer.speed.toFixed(answer.speed < 10 ? 1 : 0)} tokens/s`);
  if (answer.memory) told.push(`${answer.memory.cached} of ${answer.memory.all} cached`);
  return told.join(' · ');
}

/** The text of an answer with its reasoning; both may grow. */
function answerBody() {
  const thoughts = h('div', { class: 'prose' });
  const summary = h('summary', {}, 'Thoughts');
  const think = h('details', { class: 'think', hidden: true }, summary, thoughts);
  const prose = h('div', { class: 'prose' });
  const show = (text, reasoning, runs) => {
    think.hidden = !reasoning;
    summary.textContent = runs && !text ? 'Thinking…' : 'Thoughts';
    if (reasoning) showMarkdown(thoughts, reasoning);
    showMarkdown(prose, text);
  };
  return { parts: [think, prose], show };
}

export class ThreadView {
  #conversation = null;
  #running = []; // { answer, show }
  #follows = true;
  #update = framed(() => this.#showRunning());

  /** `act`: the actions of the buttons: edit, again, goOn, fork, rollBack, goTo, retry. */
  constructor(root, act) {
    this.root = root;
    this.act = act;
    root.addEventListener('scroll', () => {
      this.#follows = root.scrollHeight - root.scrollTop - root.clientHeight < 48;
    });
  }

  moved() {
    this.#update();
  }

  show(conversation) {
    if (conversation !== this.#conversation) this.#follows = true;
    this.#conversation = conversation;
    const focused = this.root.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const { path, asked } = conversation;
    this.#running = [];
    const turns = path.map((version, i) => this.#turn(version, i, i === path.length - 1 && !asked));
    if (asked) turns.push(this.#asked(asked));
    this.root.replaceChildren(turns.length ? h('div', { class: 'turns' }, turns) : welcome());
    this.#showRunning();
    if (focused) this.root.querySelector(`[data-key="${focused}"]`)?.focus();
  }

  /** Scrolls to the end and keeps it visible as it grows. */
  follow() {
    this.#follows = true;
    this.#scroll();
  }
  #scroll() {
    if (this.#follows) this.root.scrollTop = this.root.scrollHeight;
  }

  #turn(version, index, last) {
    const parts = [h('h2', { class: 'unseen' }, `Turn ${index + 1}`), this.#said(version, index)];
    const { choice } = this.#conversation;
    if (last && choice?.includes(version.version)) {
      parts.push(this.#choice(choice, version.version));
    } else {
      const body = answerBody();
      body.show(version.answer ?? '', version.reasoning_content ?? '', false);
      parts.push(h('div', { class: 'answer' }, body.parts));
    }
    parts.push(this.#ending(version, last), this.#tools(version, index, last));
    return h('article', { class: 'turn', 'data-version': version.version }, parts);
  }

  #said(version, index) {
    const messages = version.messages?.length ? version.messages : [{ role: 'user', content: version.prompt ?? '' }];
    const bubbles = messages.map((m) =>
      m.role === 'user'
        ? h('div', { class: 'said' }, m.content)
        : h('details', { class: 'think' }, h('summary', {}, m.role === 'assistant' ? 'Earlier answer' : 'Instructions'), h('div', { class: 'plain-text' }, m.content)));
    const place = h('div', { class: 'question' }, bubbles);
    if (version.messages?.length && this.#conversation.canGoOn) {
      const begin = () => this.#edit(place, version);
      place.append(iconButton('edit', 'Edit this message', begin, { class: 'quiet edit', 'data-key': `${index}-edit` }));
    }
    return place;
  }

  #edit(place, version) {
    const before = [...place.childNodes];
    const done = () => place.replaceChildren(...before);
    const text = h('textarea', { rows: Math.min(10, questionOf(version).split('\n').length + 1), value: questionOf(version), 'aria-label': 'Edit this message' });
    const send = () => {
      if (text.value.trim()) this.act.edit(version, text.value.trim());
    };
    text.addEventListener('keydown', (e) => {
      if (e.key === 'Escape') {
        e.stopPropagation();
        done();
      }
      if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
        e.preventDefault();
        send();
      }
    });
    place.replaceChildren(h('div', { class: 'editing' }, text, h('div', { class: 'row' },
      h('button', { type: 'button', class: 'plain', onclick: done }, 'Cancel'),
      h('button', { type: 'button', class: 'strong', onclick: send }, 'Send'))));
    text.focus();
    text.setSelectionRange(text.value.length, text.value.length);
  }

  /** Alternative answers to one question, side by side; the user continues from one of them. */
  #choice(versions, chosen) {
    return h('div', { class: 'answers' }, versions.map((number, i) => {
      const body = answerBody();
      const version = this.#conversation.texts.get(number);
      body.show(version?.answer ?? '', version?.reasoning_content ?? '', false);
      return h('section', { class: `answer ${number === chosen ? 'chosen' : ''}`, 'aria-label': `Answer ${i + 1}` },
        h('header', {}, h('h3', {}, `Answer ${i + 1}`),
          h('button', { type: 'button', class: 'plain', 'aria-pressed': String(number === chosen), 'data-key': `choose-${i}`,
            onclick: () => this.act.goTo(number) }, number === chosen ? 'Selected' : 'Use this answer')),
        body.parts);
    }));
  }

  #ending(version, last) {
    const cut = version.finish_reason === 'length' && !version.stop_reason;
    if (!version.unfinished && !cut) return null;
    return h('p', { class: 'ending' }, cut ? 'Stopped at the token limit. ' : 'Interrupted here. ', last && version.response_id
      ? h('button', { type: 'button', class: 'plain', 'data-key': 'go-on', onclick: () => this.act.goOn(version) }, icon('on'), 'Continue') : null);
  }

  #tools(version, index, last) {
    const { versions, results, canGoOn } = this.#conversation;
    const number = version.version;
    const siblings = versions.siblings(number);
    const at = siblings.indexOf(number);
    const step = (name, label, to) => iconButton(name, label, () => this.act.goTo(versions.newestBelow(siblings[to])),
      { disabled: siblings[to] === undefined, 'data-key': `${index}-${name}` });
    const button = (name, label, act) => iconButton(name, label, act, { 'data-key': `${index}-${name}` });
    const copies = button('copy', 'Copy the answer', () => copy(version.answer ?? '', copies));
    const result = results.get(version.response_id);
    return h('footer', { class: last ? 'tools last' : 'tools' },
      siblings.length > 1 ? h('span', { class: 'branches' }, step('left', 'Previous branch', at - 1),
        h('span', {}, `${at + 1} / ${siblings.length}`), step('right', 'Next branch', at + 1)) : null,
      copies,
      version.messages?.length && canGoOn ? button('again', 'Regenerate the answer', () => this.act.again(version)) : null,
      button('fork', 'Fork a new conversation from here', () => this.act.fork(number)),
      last && this.#conversation.session?.head === number ? null : button('back', 'Roll back to here', () => this.act.rollBack(number)),
      h('span', { class: 'figures' }, result ? figuresOf(result) : `${tokensOf(version, versions)} tokens`));
  }

  #asked({ input, answers }) {
    const questions = input.filter((m) => m.role === 'user').map((m) => h('div', { class: 'said' }, m.content));
    const views = answers.map((answer, i) => this.#runningAnswer(answer, answers.length > 1 ? `Answer ${i + 1}` : null));
    return h('article', { class: 'turn running' }, h('h2', { class: 'unseen' }, 'Current turn'),
      h('div', { class: 'question' }, questions),
      answers.length > 1 ? h('div', { class: 'answers' }, views) : views);
  }

  #runningAnswer(answer, name) {
    const body = answerBody();
    const figures = h('span', { class: 'figures' });
    const place = h('section', { class: 'answer live', 'aria-busy': 'true', 'aria-label': name ?? 'Answer' }, name ? h('header', {}, h('h3', {}, name)) : null,
      body.parts, figures);
    const show = () => {
      body.show(answer.text, answer.reasoning, !answer.over);
      place.dataset.status = answer.status;
      place.setAttribute('aria-busy', String(!answer.over));
      if (answer.status === 'failed') {
        figures.replaceChildren(h('span', { class: 'trouble', role: 'alert' }, answer.error), ' ',
          h('button', { type: 'button', class: 'plain', onclick: () => this.act.retry() }, icon('again'), 'Try again'));
      } else if (answer.status === 'reconnecting') {
        figures.textContent = 'Waiting for the server…';
      } else {
        figures.textContent = answer.tokens ? figuresOf(answer) : 'Waiting for the first token…';
      }
    };
    this.#running.push({ answer, show });
    return place;
  }

  #showRunning() {
    for (const { show } of this.#running) show();
    this.#scroll();
  }
}

function tokensOf(version, versions) {
  const before = versions.get(version.parent)?.total_tokens ?? 0;
  return Math.max(0, version.total_tokens - before - version.prompt_tokens);
}

function welcome() {
  return h('div', { class: 'welcome' }, h('h2', {}, 'What shall we talk about?'),
    h('p', {}, 'Every turn is kept. Edit a message, regenerate an answer or go back: all versions stay in the tree.'));
}
