#!/usr/bin/env python3
"""Shows that the packages of this build have all that the service needs, in its place and with its rights; that the program
in them finds its libraries where the system has them; that packing twice gives the same bytes; that the changelog speaks
of this version; and that lintian finds no error.

    package_test.py CPACK BUILD
"""
import gzip
import hashlib
import pathlib
import shutil
import subprocess
import sys
import tempfile

import packages

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAGES = [SOURCE / "README.md", SOURCE / "docs/openapi.yaml", *SOURCE.glob("docs/*.md"),
         *SOURCE.glob("docs/decisions/*.md")]

EXPECTED = {
    "skein": {
        "etc/skein/skein.toml": 0o644,
        "lib/systemd/system/skein.service": 0o644,
        "lib/systemd/system/skein.socket": 0o644,
        "usr/bin/skein": 0o755,
        "usr/lib/sysusers.d/skein.conf": 0o644,
        "usr/lib/tmpfiles.d/skein.conf": 0o644,
        "usr/share/bash-completion/completions/skein": 0o644,
        "usr/share/doc/skein/changelog.gz": 0o644,
        "usr/share/doc/skein/copyright": 0o644,
        **{f"usr/share/doc/skein/{page.relative_to(SOURCE).as_posix()}": 0o644 for page in PAGES},
        "usr/share/fish/vendor_completions.d/skein.fish": 0o644,
        "usr/share/man/man1/skein.1.gz": 0o644,
        "usr/share/man/man5/skein.toml.5.gz": 0o644,
        "usr/share/skein/demo/README.md": 0o644,
        "usr/share/skein/demo/skein-demo.safetensors": 0o644,
        "usr/share/skein/demo/skein-demo.vocab.txt": 0o644,
        "usr/share/zsh/vendor-completions/_skein": 0o644,
    },
    "skein-cuda": {
        "usr/lib/skein/libskein_cuda.so": 0o644,
        "usr/share/doc/skein-cuda/changelog.gz": 0o644,
        "usr/share/doc/skein-cuda/copyright": 0o644,
    },
    "skein-hip": {
        "usr/lib/skein/libskein_hip.so": 0o644,
        "usr/share/doc/skein-hip/changelog.gz": 0o644,
        "usr/share/doc/skein-hip/copyright": 0o644,
    },
}


def contents(package: pathlib.Path, folder: pathlib.Path) -> dict:
    subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)
    return {path.relative_to(folder).as_posix(): path.stat().st_mode & 0o777
            for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}


def output(*command) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def program_faults(root: pathlib.Path, version: str):
    """Of the files of the package skein."""
    program = root / "usr/bin/skein"
    if "RPATH" in output("readelf", "--dynamic", program) or "RUNPATH" in output("readelf", "--dynamic", program):
        yield "the program looks for libraries beside itself"
    changelog = gzip.decompress((root / "usr/share/doc/skein/changelog.gz").read_bytes()).decode()
    if not changelog.startswith(f"skein ({version}) "):
        yield f"packaging/changelog.in does not begin with version {version}"
    for page in ("man1/skein.1.gz", "man5/skein.toml.5.gz"):
        if b".SH SYNOPSIS" not in gzip.decompress((root / "usr/share/man" / page).read_bytes()):
            yield f"{page} is no manual page"
    for shell, path in (("bash", "bash-completion/completions/skein"), ("zsh", "zsh/vendor-completions/_skein"),
                        ("fish", "fish/vendor_completions.d/skein.fish")):
        if shutil.which(shell):
            subprocess.run([shell, "-n", root / "usr/share" / path], check=True)
    text = output(program, "generate", "--device", "cpu", "--prompt", "User: Hi", "--max-tokens", "3")
    if not text:
        yield "the program writes nothing with the demo model beside it"


def faults(found: dict, folder: pathlib.Path):
    if "skein" not in found or not set(found) <= set(EXPECTED):
        yield f"the packages are {sorted(found)}"
        return
    for name, package in found.items():
        root = folder / name
        files = contents(package, root)
        if files != EXPECTED[name]:
            yield f"{name}: {sorted(set(files.items()) ^ set(EXPECTED[name].items()))} are surplus or missing"
    version = packages.field(found["skein"], "Version")
    yield from program_faults(folder / "skein", version)
    for name in set(found) - {"skein"}:
        if f"skein (= {version})" not in packages.field(found[name], "Depends"):
            yield f"{name} takes a skein of another build"
    if "skein-hip" in found:
        if "libamdhip64" not in packages.field(found["skein-hip"], "Depends"):
            yield "skein-hip does not ask for the HIP runtime"
        library = folder / "skein-hip/usr/lib/skein/libskein_hip.so"
        if "RPATH" in output("readelf", "--dynamic", library) or "RUNPATH" in output("readelf", "--dynamic", library):
            yield "libskein_hip.so looks for libraries beside itself"
        symbols = [line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines()]
        if symbols != ["skein_gpu_plugin"]:
            yield f"libskein_hip.so exports {symbols}"


def main(arguments: list) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        found = packages.make(*arguments, folder / "first")
        wrong = list(faults(found, folder))
        again = packages.make(*arguments, folder / "second")
        for name, package in found.items():
            one, other = (hashlib.sha256(path.read_bytes()).digest() for path in (package, again[name]))
            if one != other:
                wrong.append(f"{name}: packed twice, and not the same")
        if shutil.which("lintian"):
            ended = subprocess.run(["lintian", "--fail-on=error", *found.values()], capture_output=True, text=True)
            print(ended.stdout, end="")
            if ended.returncode != 0:
                wrong.append("lintian finds errors")
        else:
            print("no lintian here: the packages were not shown to it")
    for fault in wrong:
        print(fault)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
