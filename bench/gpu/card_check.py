#!/usr/bin/env python3
"""Checks without reference data, on a card that Skein has not run on before, that the GPU computes what the CPU computes:

    card_check.py PROGRAM DEVICE OUT.json

logits   of the demo model and of random weights of RWKV-7 and 4 to 6, fed in chunks and one by one, against the CPU in fp32
score    bits per byte of the demo model by types of weights and states, against the CPU in fp32

Exit status 1 if a check failed or could not be run; OUT.json has the details, in the form of correctness.py.
    SKEIN_CARD_TOKENS=150      tokens per check
    SKEIN_CARD_MODELS="0.1b"   sizes of random weights; default: 0.1b v6-1.6b v5-1.6b v4-0.17b
"""
import array
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from correctness import Results

TOKENS = int(os.environ.get("SKEIN_CARD_TOKENS", "150"))
SIZES = os.environ.get("SKEIN_CARD_MODELS", "0.1b v6-1.6b v5-1.6b v4-0.17b").split()
# Of the largest logit: those of tests/golden for models of this depth, with room for sums in another order.
PERMITTED = {"fp32": 1e-3, "fp16": 2e-2, "bf16": 1e-1}


class NoBf16(Exception):
    """Not a mistake: Turing has none."""


def run(*command: str, text: str = "") -> str:
    ended = subprocess.run(command, input=text, capture_output=True, text=True)
    if "no bf16 arithmetic" in ended.stderr and ended.returncode != 0:
        raise NoBf16
    if ended.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {ended.returncode}: {ended.stderr[-2000:]}")
    return ended.stdout


def logits(program: str, model: str, device: str, dtype: str, chunk: int, tokens: pathlib.Path) -> array.array:
    out = tokens.with_suffix(".logits")
    run(program, "logits", "--model", model, "--device", device, "--dtype", dtype, "--chunk", str(chunk), "--tokens-file",
        str(tokens), "--out", str(out))
    values = array.array("f")
    values.frombytes(out.read_bytes())
    return values


def demo_model(program: str) -> str:
    """It is beside the program, in a build folder and in an installation."""
    folder = pathlib.Path(program).resolve().parent
    for path in (folder / "share/skein/demo", folder.parent / "share/skein/demo"):
        if (path / "skein-demo.safetensors").exists():
            return str(path / "skein-demo.safetensors")
    raise RuntimeError("the demo model is not installed")


def logit_rows(program: str, device: str, folder: pathlib.Path) -> list:
    rows = []
    numbers = random.Random(7)
    for name in ["demo", *SIZES]:
        model = demo_model(program) if name == "demo" else str(folder / f"{name}.safetensors")
        if name != "demo":  # the benchmark writes the file, and does little else on the CPU
            run(program, "bench", "engine", "--random", name, "--random-file", model, "--device", "cpu", "--batches", "1",
                "--prefill", "1x2", "--seconds", "0")
        tokens = folder / "tokens"
        tokens.write_text(",".join(str(numbers.randrange(1, 2000)) for _ in range(TOKENS)))
        expected = logits(program, model, "cpu", "fp32", 256, tokens)
        largest = max(map(abs, expected))
        for dtype, chunk in (("fp32", 256), ("fp16", 256), ("fp16", 1), ("bf16", 256)):
            try:
                got = logits(program, model, device, dtype, chunk, tokens)
            except NoBf16:
                continue
            finite = len(got) == len(expected) and all(map(math.isfinite, got))
            error = max(abs(a - b) for a, b in zip(got, expected)) / largest if finite else float("inf")
            rows.append({"model": name, "dtype": dtype, "chunk": chunk, "tokens": TOKENS, "error": error,
                         "permitted": PERMITTED[dtype], "ok": error < PERMITTED[dtype]})
        if name != "demo":
            pathlib.Path(model).unlink()
    return rows


def score_rows(program: str, device: str) -> list:
    text = " ".join(f"User: What is {n} plus {n}? Assistant: It is {2 * n}." for n in range(max(TOKENS // 20, 1)))
    rows = []
    for where, dtype, state in (("cpu", "fp32", "fp32"), (device, "bf16", "fp32"), (device, "fp16", "fp32"),
                                (device, "fp16", "fp16")):
        try:
            said = run(program, "score", "--device", where, "--dtype", dtype, "--state-dtype", state, "--json", text=text)
        except NoBf16:
            continue
        bits = json.loads(said)["bits_per_byte"]
        rows.append({"device": where, "dtype": dtype, "state_dtype": state, "bits_per_byte": bits,
                     "ok": abs(bits - (rows[0]["bits_per_byte"] if rows else bits)) < 0.02})
    return rows


def main(arguments: list) -> int:
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 64
    program, device, out = arguments
    results = Results()
    with tempfile.TemporaryDirectory() as folder:
        results.run("logits", lambda: logit_rows(program, device, pathlib.Path(folder)))
    results.run("score", lambda: score_rows(program, device))
    pathlib.Path(out).write_text(json.dumps({"ok": results.ok, "parts": results.parts}, indent=1) + "\n")
    return 0 if results.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
