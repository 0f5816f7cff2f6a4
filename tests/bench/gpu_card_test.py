#!/usr/bin/env python3
"""Shows what bench/gpu/run.sh gives the owner of a card: one file with a report, also of a card that computes wrongly; and
without a card a clear refusal and no file. The emulator is the card.

    gpu_card_test.py FOLDER_OF_THE_SCRIPTS PROGRAM EMULATED_LIBRARY
"""
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

SCRIPTS, PROGRAM, EMULATED = map(pathlib.Path, sys.argv[1:4])
# Writes zeros as the logits of the GPU.
WRONG = """#!/bin/sh
"{program}" "$@" || exit
case "$*" in logits*hip*) for last; do :; done; head -c "$(stat -c %s "$last")" /dev/zero >"$last.0"; mv "$last.0" "$last" ;; esac
"""


class Card(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "result.tar.gz"

    def run_script(self, program=PROGRAM, **environment: str) -> subprocess.CompletedProcess:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SKEIN_")}
        return subprocess.run([SCRIPTS / "run.sh", self.file], capture_output=True, text=True, env=clean | {
            "SKEIN_BINARY": str(program), "SKEIN_CUDA_LIBRARY": "/nonexistent", "SKEIN_HIP_LIBRARY": "/nonexistent",
            "SKEIN_SIZES": "", "SKEIN_CARD_MODELS": "", "SKEIN_CARD_TOKENS": "20"} | environment)

    def report(self) -> tuple:
        with tarfile.open(self.file) as file:
            text = {name: file.extractfile(f"skein-gpu/{name}").read().decode() for name in ("gpu.json", "gpu.md")}
        return json.loads(text["gpu.json"]), text["gpu.md"]

    def test_without_a_card_it_says_so_and_writes_nothing(self) -> None:
        ended = self.run_script()
        self.assertEqual(ended.returncode, 69, ended.stderr)
        said = ended.stderr.splitlines()
        self.assertEqual(len(said), 3, said)
        self.assertIn("device: cuda is not available: libskein_cuda.so is not installed", said[0])
        self.assertIn("device: hip is not available: libskein_hip.so is not installed", said[1])
        self.assertEqual(said[2], "run.sh: no GPU that Skein can use; nothing was measured, and no file was written")
        self.assertFalse(self.file.exists())

    def test_a_file_that_cannot_be_written_is_refused_at_once(self) -> None:
        self.file = pathlib.Path("/nonexistent/result.tar.gz")
        self.assertEqual(self.run_script().returncode, 73)

    def test_one_file_has_the_whole_result(self) -> None:
        ended = self.run_script(SKEIN_HIP_LIBRARY=str(EMULATED))
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertIn(f"Result, to be sent: {self.file}", ended.stdout)
        result, text = self.report()
        self.assertTrue(result["correctness"]["ok"])
        self.assertEqual({row["dtype"] for row in result["correctness"]["parts"]["logits"]["rows"]}, {"fp32", "fp16", "bf16"})
        self.assertIn("logits: right", text)
        self.assertIn("score: right", text)

    def test_a_card_that_computes_wrongly_is_told_and_sent_too(self) -> None:
        wrong = self.folder / "wrong"
        wrong.write_text(WRONG.format(program=PROGRAM))
        wrong.chmod(0o755)
        (self.folder / "share").symlink_to(PROGRAM.resolve().parent / "share")
        ended = self.run_script(wrong, SKEIN_HIP_LIBRARY=str(EMULATED))
        self.assertEqual(ended.returncode, 1, ended.stdout + ended.stderr)
        result, text = self.report()
        self.assertFalse(result["correctness"]["parts"]["logits"]["ok"])
        self.assertTrue(result["correctness"]["parts"]["score"]["ok"])
        self.assertIn("logits: **wrong**", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
