// The versions of a conversation as a tree. Version 0 is the root; it is not in the list.

export class Versions {
  constructor(list = []) {
    // A continued answer is listed twice; the later version has the complete text.
    const parents = new Set(list.map((v) => v.parent));
    const went_on = (v) => !parents.has(v.version) &&
      list.some((w) => w.version > v.version && w.response_id && w.response_id === v.response_id);
    this.all = new Map(list.filter((v) => !v.deleted && !went_on(v)).map((v) => [v.version, v]));
    this.below = new Map();
    for (const v of this.all.values()) {
      if (!this.below.has(v.parent)) this.below.set(v.parent, []);
      this.below.get(v.parent).push(v.version);
    }
    for (const children of this.below.values()) children.sort((a, b) => a - b);
  }

  has(version) {
    return version === 0 || this.all.has(version);
  }
  get(version) {
    return this.all.get(version);
  }
  children(version) {
    return this.below.get(version) ?? [];
  }
  /** All versions with the same parent, including this one. */
  siblings(version) {
    return this.children(this.get(version)?.parent ?? 0);
  }
  /** From the first version to this one. */
  path(version) {
    const way = [];
    for (let v = this.get(version); v; v = this.get(v.parent)) way.unshift(v.version);
    return way;
  }
  /** The newest leaf below this version, or the version itself. */
  newestBelow(version) {
    const children = this.children(version);
    return children.length ? this.newestBelow(children.at(-1)) : version;
  }
  leaves() {
    return [...this.all.keys()].filter((v) => this.children(v).length === 0);
  }
  /** The version to show first: the head, or an interrupted answer directly after it. */
  start(head) {
    const broken = this.children(head).filter((v) => this.get(v).unfinished && v > head);
    return broken.at(-1) ?? head;
  }

  /** The tree as rows from top to bottom: a path keeps its depth until it branches. `rails` are the lines on the left:
   * {depth, kind} with kind 'through', 'to' or 'from' the row's own dot, or 'turn-off' to it from its parent. */
  rows() {
    const rows = [];
    const walk = (version, depth) => {
      for (;;) {
        rows.push({ version, depth });
        const children = this.children(version);
        if (children.length !== 1) return children.forEach((child) => walk(child, depth + 1));
        [version] = children;
      }
    };
    this.children(0).forEach((child) => walk(child, this.children(0).length > 1 ? 1 : 0));
    this.#addRails(rows);
    return rows;
  }

  /** From the bottom up, because a line extends down to the last branch that turns off from it. */
  #addRails(rows) {
    const depths = new Map(rows.map((row) => [row.version, row.depth]));
    let open = []; // depths from which a branch turns off further down
    for (const row of [...rows].reverse()) {
      const { version, depth } = row;
      const parent = depths.get(this.get(version).parent);
      row.rails = open.filter((at) => at < depth).map((at) => ({ depth: at, kind: 'through' }));
      if (this.children(version).length > 0) row.rails.push({ depth, kind: 'from' });
      if (parent !== undefined) row.rails.push(parent < depth ? { depth: parent, kind: 'turn-off' } : { depth, kind: 'to' });
      open = open.filter((at) => at < depth);
      if (parent < depth && !open.includes(parent)) open.push(parent);
    }
  }
}
