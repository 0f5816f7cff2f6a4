// What a JSON value must look like, as an object of checks by the names of its members.
import assert from 'node:assert/strict';

export const isText = (x) => assert.equal(typeof x, 'string');
export const isCount = (x) => assert.ok(Number.isInteger(x) && x >= 0, `${x}`);
export const isReason = (x) => assert.match(x, /^(stop|length)$/);
export const is = (value) => (x) => assert.deepEqual(x, value);
export const like = (pattern) => (x) => assert.match(x, pattern);
export const anything = () => {};

/** `value` has exactly these members, each as its check wants it; names that end in ? may be missing. */
export function hasShape(value, shape, where = '') {
  assert.ok(value && typeof value === 'object', `${where} is no object`);
  const known = Object.fromEntries(Object.entries(shape).map(([name, check]) => [name.replace('?', ''), check]));
  for (const name of Object.keys(value)) assert.ok(name in known, `${where}.${name} is not in the contract`);
  for (const name of Object.keys(shape)) {
    if (name.endsWith('?') && !(name.slice(0, -1) in value)) continue;
    const key = name.replace('?', '');
    assert.ok(key in value, `${where}.${key} is missing`);
    const check = shape[name];
    typeof check === 'function' ? check(value[key]) : hasShape(value[key], check, `${where}.${key}`);
  }
}

export const usage = {
  prompt_tokens: isCount, completion_tokens: isCount, total_tokens: isCount,
  'prompt_tokens_details?': { cached_tokens: isCount }, 'completion_tokens_details?': { reasoning_tokens: isCount },
};
