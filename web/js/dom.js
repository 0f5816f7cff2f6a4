// Creates elements. Text is added as text nodes only, so text of a model or a user never becomes markup.

/** h('button', {class: 'x', onclick: f, 'aria-label': 'Close'}, child, 'text'); null and false values are skipped. */
export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'class') node.className = value;
    else if (name === 'value' || name === 'checked') node[name] = value;
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

const shapes = {
  menu: 'M4 7h16M4 12h16M4 17h16',
  plus: 'M12 5v14M5 12h14',
  send: 'M12 19V5M6 11l6-6 6 6',
  stop: 'M7 7h10v10H7z',
  tree: 'M7 8v8M7 4a2 2 0 1 0 0 4 2 2 0 1 0 0-4M7 16a2 2 0 1 0 0 4 2 2 0 1 0 0-4M17 5a2 2 0 1 0 0 4 2 2 0 1 0 0-4M17 9c0 4-5 3.5-10 5.5',
  sliders: 'M4 7h10M18 7h2M4 17h2M10 17h10M14 5v4M8 15v4',
  fork: 'M6 4v6a4 4 0 0 0 4 4h8M14 10l4 4-4 4',
  back: 'M9 6L4 11l5 5M4 11h10a6 6 0 0 1 6 6v1',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  edit: 'M4 20l1-5L16 4l4 4L9 19z',
  again: 'M20 12a8 8 0 1 1-2.5-5.8M20 3v4h-4',
  on: 'M5 5l8 7-8 7zM18 5v14',
  save: 'M12 4v11M7 11l5 5 5-5M4 20h16',
  load: 'M12 16V5M7 9l5-5 5 5M4 20h16',
  bin: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  close: 'M6 6l12 12M18 6L6 18',
  left: 'M14 6l-6 6 6 6',
  right: 'M10 6l6 6-6 6',
  key: 'M14 10a4 4 0 1 0-3.5 4M11.5 12.5L20 21M17 18l2-2',
  theme: 'M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16',
  help: 'M9 9a3 3 0 1 1 4 2.8c-.7.3-1 .8-1 1.7M12 17.5v.1',
};

export function icon(name) {
  const ns = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(ns, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(ns, 'path');
  path.setAttribute('d', shapes[name]);
  svg.append(path);
  return svg;
}

/** A button with an icon and an accessible name. */
export const iconButton = (name, label, onclick, more = {}) =>
  h('button', { type: 'button', class: 'quiet', 'aria-label': label, title: label, onclick, ...more }, icon(name));

/** Returns a function that runs `work` in the next frame, once per frame. */
export function framed(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    const run = () => {
      asked = false;
      work();
    };
    document.hidden ? setTimeout(run, 50) : requestAnimationFrame(run);
  };
}
