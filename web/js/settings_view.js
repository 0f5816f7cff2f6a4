// The settings panel: a form that validates and saves each value as it is typed.
import { h } from './dom.js';
import { fault, fields, saveSettings } from './settings.js';

function control(field, value, put) {
  const id = `set-${field.name}`;
  const more = { id, 'aria-describedby': `${id}-hint` };
  const typed = (event) => put(event.target.value);
  if (field.kind === 'choice')
    return h('select', { ...more, onchange: typed }, field.choices.map(([v, text]) => h('option', { value: v, selected: v === value }, text)));
  if (field.kind === 'text') return h('textarea', { ...more, rows: 2, value, oninput: typed, spellcheck: 'false' });
  return h('input', { ...more, type: 'number', min: field.min, max: field.max, step: 'any', value, oninput: typed, placeholder: 'model default' });
}

function row(field, values, changed) {
  const hint = h('span', { class: 'hint', id: `set-${field.name}-hint` });
  const input = control(field, values[field.name] ?? '', (value) => {
    values[field.name] = value;
    judge();
    saveSettings(values);
    changed();
  });
  const judge = () => {
    const wrong = fault(field, values[field.name]);
    hint.textContent = wrong ?? field.hint ?? '';
    input.toggleAttribute('aria-invalid', Boolean(wrong));
    if (wrong) input.setAttribute('aria-invalid', 'true');
  };
  judge();
  return h('div', { class: `field ${field.kind}` }, h('label', { for: `set-${field.name}` }, field.label), input, hint);
}

/** Fills the panel. `values` is changed as the user types. */
export function showSettings(into, values, changed) {
  const reset = () => {
    for (const name of Object.keys(values)) delete values[name];
    saveSettings(values);
    changed();
    showSettings(into, values, changed);
  };
  into.replaceChildren(
    h('form', { class: 'settings', onsubmit: (e) => e.preventDefault() },
      fields.map((field) => row(field, values, changed)),
      h('button', { type: 'button', class: 'plain', onclick: reset }, 'Reset to model defaults')),
  );
}
