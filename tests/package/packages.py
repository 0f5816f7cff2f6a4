"""Debian packages of a build folder, for the tests beside this file."""
import os
import pathlib
import subprocess


def make(cpack: str, build: str, into: pathlib.Path, version: str = "") -> dict:
    """Packs what the build has; its files by the names of packages. Quickly: who installs it once needs no small file."""
    command = [cpack, "-B", into, "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip"]
    if version:
        command += ["-D", f"CPACK_DEBIAN_PACKAGE_VERSION={version}"]
    subprocess.run(command, cwd=build, env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}, check=True,
                   stdout=subprocess.DEVNULL)
    return {path.name.split("_")[0]: path for path in into.glob("*.deb")}


def field(package: pathlib.Path, name: str) -> str:
    return subprocess.run(["dpkg-deb", "--field", package, name], check=True, capture_output=True, text=True).stdout.strip()
