#!/usr/bin/env python3
"""Checks the files that make and run the images: every variable in them is a setting of this program, the images run as a
numbered user and from Debian's image, compose.yaml publishes on loopback alone and mounts models read-only, promtool
accepts prometheus.yml, and the health check succeeds with a ready server alone.

    files_test.py FOLDER PROGRAM
"""
import http.server
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import time


def stages(containerfile: str) -> dict:
    """The instructions of each stage by its name, as pairs of word and text; those before the first under an empty name."""
    joined = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", containerfile, flags=re.M))
    found, name = {"": []}, ""
    for line in filter(None, joined.split("\n")):
        word, text = line.split(None, 1)
        if word == "FROM":
            name = text.split(" AS ")[1]
            found[name] = []
        found[name].append((word, re.sub(r"\s+", " ", text).strip()))
    return found


def texts(instructions: list, word: str) -> list:
    return [text for found, text in instructions if found == word]


def image_faults(containerfile: str):
    found = stages(containerfile)
    if texts(found[""], "ARG") != ["BASE=debian:bookworm-slim"]:
        yield f"the base image is {texts(found[''], 'ARG')}"
    if list(found) != ["", "cpu", "cuda"]:
        yield f"the stages are {list(found)[1:]}"
    for name in ("cpu", "cuda"):
        if not re.fullmatch(r"[1-9]\d*:[1-9]\d*", (texts(found[name], "USER") or ["root"])[-1]):
            yield f"{name}: the image runs as {texts(found[name], 'USER')}"
        if any("--mount" in text for text in texts(found[name], "RUN")):
            yield f"{name}: a builder's cache does not notice that a mounted package has changed"
    check = re.search(r'CMD \["(.+)"\]$', (texts(found["cpu"], "HEALTHCHECK") or [""])[0])
    if not check or not any(text.endswith(f"/ready {check[1]}") for text in texts(found["cpu"], "COPY")):
        yield "the health check is not the script of this folder"
    if texts(found["cpu"], "VOLUME") != ["/var/lib/skein"]:
        yield f"the volumes are {texts(found['cpu'], 'VOLUME')}"


def compose_faults(compose: str):
    for port in re.findall(r'- "(\S*\d:\d+)"', compose):
        if not port.startswith("127.0.0.1:"):
            yield f"compose.yaml publishes {port}"
    if not re.search(r"^ +- \S+:/models:ro$", compose, flags=re.M):
        yield "compose.yaml does not mount models read-only"


def setting_faults(folder: pathlib.Path, program: str):
    """The program refuses unknown variables, and names those that it reads."""
    given = {}
    for file in ("Containerfile", "compose.yaml", "compose.cuda.yaml"):
        text = re.sub(r"^\s*#.*\n", "", (folder / file).read_text(), flags=re.M)
        given |= dict(re.findall(r"\b(SKEIN_[A-Z]+_[A-Z_]+)=(\S+)", text))
    if len(given) < 5:
        yield f"the variables are {sorted(given)}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SKEIN_")} | given
    environment.pop("SKEIN_SERVER_PASSWORD_FILE", None)  # this and the next are in the container
    environment["SKEIN_MODEL_ROOT"] = str(folder)
    dumped = subprocess.run([program, "serve", "--dump-config", "--password", "x"], env=environment, capture_output=True,
                            text=True, stdin=subprocess.DEVNULL)
    if dumped.returncode != 0:
        yield f"skein serve --dump-config: {dumped.stderr.strip()}"
        return
    for name in environment.keys() & given.keys():
        if name not in dumped.stdout:
            yield f"{name} is no setting"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def check_health(folder: pathlib.Path, port: int) -> int:
    ended = subprocess.run([folder / "ready"], env=os.environ | {"SKEIN_SERVER_PORT": str(port)}, capture_output=True,
                           stdin=subprocess.DEVNULL, timeout=30)
    return ended.returncode


class unready(http.server.BaseHTTPRequestHandler):
    """What /readyz answers while a model loads."""

    def do_GET(self):
        self.send_response(503)
        self.end_headers()

    def log_message(self, *_):
        pass


def health_faults(folder: pathlib.Path, program: str):
    if check_health(folder, free_port()) != 1:
        yield "the health check succeeds without a server"
    with http.server.HTTPServer(("127.0.0.1", 0), unready) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        if check_health(folder, server.server_port) != 1:
            yield "the health check succeeds after a 503"
        server.shutdown()
    port = free_port()
    environment = os.environ | {"SKEIN_SERVER_PASSWORD": "secret", "SKEIN_SERVER_PORT": str(port)}
    server = subprocess.Popen([program, "serve", "--device", "cpu", "--set", "drain.grace_ms=0"], env=environment,
                              stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while check_health(folder, port) != 0:
            if time.monotonic() > end or server.poll() is not None:
                yield "the health check fails with a ready server"
                return
            time.sleep(0.1)
    finally:
        server.terminate()
        server.wait(30)


def prometheus_faults(folder: pathlib.Path):
    if not shutil.which("promtool"):
        print("no promtool here: prometheus.yml was not checked")
        return
    ended = subprocess.run(["promtool", "check", "config", "--syntax-only", folder / "prometheus.yml"], capture_output=True,
                           text=True, stdin=subprocess.DEVNULL)
    if ended.returncode != 0:
        yield f"prometheus.yml: {ended.stdout}{ended.stderr}"


def blind_spots(containerfile: str, compose: str):
    """Deliberate faults that this test must notice."""
    for old, new in (("USER 990:990", "USER skein"), ("debian:bookworm-slim", "debian:latest"),
                     ("COPY packaging/container/ready ", "COPY x "), ("VOLUME /var/lib/skein\n", ""),
                     ("RUN apt", "RUN --mount=type=bind,source=x apt")):
        if old not in containerfile or not list(image_faults(containerfile.replace(old, new))):
            yield f"this test does not notice {new!r} for {old!r}"
    for old, new in (("127.0.0.1:8000:8000", "8000:8000"), (":/models:ro", ":/models")):
        if old not in compose or not list(compose_faults(compose.replace(old, new))):
            yield f"this test does not notice {new!r} for {old!r}"


def main(arguments: list) -> int:
    folder, program = pathlib.Path(arguments[0]), arguments[1]
    containerfile, compose = ((folder / name).read_text() for name in ("Containerfile", "compose.yaml"))
    wrong = [*image_faults(containerfile), *compose_faults(compose), *blind_spots(containerfile, compose),
             *setting_faults(folder, program), *prometheus_faults(folder), *health_faults(folder, program)]
    for fault in wrong:
        print(fault)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
