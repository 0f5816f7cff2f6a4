// Minimal syntax highlighting: comments, strings, numbers and keywords. Code in an unknown language stays plain.

const words = (text) => new Set(text.split(' '));
const c_like =
  'auto bool break case catch char class const constexpr continue default delete do double else enum explicit export extern false final float for friend goto if inline int long namespace new nullptr operator override private protected public return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while';
const script =
  'async await break case catch class const continue default delete do else export extends false finally for from function if import in instanceof interface let new null of return static super switch this throw true try type typeof undefined var void while yield';

const slashes = { line: '//', block: ['/*', '*/'] };
const languages = {
  js: { ...slashes, quotes: `"'\``, words: words(script) },
  c: { ...slashes, quotes: `"'`, words: words(c_like) },
  java: { ...slashes, quotes: `"'`, words: words(`${c_like} abstract boolean extends implements import interface null package super String var`) },
  rust: { ...slashes, quotes: '"', words: words('as async await bool break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static str struct super trait true type u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 unsafe use where while') },
  go: { ...slashes, quotes: `"'\``, words: words('bool break case chan const continue default defer else error fallthrough false for func go goto if import int interface map nil package range return select string struct switch true type var') },
  python: { line: '#', quotes: `"'`, triple: true, words: words('and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return self True try while with yield') },
  sh: { line: '#', quotes: `"'`, words: words('case do done elif else esac export fi for function if in local read return set shift then unset until while cd echo') },
  sql: { line: '--', block: ['/*', '*/'], quotes: `'"`, any_case: true, words: words('all and as asc between by case create delete desc distinct drop else end from group having in index inner insert into is join key left like limit not null on or order outer primary right select set table then union update values when where') },
  toml: { line: '#', quotes: `"'`, words: words('true false null yes no') },
  json: { quotes: '"', words: words('true false null') },
};
const names = {
  javascript: 'js', typescript: 'js', ts: 'js', jsx: 'js', tsx: 'js', mjs: 'js', cpp: 'c', 'c++': 'c', cc: 'c', h: 'c',
  hpp: 'c', cuda: 'c', cs: 'java', csharp: 'java', kotlin: 'java', swift: 'java', rs: 'rust', golang: 'go', py: 'python',
  python3: 'python', bash: 'sh', shell: 'sh', zsh: 'sh', console: 'sh', yaml: 'toml', yml: 'toml', ini: 'toml', jsonc: 'json',
};

/** [{kind, text}] with kind 'plain', 'comment', 'string', 'number' or 'word'; the concatenated texts are the code. */
export function highlight(code, lang) {
  const rules = languages[names[lang] ?? lang];
  if (!rules || code.length > 100000) return [{ kind: 'plain', text: code }];
  const out = [];
  const add = (kind, text) => {
    if (out.at(-1)?.kind === kind) out.at(-1).text += text;
    else if (text) out.push({ kind, text });
    return text.length;
  };
  const upTo = (end, at, length) => (end < 0 ? code.length : end + length) - at;
  for (let at = 0; at < code.length; ) {
    const c = code[at];
    if (rules.line && code.startsWith(rules.line, at)) {
      at += add('comment', code.slice(at, at + upTo(code.indexOf('\n', at), at, 0)));
    } else if (rules.block && code.startsWith(rules.block[0], at)) {
      at += add('comment', code.slice(at, at + upTo(code.indexOf(rules.block[1], at + 2), at, 2)));
    } else if (rules.quotes.includes(c)) {
      const three = c.repeat(3);
      const length = rules.triple && code.startsWith(three, at) ? upTo(code.indexOf(three, at + 3), at, 3) : quoted(code, at);
      at += add('string', code.slice(at, at + length));
    } else {
      const [text] = /^(?:[A-Za-z_$][\w$]*|\d[\w.]*|[^A-Za-z_$\d])/u.exec(code.slice(at, at + 200)) ?? [c];
      const word = rules.words.has(rules.any_case ? text.toLowerCase() : text);
      at += add(word ? 'word' : /^\d/.test(text) ? 'number' : 'plain', text);
    }
  }
  return out;
}

/** Length of the string literal that starts at `at`; it ends at the end of the line unless it is a template. */
function quoted(code, at) {
  for (let i = at + 1; i < code.length; ++i) {
    if (code[i] === '\\') ++i;
    else if (code[i] === code[at]) return i + 1 - at;
    else if (code[i] === '\n' && code[at] !== '`') return i - at;
  }
  return code.length - at;
}
