#!/usr/bin/env python3
"""Compiles changed files for their warnings, without writing objects: compile_changed.py BUILD_FOLDER FILE...

The commands come from the compile_commands.json of the build. A header is checked through the source file of the same
name, if there is one. Exits with status 1 if a file has warnings or errors.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys


def command_of(entry):
    """The command of a source file, as a check: no output, no dependency file, no precompiled header."""
    words = iter(shlex.split(entry["command"]))
    kept = []
    for word in words:
        if word in ("-o", "-MF", "-MT"):
            next(words)
        elif word == "-include":
            next(words)
        elif word not in ("-c", "-MD", "ccache") and not word.endswith("/ccache"):
            kept.append(word)
    return [*kept, "-fsyntax-only", "-Werror"]


def check(entry):
    done = subprocess.run(command_of(entry), cwd=entry["directory"], capture_output=True, text=True)
    return done.returncode, done.stderr


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with open(pathlib.Path(sys.argv[1]) / "compile_commands.json") as stream:
        entries = {entry["file"]: entry for entry in json.load(stream)}
    wanted = {}
    for name in sys.argv[2:]:
        path = pathlib.Path(name).resolve()
        for source in (path, path.with_suffix(".cpp")):
            if str(source) in entries and not str(source).endswith(".cu"):
                wanted[str(source)] = entries[str(source)]
    failed = False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for code, messages in pool.map(check, wanted.values()):
            failed |= code != 0
            sys.stderr.write(messages)
    print(f"{len(wanted)} source files compiled, {'with' if failed else 'no'} warnings")
    sys.exit(failed)


if __name__ == "__main__":
    main()
