#!/usr/bin/env python3
"""Shows that engine_check passes on an engine that is right, the emulated GPU, and names what it compared; and that it
ends with an error where there is nothing to compare.

    engine_check_test.py ENGINE_CHECK EMULATED_LIBRARY SOURCE_FOLDER
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM, LIBRARY, SOURCE = sys.argv[1:4]
ORACLE = pathlib.Path(os.environ.get("SKEIN_ORACLE") or pathlib.Path(SOURCE).parent / "shared/oracle")
TINY = ORACLE / "models/tiny-7v0.safetensors"


def check(device: str, dtype: str, lines: list, *more: str) -> subprocess.CompletedProcess:
    with tempfile.TemporaryDirectory() as folder:
        tokens = pathlib.Path(folder, "tokens")
        tokens.write_text("".join(f"{line}\n" for line in lines))
        environment = dict(os.environ, SKEIN_CUDA_LIBRARY=LIBRARY)
        return subprocess.run([PROGRAM, TINY, tokens, dtype, device, "fp32", "6", *more], env=environment,
                              capture_output=True, text=True)


class EngineCheck(unittest.TestCase):
    LINES = [",".join(map(str, text.encode())) for text in ("The cat sat on the mat", "Once upon a time there")]

    def test_the_emulated_gpu_passes(self) -> None:
        ended = check("cuda", "fp16", self.LINES)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        answer = json.loads(ended.stdout)
        self.assertTrue(answer["ok"])
        self.assertTrue(answer["device"].startswith("emulator:0"))
        self.assertEqual(len(answer["checks"]), 9)
        positions = sum(len(line.split(",")) for line in self.LINES)
        for one in answer["checks"]:
            self.assertTrue(one["ok"], one)
        self.assertEqual(answer["checks"][0]["positions"], positions)
        self.assertGreater(answer["checks"][0]["error"], 0)
        self.assertGreater(answer["checks"][0]["judged"], positions // 2)

    def test_strict_and_fast_promise_more_and_less(self) -> None:
        for invariance, checks in (("strict", 10), ("fast", 5)):
            ended = check("cuda", "bf16", self.LINES, invariance)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(len(json.loads(ended.stdout)["checks"]), checks)

    def test_nothing_to_compare_is_an_error(self) -> None:
        for device, lines in (("cuda:7", self.LINES), ("cuda", []), ("cuda", ["1,2,300"])):
            ended = check(device, "fp16", lines)
            self.assertEqual(ended.returncode, 70, ended.stdout)
            self.assertEqual(ended.stdout, "")


if __name__ == "__main__":
    if not TINY.exists():
        print("skipped: no oracle folder: set SKEIN_ORACLE")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
