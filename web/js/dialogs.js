// Modal dialogs.
import { h } from './dom.js';

function ask(title, content, buttons) {
  return new Promise((done) => {
    const heading = h('h2', { id: 'dialog-title' }, title);
    const row = h('div', { class: 'row' }, buttons.map(([text, value, strong]) =>
      h('button', { type: value === null ? 'button' : 'submit', class: strong ? 'strong' : 'plain', value: value ?? '',
        onclick: value === null ? () => dialog.close('') : null }, text)));
    const dialog = h('dialog', { 'aria-labelledby': 'dialog-title' }, h('form', { method: 'dialog' }, heading, content, row));
    dialog.addEventListener('close', () => {
      dialog.remove();
      done(dialog.returnValue);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

export const confirmed = async (title, text, yes) =>
  (await ask(title, h('p', {}, text), [['Cancel', null], [yes, 'yes', true]])) === 'yes';

/** {key, keep}, or null. */
export async function askForKey() {
  const input = h('input', { type: 'password', id: 'key', autocomplete: 'current-password', required: true, autofocus: true });
  const keep = h('input', { type: 'checkbox', id: 'keep' });
  const content = [
    h('p', {}, 'This server requires a key or password.'),
    h('div', { class: 'field' }, h('label', { for: 'key' }, 'Key'), input),
    h('label', { class: 'check' }, keep, ' Remember it in this browser'),
  ];
  const answer = await ask('Sign in', content, [['Cancel', null], ['Sign in', 'yes', true]]);
  return answer === 'yes' && input.value ? { key: input.value, keep: keep.checked } : null;
}

/** The new title of a conversation, or null. */
export async function askForTitle(title) {
  const input = h('input', { type: 'text', id: 'new-title', maxlength: 80, value: title, required: true, autofocus: true });
  const content = h('div', { class: 'field' }, h('label', { for: 'new-title' }, 'Title'), input);
  const answer = await ask('Rename this conversation', content, [['Cancel', null], ['Rename', 'yes', true]]);
  return answer === 'yes' ? input.value.trim() || null : null;
}

const keys = [
  ['Enter', 'Send'], ['Shift + Enter', 'New line'], ['Esc', 'Stop the answer, or close the open panel'],
  ['↑ in an empty message', 'Edit the last message'], ['Alt + N', 'New conversation'], ['Alt + R', 'Regenerate the answer'],
  ['Alt + ← / →', 'Previous / next branch'], ['Alt + T', 'Branches'], ['Alt + S', 'Settings'], ['?', 'Show this list'],
];
export const showKeys = () =>
  ask('Keyboard shortcuts', h('dl', { class: 'keys' }, keys.map(([key, what]) => [h('dt', {}, h('kbd', {}, key)), h('dd', {}, what)]).flat()),
    [['Close', 'yes', true]]);
