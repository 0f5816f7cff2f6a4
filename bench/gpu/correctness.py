#!/usr/bin/env python3
"""Checks that a bundle computes correctly on this machine's GPU:

    correctness.py BUNDLE ORACLE OUT.json

kernels   the kernel tests compiled for the card, and the checks of the kernel benchmarks
goldens   every golden of the reference in fp16 and bf16, fed in chunks of 512 and of 7: logits, states, and best
          tokens if their margin is large enough
engines   the CUDA engine against the CPU engine over 200 tokens of 64 sequences, alone and batched (engine_check), also
          for models with head sizes other than 64; and over 320 sequences of 17 to 700 tokens in random pieces
score     bits per byte of the demo model by types of weights and state
sanitizers  if SKEIN_SANITIZER is set: sanitize.py

Exit status 1 if any check failed or could not be run; OUT.json has the details.
"""
import concurrent.futures
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

import sanitize

SEQUENCES, TOKENS, CROWD = 64, 200, 320
CHUNKS = (512, 7)
AT_ONCE = min(8, os.cpu_count() or 1)


class Results:
    """The results by part. A part that throws is wrong; its exception is recorded."""

    def __init__(self) -> None:
        self.parts = {}

    def run(self, name: str, part) -> None:
        begin = datetime.datetime.now()
        try:
            rows = part()
            wrong = [row for row in rows if not row["ok"]]
            self.parts[name] = {"ok": bool(rows) and not wrong, "rows": rows}
            for row in wrong:
                print(f"WRONG {name}: {row}", flush=True)
        except Exception as trouble:
            traceback.print_exc()
            self.parts[name] = {"ok": False, "rows": [], "trouble": f"{type(trouble).__name__}: {trouble}"}
        self.parts[name]["seconds"] = round((datetime.datetime.now() - begin).total_seconds(), 1)
        print(f"{name}: {'right' if self.parts[name]['ok'] else 'WRONG'}, {self.parts[name]['seconds']} s", flush=True)

    @property
    def ok(self) -> bool:
        return all(part["ok"] for part in self.parts.values())


def test_kernels(bundle: pathlib.Path) -> list:
    """One row for each program that checks kernels on the card."""
    tests = [bundle / "tests/gpu_test_cuda", "--log_level=error", "--report_level=short", "--color_output=no"]
    runs = [("tests", tests), ("matmul", [bundle / "tests/gpu_matmul_bench", "check"]),
            ("time mix", [bundle / "tests/gpu_time_mix_bench", "--quick"]),
            ("sampling", [bundle / "tests/gpu_sampling_bench", "1", "32"])]
    rows = []
    for name, command in runs:
        ended = subprocess.run(command, capture_output=True, text=True)
        said = (ended.stdout + ended.stderr).strip()
        rows.append({"check": name, "ok": ended.returncode == 0, "said": said[-4000:]})
    return rows


def golden_rows(golden_data, program, np) -> list:
    """One row for each model and type of weights: the worst of its cases."""
    def one(job: tuple) -> dict:
        model, dtype, case, chunk = job
        fed = program.logits(model.path, case.tokens, dtype, chunk, 1, model.state, device="cuda")
        rows = np.frombuffer(fed.logits, "<f4").reshape(len(case.tokens), -1).astype(np.float64)
        permitted = golden_data.TOLERANCE[dtype] * case.largest
        error = float(np.abs(rows[case.positions] - case.logits).max())
        sure = np.array(case.margin) > 2 * permitted
        wrong = int((rows.argmax(axis=1)[sure] != np.array(case.argmax)[sure]).sum())
        state_error = 0.0
        golden, state = (golden_data.comparable(of) for of in (case.state("state/"), program.read_state(fed.state)))
        for name in golden:
            largest = max(np.abs(golden[name]).max(), 1e-9)
            state_error = max(state_error, float(np.abs(state[name] - golden[name]).max() / largest))
        return {"model": model.name, "dtype": dtype, "error": error / case.largest, "state_error": state_error,
                "states": bool(golden), "judged": int(sure.sum()), "positions": len(case.tokens), "wrong_best": wrong,
                "ok": bool(np.isfinite(rows).all()) and wrong == 0 and error < permitted
                and state_error < golden_data.TOLERANCE[dtype]}

    jobs = [(model, dtype, case, chunk) for model in golden_data.MODELS for dtype in ("fp16", "bf16")
            for case in golden_data.cases(model) for chunk in CHUNKS]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(one, jobs))
    table = {}
    for answer in answers:
        row = table.setdefault((answer["model"], answer["dtype"]), {
            "model": answer["model"], "dtype": answer["dtype"], "runs": 0, "states": 0, "error": 0.0,
            "state_error": 0.0, "permitted": golden_data.TOLERANCE[answer["dtype"]], "judged": 0, "positions": 0,
            "wrong_best": 0, "ok": True})
        row["runs"] += 1
        for name in ("judged", "positions", "wrong_best", "states"):
            row[name] += answer[name]
        for name in ("error", "state_error"):
            row[name] = max(row[name], answer[name])
        row["ok"] = row["ok"] and answer["ok"]
    return list(table.values())


def demo_tokens(bundle: pathlib.Path) -> list:
    """Tokens of dialogues generated by the demo model, enough for all sequences."""
    tokens = []
    for seed in range(20 * SEQUENCES):
        said = subprocess.run([bundle / "skein", "generate", "--device", "cpu", "--prompt", "User: ", "--show-tokens",
                               "--seed", str(seed), "--max-tokens", str(4 * TOKENS)],
                              check=True, capture_output=True, text=True).stdout
        tokens += [int(token) for token in said.replace("\n", ",").split(",") if token.strip()]
        if len(tokens) >= SEQUENCES * TOKENS:
            return tokens
    raise RuntimeError("the demo model generates too few tokens")


