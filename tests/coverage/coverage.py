#!/usr/bin/env python3
"""Line coverage of the product by folder, from the counters of a build with --coverage: coverage.py BUILD_FOLDER

A line counts as covered if any object file that contains it executed it. Tests, benchmarks and system headers are left
out. Exits with status 1 if there are no counters.
"""
import collections
import concurrent.futures
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src", "actors", "kernels", "config", "web")


def product_path(name, working_folder):
    """The path of a source file below the root, or None for any other file."""
    path = pathlib.Path(os.path.normpath(os.path.join(working_folder, name)))
    try:
        relative = path.relative_to(ROOT)
    except ValueError:
        return None
    return relative if relative.parts[0] in FOLDERS else None


def lines_of(counter_file):
    """{path: {line: executed}} of one object file."""
    found = collections.defaultdict(dict)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["gcov", "--json-format", "--preserve-paths", str(counter_file)],
                       cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for report in pathlib.Path(folder).glob("*.gcov.json.gz"):
            with gzip.open(report) as stream:
                data = json.load(stream)
            for file in data["files"]:
                path = product_path(file["file"], data["current_working_directory"])
                if path is None:
                    continue
                lines = found[path]
                for line in file["lines"]:
                    lines[line["line_number"]] = lines.get(line["line_number"], False) or line["count"] > 0
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    counters = sorted(pathlib.Path(sys.argv[1]).resolve().rglob("*.gcda"))
    if not counters:
        sys.exit(f"{sys.argv[1]}: no counters; run the tests of the coverage preset first")
    covered = collections.defaultdict(dict)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(lines_of, counters):
            for path, lines in found.items():
                for number, executed in lines.items():
                    covered[path][number] = covered[path].get(number, False) or executed
    totals = collections.defaultdict(lambda: [0, 0])
    for path, lines in covered.items():
        for folder in ("/".join(path.parts[:2]) if len(path.parts) > 2 else path.parts[0], "all"):
            totals[folder][0] += sum(lines.values())
            totals[folder][1] += len(lines)
    for folder, (executed, lines) in sorted(totals.items(), key=lambda item: (item[0] == "all", item[0])):
        print(f"{folder:<24} {100 * executed / lines:5.1f} % of {lines} lines")


if __name__ == "__main__":
    main()
