#!/usr/bin/env python3
"""Shows how long the kernels of a layer take: trace.py TRACE.csv LAUNCHES [FIRST LAST], the output of trace.cpp, the
launches of a layer, and the lines of the file to look at. Averages over all layers that have the same launches; "before"
is the time from the end of the kernel before, negative if they overlap. See README.md."""
import collections
import sys


def main(path: str, launches: int, first: int, last: int) -> None:
    kernels = []
    for line in open(path).read().splitlines()[first:last]:
        begin, end, blocks, shared, name = line.split(",", 4)
        kernels.append((int(begin), int(end), (int(blocks), int(shared), name)))
    shapes = [kernel[2] for kernel in kernels]
    layers = collections.Counter(tuple(shapes[i:i + launches]) for i in range(1, len(shapes) - launches + 1))
    if not layers or layers.most_common(1)[0][1] < 2:
        sys.exit(f"trace: no {launches} launches that repeat")
    layer, times, count, i = layers.most_common(1)[0][0], [[0, 0] for _ in range(launches)], 0, 1
    while i + launches <= len(kernels):
        if tuple(shapes[i:i + launches]) != layer:
            i += 1
            continue
        for k, of in enumerate(times):
            begin, end, _ = kernels[i + k]
            of[0] += end - begin
            of[1] += begin - kernels[i + k - 1][1]
        count, i = count + 1, i + launches
    print(f"{count} layers, {sum(map(sum, times)) / count / 1e3:.1f} us each")
    for (blocks, shared, name), (inside, before) in zip(layer, times):
        print(f"{inside / count / 1e3:8.2f} us, before {before / count / 1e3:6.2f} us  {blocks:6} blocks  {shared:7} bytes  {name[:100]}")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 5):
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]), *(map(int, sys.argv[3:]) if len(sys.argv) == 5 else (0, None)))
