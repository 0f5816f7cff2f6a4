#!/usr/bin/env python3
"""Shows that systemd has nothing to say against the units that are shipped, and that the service is shut in as far as a GPU
allows: an exposure of 1.6 at most. And that this test would notice: the same units with a fault each are refused.

    units_test.py UNITS PROGRAM        ends with 77 where there is no systemd-analyze
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

EXPOSURE_MAX = 16  # tenths


def said(*command) -> str:
    """What systemd-analyze finds fault with: nothing, if all is well."""
    ended = subprocess.run(["systemd-analyze", *command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return ended.stderr + (ended.stdout if ended.returncode else "")


def faults(units: pathlib.Path, program: str, change=lambda text: text) -> list:
    """Of the units as installed, but that the program is the one that was built."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        copies = [pathlib.Path(folder) / name for name in ("skein.service", "skein.socket")]
        for copy in copies:
            copy.write_text(change((units / copy.name).read_text()).replace("/usr/bin/skein", program))
        found.append(said("verify", "--man=no", *copies))
        found.append(said("security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", copies[0]))
    return [text for text in found if text.strip()]


def main(arguments: list) -> int:
    if not shutil.which("systemd-analyze"):
        print("skipped: no systemd-analyze")
        return 77
    units, program = pathlib.Path(arguments[0]), arguments[1]
    found = faults(units, program)
    for old, new in (("Type=notify", "Type=rumour"), ("ListenStream=127.0.0.1:8000", "ListenStream=nowhere:x"),
                     ("SystemCallFilter=", "#"), ("Protect", "#")):
        if not faults(units, program, lambda text: text.replace(old, new)):
            found.append(f"nothing is said against {new} for {old}")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
