// The versions of a conversation as a tree: ways, branches, and how they are drawn.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Versions } from '../../web/js/versions.js';

const v = (version, parent, more = {}) => ({ version, parent, ...more });
//  1 ─ 2 ─ 3
//        └ 4 ─ 6 ─ 7
//    └ 5       └ 8
const tree = new Versions([v(1, 0), v(2, 1), v(3, 2), v(4, 2), v(5, 1), v(6, 4), v(7, 6), v(8, 6)]);

test('ways, siblings and ends', () => {
  assert.deepEqual(tree.path(7), [1, 2, 4, 6, 7]);
  assert.deepEqual(tree.path(0), []);
  assert.deepEqual(tree.siblings(3), [3, 4]);
  assert.deepEqual(tree.siblings(1), [1]);
  assert.equal(tree.newestBelow(2), 8);
  assert.equal(tree.newestBelow(5), 5);
  assert.deepEqual(tree.leaves(), [3, 5, 7, 8]);
});

test('a version that was deleted is not offered', () => {
  const some = new Versions([v(1, 0), v(2, 1, { deleted: true }), v(3, 1)]);
  assert.deepEqual(some.children(1), [3]);
  assert.ok(!some.has(2) && some.has(0));
});

test('an answer that broke off is where a reader begins, until it went on', () => {
  const broken = v(2, 1, { unfinished: true, response_id: 'a' });
  assert.equal(new Versions([v(1, 0), broken]).start(1), 2);
  const went_on = new Versions([v(1, 0), broken, v(3, 1, { response_id: 'a' })]);
  assert.equal(went_on.start(3), 3);
  assert.deepEqual(went_on.children(1), [3]);
  const answered = new Versions([v(1, 0), broken, v(3, 2), v(4, 1, { response_id: 'a' })]);
  assert.deepEqual(answered.children(1), [2, 4]); // another client continued from the interrupted one
});

test('rows keep their depth until a way parts, and lines lead to every branch', () => {
  const drawn = tree.rows().map(({ version, depth, rails }) =>
    `${version}@${depth} ${rails.map((r) => `${r.kind}${r.depth}`).sort().join(' ')}`);
  assert.deepEqual(drawn, [
    '1@0 from0',
    '2@1 from1 through0 turn-off0',
    '3@2 through0 through1 turn-off1',
    '4@2 from2 through0 turn-off1',
    '6@2 from2 through0 to2',
    '7@3 through0 through2 turn-off2',
    '8@3 through0 turn-off2',
    '5@1 turn-off0',
  ]);
});

test('several beginnings', () => {
  const rows = new Versions([v(1, 0), v(2, 0), v(3, 2)]).rows();
  assert.deepEqual(rows.map((r) => [r.version, r.depth, r.rails.length]), [[1, 1, 0], [2, 1, 1], [3, 1, 1]]);
});
