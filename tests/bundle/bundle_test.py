#!/usr/bin/env python3
"""Shows that a bundle is whole, on the one that this build gives: every library that a program of it needs lies inside
or belongs to any system with a C++ run time, nothing is a link, and the program writes with the demo model in it. And
that no program takes libraries from the working directory, in the bundle or in the build folder.

    bundle_test.py CMAKE BUILD
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

OF_THE_SYSTEM = re.compile(r"(linux-vdso|ld-linux-x86-64|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+))\.so[.\d]*")
NEEDED_LINE = re.compile(r"\s*(\S+)(?: => (.+?))?(?: \(0x[0-9a-f]+\))?")


def outside(program: pathlib.Path, bundle: pathlib.Path, environment: dict) -> list:
    """What the loader finds for `program` outside the bundle, or nowhere."""
    said = subprocess.run(["ldd", program], env=environment, check=True, capture_output=True, text=True).stdout
    found = [NEEDED_LINE.fullmatch(line).groups() for line in said.splitlines()]
    return [(name, where) for name, where in found if not OF_THE_SYSTEM.fullmatch(pathlib.Path(name).name)
            and not pathlib.Path(where or "nowhere").is_relative_to(bundle)]


def unsafe_folders(program: pathlib.Path) -> list:
    """Where the loader looks for the program's libraries, but for absolute folders and those beside the program."""
    said = subprocess.run(["readelf", "--dynamic", program], check=True, capture_output=True, text=True).stdout
    paths = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", said)
    return [folder for path in paths for folder in path.split(":")
            if not folder.startswith("/") and folder != "$ORIGIN" and not folder.startswith("$ORIGIN/")]


def built_programs(build: pathlib.Path) -> list:
    found = [build / "skein", *build.rglob("*.so")]
    return [path for path in found if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]


def faults(bundle: pathlib.Path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SKEIN_", "LD_"))}
    files = [path for path in bundle.rglob("*") if not path.is_dir() or path.is_symlink()]
    for path in files:
        if path.is_symlink():
            yield f"{path} is a link"
        elif path.read_bytes()[:4] == b"\x7fELF":
            # A library of others finds its own by the path of the program that loads it.
            for folder in unsafe_folders(path):
                yield f"{path} looks for libraries in '{folder}'"
            is_ours = path.parent != bundle / "lib" or path.name.startswith("libskein")
            own = environment if is_ours else environment | {"LD_LIBRARY_PATH": str(bundle / "lib")}
            for name, where in outside(path, bundle, own):
                yield f"{path} needs {name}, which is {where or 'nowhere'}"
    command = [bundle / "skein", "generate", "--device", "cpu", "--prompt", "User: Hi", "--max-tokens", "3"]
    ended = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True)
    if ended.returncode != 0 or not ended.stdout:
        yield f"skein generate ended with {ended.returncode}: {ended.stderr}"


def main(arguments: list) -> int:
    cmake, build = arguments
    with tempfile.TemporaryDirectory() as folder:
        bundle = pathlib.Path(folder).resolve() / "bundle"
        subprocess.run([cmake, "--install", build, "--component", "bundle", "--strip", "--prefix", bundle], check=True,
                       stdout=subprocess.DEVNULL)
        found = list(faults(bundle))
    for path in built_programs(pathlib.Path(build)):
        found += [f"{path} looks for libraries in '{folder}'" for folder in unsafe_folders(path)]
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
