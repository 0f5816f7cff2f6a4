#!/usr/bin/env python3
"""Combines the results of run.sh in a folder into gpu.json and gpu.md, the format of bench/results:

    report.py FOLDER COMMIT

Parts that did not run are left out. Exit status 1 if nothing ran or a result was wrong.
"""
import datetime
import json
import pathlib
import platform
import sys


def table(header: list, rows: list) -> list:
    return ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)] + \
           ["| " + " | ".join(map(str, row)) + " |" for row in rows] + [""]


def told_correctness(parts: dict) -> list:
    lines = ["## Correctness", ""]
    for name, part in parts.items():
        verdict = "right" if part["ok"] else "**wrong**" + (f": {part['trouble']}" if "trouble" in part else "")
        lines += [f"### {name}: {verdict}, {part['seconds']} s", ""]
        rows = part["rows"]
        if name in ("kernels", "sanitizers"):
            lines += table(["run", "ok", "said"],
                           [(row["check"], row["ok"], row["said"].split("\n")[-1]) for row in rows])
        if name == "goldens":
            lines += table(["model", "type", "runs", "largest error", "of states", "permitted", "best tokens judged",
                            "wrong"],
                           [(row["model"], row["dtype"], row["runs"], f"{row['error']:.1e}",
                             f"{row['state_error']:.1e}" if row["states"] else "-", f"{row['permitted']:.0e}",
                             f"{row['judged']} of {row['positions']}", row["wrong_best"]) for row in rows])
        if name == "engines":
            shown = lambda row: ", ".join(f"{key} {value:.2g}" if isinstance(value, float) else f"{key} {value}"
                                          for key, value in row.items() if key not in ("check", "ok", "model", "dtype"))
            lines += table(["model", "type", "check", "ok", "figures"],
                           [(row["model"], row["dtype"], row["check"], row["ok"], shown(row)) for row in rows])
        if name == "logits":
            lines += table(["model", "type", "chunk", "tokens", "largest error", "permitted"],
                           [(row["model"], row["dtype"], row["chunk"], row["tokens"], f"{row['error']:.1e}",
                             f"{row['permitted']:.0e}") for row in rows])
        if name == "score":
            lines += table(["device", "weights", "states", "bits per byte"],
                           [(row["device"], row["dtype"], row["state_dtype"], f"{row['bits_per_byte']:.5f}")
                            for row in rows])
    return lines


def percent(share) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def told_bench(bench: dict) -> list:
    first = bench["cases"][0]
    limits = [f"{first[name] / unit:.1f} {word}" for name, unit, word in
              (("read_limit_bytes_per_s", 1e9, "GB/s read"), ("limit_flop_per_s", 1e12, "TFLOP/s in GEMMs"))
              if first[name] is not None]
    lines = [f"## {bench['model']}, weights {bench['weight_type']}, states {bench['state_type']}, "
             f"invariance {bench['invariance']}", "",
             f"On {bench['device']}, loaded in {bench['load_s']:.2f} s. Limits measured in the same run: "
             f"{', '.join(limits) or 'none'} ({bench['flop_source']}).", ""]
    return lines + table(
        ["", "tokens/s", "tick", "fastest to slowest", "GB", "of bandwidth", "TFLOP", "of FLOP/s", "of the limit"],
        [(f"{case['kind']} {case['sequences']}x{case['tokens']}", f"{case['tokens_per_s']:.0f}",
          f"{1e3 * case['median_s']:.3f} ms", f"{1e3 * case['fastest_s']:.3f} to {1e3 * case['slowest_s']:.3f} ms",
          f"{(case['weight_bytes'] + case['state_bytes']) / 1e9:.2f}", percent(case["share_of_read"]),
          f"{case['flop'] / 1e12:.3f}", percent(case["share_of_flop"]), percent(case["share_of_least"]))
         for case in bench["cases"]])


def main(arguments: list) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 64
    folder, commit = pathlib.Path(arguments[0]), arguments[1]
    whole = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "commit": commit,
             "gpu": (folder / "gpu.txt").read_text().strip(), "machine": platform.platform()}
    correctness = folder / "correctness.json"
    if correctness.exists():
        whole["correctness"] = json.loads(correctness.read_text())
    benches = [json.loads(path.read_text()) for path in sorted(folder.glob("bench-*.json"))]
    if benches:
        whole["bench"] = benches
    lines = [f"# GPU, {whole['date']}", "", f"- Commit {commit}.",
             f"- GPU, driver, memory, clock, power: {whole['gpu']}.",
             f"- System: {whole['machine']}.", ""]
    lines += told_correctness(whole["correctness"]["parts"]) if correctness.exists() else []
    for bench in benches:
        lines += told_bench(bench)
    (folder / "gpu.json").write_text(json.dumps(whole, indent=1) + "\n")
    (folder / "gpu.md").write_text("\n".join(lines).rstrip("\n") + "\n")
    return 0 if len(whole) > 4 and whole.get("correctness", {"ok": True})["ok"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
