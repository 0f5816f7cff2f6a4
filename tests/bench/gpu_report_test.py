#!/usr/bin/env python3
"""Shows that the report and the charts of a GPU run tell what is in its files and nothing else, and that trouble shows.

    gpu_report_test.py FOLDER_OF_THE_SCRIPTS
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SCRIPTS = pathlib.Path(sys.argv[1])


def case(sequences: int, share) -> dict:
    return {"kind": "decode", "sequences": sequences, "tokens": 1, "median_s": 0.004, "fastest_s": 0.003,
            "slowest_s": 0.005, "tokens_per_s": 250.0 * sequences, "weight_bytes": 13.8e9, "state_bytes": 1e8,
            "flop": 1e10, "share_of_read": share, "share_of_flop": share, "share_of_least": share,
            "read_limit_bytes_per_s": share and 4.3e12, "limit_flop_per_s": share and 8e14}


def bench(share=0.8) -> dict:
    return {"model": "random weights of size 7.2b", "device": "cuda:0 G", "weight_type": "fp16", "state_type": "fp32",
            "invariance": "default",
            "load_s": 2.5, "flop_source": "a library", "cases": [case(1, share), case(960, share)]}


def correctness(ok: bool) -> dict:
    row = {"check": "plain", "ok": ok, "said": "all fine"}
    return {"ok": ok, "parts": {"kernels": {"ok": ok, "rows": [row], "seconds": 3.0}}}


class Folder:
    """What run.sh leaves, made up."""

    def __enter__(self) -> "Folder":
        self._folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self._folder.name)
        (self.path / "gpu.txt").write_text("A GPU, 1.0\n")
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def write(self, name: str, what: dict) -> None:
        (self.path / name).write_text(json.dumps(what))

    def report(self) -> int:
        return subprocess.run([sys.executable, SCRIPTS / "report.py", self.path, "abc123"]).returncode

    def chart(self, *names: str) -> int:
        return subprocess.run([sys.executable, SCRIPTS / "chart.py", *[self.path / name for name in names]],
                              capture_output=True).returncode


class Report(unittest.TestCase):
    def test_everything_is_told(self) -> None:
        with Folder() as folder:
            folder.write("correctness.json", correctness(True))
            folder.write("bench-7.2b-fp32.json", bench())
            self.assertEqual(folder.report(), 0)
            whole, page = json.loads((folder.path / "gpu.json").read_text()), (folder.path / "gpu.md").read_text()
            self.assertEqual(whole["commit"], "abc123")
            self.assertEqual(whole["bench"], [bench()])
            for piece in ("abc123", "A GPU, 1.0", "kernels: right", "| decode 960x1 | 240000 | 4.000 ms |",
                          "4300.0 GB/s"):
                self.assertIn(piece, page)

    def test_what_did_not_run_is_not_told(self) -> None:
        with Folder() as folder:
            folder.write("correctness.json", correctness(True))
            self.assertEqual(folder.report(), 0)
            self.assertNotIn("bench", json.loads((folder.path / "gpu.json").read_text()))
            self.assertNotIn("tokens/s", (folder.path / "gpu.md").read_text())
        with Folder() as folder:
            self.assertEqual(folder.report(), 1)

    def test_what_is_wrong_is_said_and_ends_with_1(self) -> None:
        with Folder() as folder:
            folder.write("correctness.json", correctness(False))
            self.assertEqual(folder.report(), 1)
            self.assertIn("**wrong**", (folder.path / "gpu.md").read_text())


class Run(unittest.TestCase):
    """run.sh with programs made up for it."""

    def run_it(self, folder: Folder, part: str, gpu: bool = True, skein: str = 'echo "$FIGURES" >"$4"') -> int:
        tools = folder.path / "tools"
        for name, script in (("tools/nvidia-smi", "echo A GPU" if gpu else "exit 9"), ("bundle/skein", skein)):
            (folder.path / name).parent.mkdir(exist_ok=True)
            (folder.path / name).write_text(f"#!/bin/sh\n{script}\n")
            (folder.path / name).chmod(0o755)
        environment = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}", FIGURES=json.dumps(bench()),
                           SKEIN_SIZES="0.4b", SKEIN_MODELS=str(folder.path))
        command = [SCRIPTS / "run.sh", folder.path / "bundle", folder.path, folder.path / "out", "abc", part]
        return subprocess.run(command, env=environment, capture_output=True).returncode

    def test_the_bench_of_each_state_type_is_reported(self) -> None:
        with Folder() as folder:
            self.assertEqual(self.run_it(folder, "bench"), 0)
            self.assertEqual(len(json.loads((folder.path / "out/gpu.json").read_text())["bench"]), 2)

    def test_trouble_is_told_by_the_exit_code(self) -> None:
        with Folder() as folder:
            self.assertEqual(self.run_it(folder, "bench", skein="exit 70"), 1)
            self.assertEqual(self.run_it(folder, "bench", gpu=False), 69)
            self.assertEqual(self.run_it(folder, "nonsense"), 64)
            self.assertEqual(self.run_it(folder, "all"), 1)  # nothing there to be right
            self.assertNotIn("bench", json.loads((folder.path / "out/gpu.json").read_text()))


class Chart(unittest.TestCase):
    def elements(self, folder: Folder, tag: str) -> int:
        tree = xml.etree.ElementTree.parse(folder.path / "chart.svg")
        return len(tree.findall(".//{http://www.w3.org/2000/svg}" + tag))

    def test_a_line_a_model_in_each_panel(self) -> None:
        with Folder() as folder:
            folder.write("gpu.json", {"bench": [bench(), bench()]})
            self.assertEqual(folder.chart("gpu.json", "chart.svg"), 0)
            self.assertEqual(self.elements(folder, "polyline"), 4)
            self.assertEqual(self.elements(folder, "circle"), 8)

    def test_without_limits_there_is_no_share(self) -> None:
        with Folder() as folder:
            folder.write("one.json", bench(None))
            self.assertEqual(folder.chart("one.json", "chart.svg"), 0)
            self.assertEqual(self.elements(folder, "polyline"), 1)

    def test_nothing_to_draw_is_an_error(self) -> None:
        with Folder() as folder:
            folder.write("gpu.json", {})
            self.assertEqual(folder.chart("gpu.json", "chart.svg"), 65)


class FormatChart(unittest.TestCase):
    FIGURES = {"sequences": [1, 8], "tokens_per_s": {"bf16": [200, 1600], "int8": [300, 2000], "nf4": [250, 1800]}}

    def drawn(self, figures: dict) -> tuple:
        """The exit status, and the texts of the image."""
        with Folder() as folder:
            folder.write("in.json", figures)
            image = folder.path / "out.svg"
            ended = subprocess.run([sys.executable, SCRIPTS / "format_chart.py", folder.path / "in.json", image],
                                   capture_output=True)
            if ended.returncode:
                return ended.returncode, []
            root = xml.etree.ElementTree.parse(image).getroot()
            return 0, [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]

    def test_each_bar_has_its_figure_and_ratio(self) -> None:
        status, texts = self.drawn(self.FIGURES)
        self.assertEqual(status, 0)
        for wanted in ("1 sequence", "8 sequences", "200", "1,600", "1.00 x", "1.50 x", "1.25 x", "nf4"):
            self.assertIn(wanted, texts)

    def test_missing_figures_are_an_error(self) -> None:
        self.assertEqual(self.drawn(dict(self.FIGURES, sequences=[1, 8, 32]))[0], 65)
        self.assertEqual(self.drawn({})[0], 65)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
