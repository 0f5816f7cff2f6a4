#!/usr/bin/env python3
"""Says what stamps.patch wrote: stamps.py LOG [RECORDS], LOG as SKEIN_STAMPS had it. See README.md."""
import collections
import pathlib
import statistics
import struct
import sys

STAMP, STAGES = struct.Struct("8Q4I"), struct.Struct("2I64qq")
KINDS = {1: ("time_mix", ["begun", "waited", "filled", "together", "y", "over"]),
         3: ("token_shift", ["begun", "waited", "row", "normed", "over"]),
         4: ("few_rows inputs", ["begun", "waited", "asked"]),
         5: ("few_rows sums", ["begun", "there", "summed", "stored"])}
ROUND = 6_000_000  # ns


def records(path: pathlib.Path, layout: struct.Struct) -> list:
    data = path.read_bytes() if path.exists() else b""
    return [r for r in layout.iter_unpack(data[:len(data) // layout.size * layout.size]) if r[0]]


def stamps(log: str, shown: int) -> None:
    seen = []
    for name in ("time_mix", "token_shift", "few_rows"):
        seen += [(r[8], r[10], r[9], r[:8]) for r in records(pathlib.Path(f"{log}.{name}"), STAMP)]
    if not seen:
        sys.exit(f"{log}.*: no stamps")
    end = max(max(at) for *_, at in seen)
    last = sorted((r for r in seen if r[3][0] > end - ROUND), key=lambda r: r[3][1])
    steps = collections.defaultdict(list)
    for kind, number, block, at in last:
        steps[kind, number, block].append(at)
    for (kind, number, block), all_at in sorted(steps.items()):
        name, points = KINDS[kind]
        words = [f"{a} to {b} {statistics.median(at[i + 1] - at[i] for at in all_at) / 1000:.2f}"
                 for i, (a, b) in enumerate(zip(points, points[1:]))]
        print(f"{name:16} of {number:5} block {block:5} x {len(all_at):4} | us: " + " | ".join(words))
    middle = last[len(last) // 2:][:shown]
    for kind, number, block, at in middle:
        name, points = KINDS[kind]
        print(f"{name:16} of {number:5} block {block:5} "
              + " ".join(f"{p} {(x - middle[0][3][1]) / 1000:.2f}" for p, x in zip(points, at)))


def stages(log: str) -> None:
    found = collections.defaultdict(list)
    for r in records(pathlib.Path(f"{log}.stages"), STAGES):
        at, end = [r[2 + 4 * i:6 + 4 * i] for i in range(16)], r[66]
        of_item = [stage for stage in at if at[0][0] <= stage[0] <= end]
        found[r[0], r[1], len(of_item)].append(of_item)
    for (number, block, count), items in sorted(found.items()):
        if len(items) < 20:
            continue
        print(f"product of {number} blocks, block {block}, {count} stages x {len(items)}, cycles")
        for i, what in enumerate(("there", "issued", "given back")):
            print(f"  {what:10}", [round(statistics.median(item[s][i + 1] - item[s][i] for item in items)) for s in range(count)])


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    stamps(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 0)
    stages(sys.argv[1])
