#!/usr/bin/env python3
"""Runs the kernel tests of a bundle under compute-sanitizer, several at a time:

    sanitize.py BUNDLE OUT.json [MINUTES [PART]]

PART: a regular expression that selects checks.
memcheck  of all tests in one process
racecheck of each test in its own process (a single process takes too long), and of GEMMs that the tests do not run on a
          card: of wide models, by pairs of blocks, and dependent GEMMs of one launch. Hazards inside kernels of the
          vendor's library are reported, but do not fail a check.

Checks that have not finished after MINUTES (default 9) are stopped and reported as "not over": neither clean nor
failed. Exit status 0 if all checks finished clean, else 1; OUT.json has the details.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

AT_ONCE = min(12, os.cpu_count() or 1)
PLAIN = ["--log_level=error", "--report_level=short", "--color_output=no"]
OF_VENDOR = re.compile(r"nvjet_")  # GEMMs of cuBLASLt
PRODUCTS = (["64", "64", "1"], ["512", "512", "4"], ["136", "1500", "1"], ["136", "3328", "4"], ["4096", "512", "1"],
            ["2048", "8192", "4"], ["turns", "3"])


def test_names(program: pathlib.Path) -> list:
    """The names of all tests, with their suites, from the indented output of --list_content."""
    said = subprocess.run([program, "--list_content"], capture_output=True, text=True, check=True)
    lines = [(len(line) - len(line.lstrip()), line.strip().rstrip("*"))
             for line in (said.stdout + said.stderr).split("\n") if line.strip()]
    names, suite = [], ""
    for (depth, name), (next_depth, _) in zip(lines, lines[1:] + [(0, "")]):
        if depth == 0:
            suite = ""
        if next_depth > depth:
            suite = name + "/"
        else:
            names.append(suite + name)
    return names


def run(check: str, command: list, until: float) -> dict:
    begin = time.monotonic()
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True)
    try:
        said, code = started.communicate(timeout=max(until - begin, 1))[0].strip(), started.returncode
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)  # the tool and the program that it runs
        started.communicate()
        said, code = "not over", None
    summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", said)
    seconds = round(time.monotonic() - begin, 1)
    row = {"check": check, "ok": code == 0 and bool(summary) and summary[-1].startswith("0 "), "seconds": seconds,
           "said": summary[-1] if summary else said[-400:]}
    if "has passed" in said and "terminated before first instrumented API call" in said:
        row |= {"ok": True, "said": "passed, without using the device"}
    at_fault = collections.Counter(re.findall(r"(?:Read|Write) access at (.*)\+0x", said))
    if at_fault:
        row["accesses"] = dict(at_fault)
    all_are_told = code == 9 and bool(summary) and sum(at_fault.values()) == 2 * int(summary[-1].split()[0])
    if "has passed" in said and all_are_told and all(OF_VENDOR.match(kernel) for kernel in at_fault):
        row |= {"ok": True, "said": row["said"] + ", all inside the vendor's kernels"}
    print(f"{check}: {row['said']}, {seconds} s", flush=True)
    return row if row["ok"] or code is None else {**row, "all": said[-4000:]}


def sanitizer_rows(bundle: pathlib.Path, minutes: float = 9, part: str = "") -> list:
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    tests, products = bundle / "tests/gpu_test_cuda", bundle / "tests/gpu_matmul_bench"
    watched = lambda name: [tool, "--tool", name, "--error-exitcode", "9"]
    jobs = [("memcheck, all tests", [*watched("memcheck"), tests, *PLAIN])]
    jobs += [(f"racecheck, GEMM {' '.join(shape)}", [*watched("racecheck"), products, "check", *shape])
             for shape in PRODUCTS]
    jobs += [(f"racecheck, {name}", [*watched("racecheck"), tests, *PLAIN, f"--run_test={name}"])
             for name in test_names(tests)]
    jobs = [job for job in jobs if re.search(part, job[0])]
    until = time.monotonic() + 60 * minutes
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda job: run(*job, until), jobs))


def main(arguments: list) -> int:
    if len(arguments) not in (2, 3, 4):
        print(__doc__, file=sys.stderr)
        return 64
    rows = sanitizer_rows(pathlib.Path(arguments[0]).resolve(), *map(float, arguments[2:3]), *arguments[3:])
    pathlib.Path(arguments[1]).write_text(json.dumps(rows, indent=1) + "\n")
    clean = sum(row["ok"] for row in rows)
    print(f"{clean} of {len(rows)} finished clean")
    return 0 if rows and clean == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
