#!/usr/bin/env python3
"""Shows where a kernel's warps wait: samples.py SOURCE.csv, the output of `ncu --page source --csv`. See README.md."""
import collections
import csv
import re
import sys


def main(path: str) -> None:
    rows = list(csv.reader(open(path)))
    at = next(i for i, row in enumerate(rows) if "Source" in row)
    head = {name: i for i, name in enumerate(rows[at])}
    reasons = [name for name in head if name.startswith("stall_") and "Not" not in name]
    lines = [row for row in rows[at + 1:] if len(row) == len(rows[at])]
    executed = [int(row[head["Instructions Executed"]]) for row in lines]
    samples = [int(row[head["# Samples"]]) for row in lines]
    source = [row[head["Source"]].strip() for row in lines]
    often = collections.Counter(n for n in executed if n).most_common(1)[0][0]  # most likely one iteration of the outer loop
    every, all_samples = sum(executed), max(sum(samples), 1)
    print(f"{every} instructions, {every / often:.0f} per iteration; {all_samples} samples")

    print("\nregions by execution count: executions per iteration, instructions per iteration, share of the samples")
    begin = 0
    for i in range(1, len(lines) + 1):
        if i < len(lines) and abs(executed[i] - executed[begin]) < 0.02 * often:
            continue
        share, count = sum(samples[begin:i]) / all_samples, sum(executed[begin:i])
        if share > 0.01 or count > 0.01 * every:
            print(f"  {begin:5}-{i - 1:5} {executed[begin] / often:7.2f} {count / often:8.1f} {100 * share:6.1f} %  {source[begin][:50]}")
        begin = i

    print("\nstall reasons:", ", ".join(
        f"{name[6:]} {100 * total / all_samples:.1f} %" for total, name in
        sorted(((sum(int(row[head[name]]) for row in lines), name) for name in reasons), reverse=True)[:8]))
    kinds = collections.Counter()
    for text, count in zip(source, executed):
        kinds[re.sub(r"@!?U?P\d+ +", "", text).split(" ")[0].split(".")[0]] += count
    print("instructions per iteration:", ", ".join(f"{kind} {count / often:.0f}" for kind, count in kinds.most_common(25)))
    print("\ninstructions with the most samples")
    for i in sorted(range(len(lines)), key=lambda i: -samples[i])[:25]:
        most = max(reasons, key=lambda name: int(lines[i][head[name]]))
        print(f"  {i:5} {100 * samples[i] / all_samples:5.1f} % {most[6:]:12} {source[i][:70]}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
