#!/usr/bin/env python3
"""Compares builds of libskein_cuda.so in one run on one card, because cards differ by more than most changes do:

    compare.py BUNDLE OUT.json LABEL=LIBRARY... [--rounds N] -- CASE...

BUNDLE: made by ./dev bundle. A LIBRARY may also be a bundle, whose own program is then run: use this for builds with a
different interface between program and library. LIBRARY@PROFILE imposes the profile of another card (a100, rtx4090,
t4, ..; see kernels/gpu/types/device_profile.cpp), and LIBRARY@PROFILE,NAME=VALUE also sets an environment variable
(SKEIN_FUSED_LAUNCHES=0). A CASE is the arguments of `skein bench engine` as one word, such as
"--random 1.5b --random-file /dev/shm/m15.safetensors --dtype bf16 --seconds 0.1 --batches 1,8,32 --prefill 1x512".
Each round runs all libraries in turn, every second round in reverse order. Prints the median tokens/s of each library,
its difference from the first library, and the spread of the rounds. Exit status 1 if a run failed.
"""
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile


def arguments(words: list) -> tuple:
    if "--" not in words or len(words) < 5:
        sys.exit(__doc__)
    at = words.index("--")
    head, cases = words[:at], words[at + 1:]
    rounds = 2
    if "--rounds" in head:
        i = head.index("--rounds")
        rounds = int(head[i + 1])
        del head[i:i + 2]
    libraries = dict(word.split("=", 1) for word in head[2:])
    return pathlib.Path(head[0]).resolve(), pathlib.Path(head[1]), libraries, rounds, cases


def run(bundle: pathlib.Path, library: str, case: str) -> dict:
    """Tokens/s by case of the benchmark: {"decode 32x1": 22410.0}."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "bench.json"
        environment = {**os.environ}
        path, _, imposed = library.partition("@")
        profile, *settings = imposed.split(",")
        environment.update(setting.split("=", 1) for setting in settings)
        environment["SKEIN_DEVICE_PROFILE"] = profile
        chosen = pathlib.Path(path).resolve()
        if chosen.is_dir():
            bundle = chosen
            environment.pop("SKEIN_CUDA_LIBRARY", None)
        else:
            environment["SKEIN_CUDA_LIBRARY"] = str(chosen)
        done = subprocess.run([bundle / "skein", "bench", "engine", "--device", "cuda", "--json", out,
                               *shlex.split(case)], env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError((done.stderr or done.stdout).strip().split("\n")[-1])
        return {f"{c['kind']} {c['sequences']}x{c['tokens']}": c["tokens_per_s"]
                for c in json.loads(out.read_text())["cases"]}


def main() -> int:
    bundle, out, libraries, rounds, cases = arguments(sys.argv[1:])
    seen, failed = [], False
    for case in cases:
        figures = {label: {} for label in libraries}
        for number in range(rounds):
            for label in list(libraries)[::1 if number % 2 == 0 else -1]:
                try:
                    for name, speed in run(bundle, libraries[label], case).items():
                        figures[label].setdefault(name, []).append(speed)
                except RuntimeError as trouble:
                    print(f"{label}: {trouble}", flush=True)
                    failed = True
        seen.append({"case": case, "tokens_per_s": figures})
        print(case)
        first = next(iter(figures.values()))
        for name in first:
            words = []
            for label, of in figures.items():
                if name not in of:
                    continue
                middle = statistics.median(of[name])
                words.append(f"{label} {middle:,.0f} ({100 * middle / statistics.median(first[name]) - 100:+.1f} %, "
                             f"rounds within {100 * (max(of[name]) / min(of[name]) - 1):.1f} %)")
            print(f"  {name:14} " + " | ".join(words), flush=True)
        out.write_text(json.dumps(seen, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
