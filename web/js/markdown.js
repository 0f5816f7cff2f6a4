// Parses the Markdown that models write into a plain tree: {type, ...} for blocks, strings and {type, ...} for inline
// content. HTML is neither parsed nor produced: render.js makes elements of the tree, and text stays text.

const depth_max = 12;

export function parse(text) {
  return blocks(text.replace(/\r\n?/g, '\n').replace(/\t/g, '    ').split('\n'), 0);
}

const fence = /^ {0,3}(`{3,}|~{3,}) *([^`]*)$/;
const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const rule = /^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$/;
const quote = /^ {0,3}> ?/;
const bullet = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)(.*)$/;
const tableLine = /^ {0,3}\|?(?: *:?-+:? *\|)+(?: *:?-+:? *)?$/;

const isBlank = (line) => line.trim() === '';
const beginsBlock = (line) =>
  fence.test(line) || heading.test(line) || rule.test(line) || quote.test(line) || bullet.test(line);

function blocks(lines, depth) {
  const out = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    let found;
    if (isBlank(line)) {
      ++at;
    } else if ((found = fence.exec(line))) {
      at = readCode(lines, at, found, out);
    } else if ((found = heading.exec(line))) {
      out.push({ type: 'heading', level: found[1].length, inline: inline(found[2]) });
      ++at;
    } else if (rule.test(line)) {
      out.push({ type: 'rule' });
      ++at;
    } else if (depth < depth_max && quote.test(line)) {
      const inner = [];
      for (; at < lines.length && !isBlank(lines[at]); ++at) inner.push(lines[at].replace(quote, ''));
      out.push({ type: 'quote', blocks: blocks(inner, depth + 1) });
    } else if (depth < depth_max && bullet.test(line)) {
      at = readList(lines, at, depth, out);
    } else if (line.includes('|') && tableLine.test(lines[at + 1] ?? '')) {
      at = readTable(lines, at, out);
    } else {
      const said = [];
      do said.push(lines[at++].trim());
      while (at < lines.length && !isBlank(lines[at]) && !beginsBlock(lines[at]));
      out.push({ type: 'paragraph', inline: inline(said.join('\n')) });
    }
  }
  return out;
}

/** An unclosed fence contains the rest of the text, so that a running answer shows its code as code. */
function readCode(lines, at, [opening, mark, lang], out) {
  const indent = opening.search(/\S/);
  const text = [];
  for (++at; at < lines.length; ++at) {
    const line = lines[at].trim();
    if (line.length >= mark.length && line === mark[0].repeat(line.length)) {
      ++at;
      break;
    }
    text.push(lines[at].slice(Math.min(indent, Math.max(0, lines[at].search(/\S|$/)))));
  }
  out.push({ type: 'code', lang: lang.trim().split(/\s/)[0].toLowerCase(), text: text.join('\n') });
  return at;
}

function readList(lines, at, depth, out) {
  const [, , firstMark] = bullet.exec(lines[at]);
  const ordered = /\d/.test(firstMark);
  const kind = firstMark.at(-1);
  const list = { type: 'list', ordered, start: ordered ? parseInt(firstMark, 10) : 1, tight: true, items: [] };
  let found;
  while (at < lines.length && (found = bullet.exec(lines[at])) && found[2].at(-1) === kind && !rule.test(lines[at])) {
    const width = found[1].length + found[2].length + Math.min(found[3].length || 1, 4);
    const inner = [found[4]];
    let blank = false;
    for (++at; at < lines.length; ++at) {
      const line = lines[at];
      const indent = line.search(/\S|$/);
      if (isBlank(line)) {
        blank = true;
      } else if (indent >= Math.min(width, 2 + found[1].length)) {
        if (blank) list.tight = false;
        blank = false;
        inner.push(line.slice(Math.min(indent, width)));
        continue;
      } else if (blank || beginsBlock(line)) {
        break;
      }
      inner.push(line.trim());
    }
    if (blank && at < lines.length && bullet.test(lines[at])) list.tight = false;
    list.items.push(blocks(inner, depth + 1));
  }
  out.push(list);
  return at;
}

const cells = (line) =>
  line.trim().replace(/^\||\|$/g, '').split(/(?<!\\)\|/).map((cell) => inline(cell.trim().replace(/\\\|/g, '|')));