def sequences_of(name: str, oracle: pathlib.Path, bundle: pathlib.Path, np) -> list:
    """SEQUENCES lists of TOKENS ids: text that the model was trained on, or random ids."""
    if name == "tiny":
        text = (oracle / "golden_text.txt").read_bytes()
        step = (len(text) - TOKENS) // SEQUENCES
        return [list(text[i * step:i * step + TOKENS]) for i in range(SEQUENCES)]
    if name == "demo":
        tokens = demo_tokens(bundle)
        return [tokens[i * TOKENS:(i + 1) * TOKENS] for i in range(SEQUENCES)]
    return np.random.RandomState(5).randint(0, 512, (SEQUENCES, TOKENS)).tolist()


def model_with_heads(oracle: pathlib.Path, folder: pathlib.Path, size: int) -> pathlib.Path:
    path = folder / f"heads-{size}.safetensors"
    subprocess.run([sys.executable, oracle / "make_random_model.py", path, "--n-layer", "3", "--n-embd", "384",
                    "--n-vocab", "512", "--head-size", str(size), "--seed", "14"], check=True, stdout=subprocess.DEVNULL)
    return path


def engine_rows(bundle: pathlib.Path, models: dict, oracle: pathlib.Path, np) -> list:
    """The rows of engine_check for each model, and for many sequences of the random one."""
    rows = []
    environment = dict(os.environ, SKEIN_CUDA_LIBRARY=str(bundle / "lib/libskein_cuda.so"))  # next to skein
    with tempfile.TemporaryDirectory() as folder:
        random = np.random.RandomState(6)
        crowd = [random.randint(0, 512, length).tolist() for length in random.randint(17, 701, CROWD)]
        jobs = [(name, path, sequences_of(name, oracle, bundle, np), TOKENS) for name, path in models.items()]
        jobs = [(*job, invariance) for job in jobs for invariance in ("default", "strict", "fast")]
        for name, path, lists, draws, invariance in jobs + [("gen, a crowd", models["gen"], crowd, 8, "default")]:
            tokens = pathlib.Path(folder, "tokens")
            tokens.write_text("".join(",".join(map(str, ids)) + "\n" for ids in lists))
            for dtype in ("fp16", "bf16"):
                command = [bundle / "tests/engine_check", path, tokens, dtype, "cuda", "fp32", str(draws), invariance]
                ended = subprocess.run(command, env=environment, capture_output=True, text=True)
                if not ended.stdout:
                    raise RuntimeError(f"engine_check ended with {ended.returncode}: {ended.stderr[-1000:]}")
                rows += [dict(check, model=f"{name}, {invariance}", dtype=dtype) for check in json.loads(ended.stdout)["checks"]]
    return rows


def score_rows(bundle: pathlib.Path) -> list:
    """Bits per byte of the demo model; each must be close to the CPU's in fp32."""
    text = (bundle / "share/skein/demo/README.md").read_text()
    rows = []
    for device, dtype, state in (("cpu", "fp32", "fp32"), ("cuda", "bf16", "fp32"), ("cuda", "fp16", "fp32"),
                                 ("cuda", "fp16", "fp16")):
        ended = subprocess.run([bundle / "skein", "score", "--device", device, "--dtype", dtype, "--state-dtype", state,
                                "--json"], input=text, capture_output=True, text=True)
        if ended.returncode != 0:
            raise RuntimeError(f"skein score ended with {ended.returncode}: {ended.stderr}")
        bits = json.loads(ended.stdout)["bits_per_byte"]
        rows.append({"device": device, "dtype": dtype, "state_dtype": state, "bits_per_byte": bits,
                     "ok": abs(bits - (rows[0]["bits_per_byte"] if rows else bits)) < 0.01})
    return rows


def main(arguments: list) -> int:
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 64
    bundle, oracle, out = (pathlib.Path(argument).resolve() for argument in arguments)
    here = pathlib.Path(__file__).resolve()
    sys.path.insert(0, str(here.parents[2] / "tests/golden"))
    results = Results()
    with tempfile.TemporaryDirectory() as made:
        os.environ.update(SKEIN_ORACLE=str(oracle), SKEIN_GOLDEN_MODELS=made, SKEIN_BINARY=str(bundle / "skein"))
        results.run("kernels", lambda: test_kernels(bundle))
        subprocess.run([sys.executable, here.parents[2] / "tests/golden/make_models.py", made], check=True)
        import golden_data
        import numpy as np
        import program
        results.run("goldens", lambda: golden_rows(golden_data, program, np))
        models = {"tiny": golden_data.TINY.path, "gen": golden_data.GEN_7.path,
                  "demo": bundle / "share/skein/demo/skein-demo.safetensors"}
        other_heads = lambda: {f"heads of {size}": model_with_heads(oracle, pathlib.Path(made), size)
                               for size in (24, 128)}
        results.run("engines", lambda: engine_rows(bundle, models | other_heads(), oracle, np))
        results.run("score", lambda: score_rows(bundle))
        if os.environ.get("SKEIN_SANITIZER"):
            results.run("sanitizers", lambda: sanitize.sanitizer_rows(bundle))
    out.write_text(json.dumps({"ok": results.ok, "parts": results.parts}, indent=1) + "\n")
    return 0 if results.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