function readTable(lines, at, out) {
  const head = cells(lines[at]);
  const align = lines[at + 1].trim().replace(/^\||\|$/g, '').split('|').map((mark) => {
    const [left, right] = [mark.trim().startsWith(':'), mark.trim().endsWith(':')];
    return left && right ? 'center' : right ? 'right' : 'left';
  });
  const rows = [];
  for (at += 2; at < lines.length && !isBlank(lines[at]) && lines[at].includes('|'); ++at) rows.push(cells(lines[at]));
  out.push({ type: 'table', head, align, rows });
  return at;
}

/** A link that is safe to click; all others stay text. */
export function safeLink(href) {
  return /^(https?:\/\/|mailto:)[^\s]+$/i.test(href) ? href : null;
}

const bareLink = /^https?:\/\/[^\s<>"'`]+[^\s<>"'`.,;:!?)\]}*_~]/;
const escapable = /[\\`*_{}[\]()#+\-.!|~<>]/;

/** Inline content of a paragraph. A mark without an end is not searched for again, so the cost is linear. */
export function inline(text, depth = 0) {
  const out = [];
  const hopeless = new Set();
  let plain = '';
  const flush = () => {
    if (plain) out.push(plain);
    plain = '';
  };
  const add = (node, length) => {
    flush();
    out.push(node);
    return length;
  };
  /** Position of the `mark` that closes the one at `from`; -1 if there is none. */
  const closing = (mark, from) => {
    if (hopeless.has(mark)) return -1;
    for (let at = text.indexOf(mark, from + 1); at >= 0; at = text.indexOf(mark, at + 1)) {
      if (/\s/.test(text[at - 1]) || text[at - 1] === '\\') continue;
      while (mark.length === 2 && text[at + 2] === mark[0]) ++at; // of three marks the inner one closes first
      if (mark.length === 1 && (text[at + 1] === mark || text[at - 1] === mark)) continue;
      if (mark[0] === '_' && /\w/.test(text[at + mark.length] ?? '')) continue;
      return at;
    }
    hopeless.add(mark);
    return -1;
  };
  const span = (type, mark, at) => {
    const from = at + mark.length;
    if (depth >= depth_max || !text.startsWith(mark, at) || /\s|^$/.test(text[from] ?? '')) return 0;
    if (mark[0] === '_' && /\w/.test(text[at - 1] ?? '')) return 0;
    const end = closing(mark, from);
    return end < 0 ? 0 : add({ type, children: inline(text.slice(from, end), depth + 1) }, end + mark.length - at);
  };
  const code = (at) => {
    const [ticks] = /^`+/.exec(text.slice(at, at + 64));
    if (hopeless.has(ticks)) return 0;
    for (let end = text.indexOf(ticks, at + ticks.length); end >= 0; ) {
      const run = /^`+/.exec(text.slice(end))[0].length;
      if (run === ticks.length) {
        const inner = text.slice(at + ticks.length, end).replace(/\n/g, ' ');
        return add({ type: 'code', text: /^ .*\S.* $/.test(inner) ? inner.slice(1, -1) : inner }, end + run - at);
      }
      end = text.indexOf(ticks, end + run);
    }
    hopeless.add(ticks);
    plain += ticks;
    return ticks.length;
  };
  const link = (at) => {
    if (depth >= depth_max) return 0;
    const found = /^\[((?:[^[\]\\\n]|\\.){1,1000})\]\(<?([^\s<>()]{1,2000})>?(?: +"[^"\n]{0,200}")?\)/.exec(text.slice(at, at + 3300));
    const href = found && safeLink(found[2]);
    return href ? add({ type: 'link', href, children: inline(found[1], depth + 1) }, found[0].length) : 0;
  };
  const bare = (at) => {
    if (/\w/.test(text[at - 1] ?? '')) return 0;
    const found = bareLink.exec(text.slice(at, at + 2000));
    return found ? add({ type: 'link', href: found[0], children: [found[0]] }, found[0].length) : 0;
  };
  for (let at = 0; at < text.length; ) {
    const c = text[at];
    let length = 0;
    if (c === '\\' && escapable.test(text[at + 1] ?? '')) {
      plain += text[at + 1];
      length = 2;
    } else if (c === '\n') {
      length = add({ type: 'break' }, 1);
    } else if (c === '`') {
      length = code(at);
    } else if (c === '*') {
      length = span('strong', '**', at) || span('em', '*', at);
    } else if (c === '_') {
      length = span('strong', '__', at) || span('em', '_', at);
    } else if (c === '~') {
      length = span('del', '~~', at);
    } else if (c === '[') {
      length = link(at);
    } else if (c === 'h') {
      length = bare(at);
    }
    if (length === 0) {
      plain += c;
      length = 1;
    }
    at += length;
  }
  flush();
  return out;
}
