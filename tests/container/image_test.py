#!/usr/bin/env python3
"""Builds the images of packaging/container from the packages of this build, on a base that debootstrap makes, and runs them:
a server without a secret does not start; with one it serves as its user on a read-only root, is healthy, reads a model
from a folder that it cannot write, keeps sessions over a new container, and stops with 0. The CUDA image says that there
is no GPU, and serves on the CPU. compose.yaml starts the server and a Prometheus that reads its metrics.

    image_test.py CPACK BUILD ROOT        ends with 77 where this machine cannot build or run containers
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "package"))
import packages  # noqa: E402
from containers import bridge_lacking, engine, enter_namespaces, no_containers  # noqa: E402

URL = "http://127.0.0.1:8000"
PASSWORD = "of-this-test"
# In the network of this test; the other flags are those of compose.yaml.
RUN = ["run", "--network", "host", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL",
       "--security-opt", "no-new-privileges"]
SECRET = ["--env", f"SKEIN_SERVER_PASSWORD={PASSWORD}"]
PROMETHEUS = """FROM localhost/base
RUN apt-get update && apt-get install -y --no-install-recommends prometheus && install -d -o nobody /prometheus
USER nobody
ENTRYPOINT ["prometheus", "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
"""


def expect(truth: bool, what: str):
    if not truth:
        raise AssertionError(what)


def ask(url: str, body=None, password=PASSWORD):
    request = urllib.request.Request(url, data=json.dumps(body).encode() if body else None,
                                     headers={"Authorization": f"Bearer {password}"} if password else {})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def wait_for(what: str, happened, limit_s=60):
    end = time.monotonic() + limit_s
    while not happened():
        expect(time.monotonic() < end, f"{what}: not within {limit_s} s")
        time.sleep(0.2)


def context_of(folder: pathlib.Path, found: dict, root: pathlib.Path) -> pathlib.Path:
    """The root of a repository as far as the Containerfile sees it."""
    (folder / "build/release/package").mkdir(parents=True)
    for package in found.values():
        shutil.copy(package, folder / "build/release/package")
    shutil.copytree(root / "packaging/container", folder / "packaging/container",
                    ignore=shutil.ignore_patterns("secrets", "models"))
    return folder


class server:
    """A container: `with` waits until it is healthy; at the end it is stopped and must exit with 0."""

    def __init__(self, here: engine, image: str, *arguments):
        self.here = here
        here.run("podman", *RUN, "--detach", "--name", "server", *SECRET, *arguments, image)

    def __enter__(self):
        try:
            wait_for("a healthy container",
                     lambda: self.here.run("podman", "healthcheck", "run", "server", check=False).returncode == 0)
        except AssertionError:
            print(self.log())
            raise
        return self

    def __exit__(self, kind, *_):
        if kind:
            print(self.log())
        self.here.run("podman", "stop", "--time", "60", "server")
        status = self.here.run("podman", "inspect", "server", "--format", "{{.State.ExitCode}}").stdout.strip()
        self.here.run("podman", "rm", "--force", "server")
        expect(kind is not None or status == "0", f"the stopped server exits with {status}")

    def log(self) -> str:
        ended = self.here.run("podman", "logs", "server", check=False)
        return ended.stdout + ended.stderr

    def execute(self, *command, check=True):
        return self.here.run("podman", "exec", "server", *command, check=check)


def needs_a_secret(here: engine):
    ended = here.run("podman", *RUN, "--rm", "skein", check=False)
    expect(ended.returncode == 78 and "--password-file" in ended.stderr, f"without a secret: {ended}")


def say(text: str, session: str) -> dict:
    return ask(f"{URL}/v1/chat/completions",
               {"session_id": session, "max_tokens": 4, "messages": [{"role": "user", "content": text}]})["session"]


def serves_as_its_user(here: engine, models: pathlib.Path):
    state = ["--volume", "state:/var/lib/skein"]
    with server(here, "skein", *state) as first:
        # The server's own process: one that exec starts may have other ids.
        ids = first.execute("sh", "-c", "grep -E '^(Uid|Gid|CapEff):' /proc/1/status").stdout.split()
        expect(ids == ["Uid:", *["990"] * 4, "Gid:", *["990"] * 4, "CapEff:", "0" * 16], f"the server runs as {ids}")
        expect(first.execute("touch", "/usr/bin/x", check=False).returncode != 0, "the program's folder can be written")
        try:
            ask(f"{URL}/v1/models", password="")
            raise AssertionError("the server answers without the password")
        except urllib.error.HTTPError as answer:
            expect(answer.code == 401, f"without the password: {answer.code}")
        expect(say("I am Anna.", "anna")["version"] == 1, "the session is not new")
    own = ["--volume", f"{models}:/models:ro", "--env", "SKEIN_MODEL_PATH=/models/own.safetensors"]
    with server(here, "skein", *state, *own) as second:
        expect(say("Who am I?", "anna")["version"] == 2, "the session did not outlive its container")
        expect([model["id"] for model in ask(f"{URL}/v1/models")["data"]] == ["own"], "the model is not the mounted one")
        expect(second.execute("touch", "/models/x", check=False).returncode != 0, "models can be written")
        listed = second.execute("skein", "state", "list", "--state-dir", "/var/lib/skein").stdout
        expect("anna" in listed, f"skein state list: {listed}")


def cuda_serves_without_gpu(here: engine):
    with server(here, "skein:cuda") as on_cpu:
        line = next((json.loads(text) for text in on_cpu.log().split("\n") if '"no GPU: the CPU serves"' in text), {})
        expect("no NVIDIA driver" in line.get("why", ""), f"the log says of the missing GPU: {line}")
    ended = here.run("podman", *RUN, "--rm", *SECRET, "skein:cuda", "serve", "--device", "cuda", check=False)
    expect(ended.returncode == 69 and "no device cuda" in ended.stderr, f"--device cuda without a GPU: {ended}")


def composed_with_prometheus(here: engine, folder: pathlib.Path):
    (folder / "models").mkdir()
    (folder / "secrets").mkdir(mode=0o700)
    secret = folder / "secrets/password"
    secret.write_text(f"{PASSWORD}\n")
    os.chown(secret, 0, 990)
    secret.chmod(0o640)
    here.environment["PROMETHEUS_IMAGE"] = "localhost/prometheus"
    here.run("podman-compose", "up", "-d", cwd=folder)

    def scraped() -> bool:
        try:
            targets = ask("http://127.0.0.1:9090/api/v1/targets", password="")["data"]["activeTargets"]
        except OSError:
            return False
        return [target["health"] for target in targets] == ["up"]

    try:
        wait_for("a Prometheus that reads the metrics", scraped)
        answer = ask("http://127.0.0.1:9090/api/v1/query?query=skein_stored_sessions", password="")
        expect(answer["data"]["result"] != [], f"the metrics are {answer}")
        expect(ask(f"{URL}/v1/models")["data"] != [], "no model")
        log = here.run("podman-compose", "logs", "skein", cwd=folder, check=False)
        expect("a file of secrets can be read" not in log.stdout + log.stderr, "every user can read the password")
    finally:
        here.run("podman-compose", "down", cwd=folder, check=False)


def own_model(root: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    folder.mkdir()
    for suffix in ("safetensors", "vocab.txt"):
        shutil.copy(root / f"models/demo/skein-demo.{suffix}", folder / f"own.{suffix}")
    return folder


def life(here: engine, folder: pathlib.Path, cpack: str, build: str, root: pathlib.Path):
    began = time.monotonic()

    def say_time(what: str):
        print(f"{time.monotonic() - began:5.0f} s: {what}", flush=True)

    here.make_base()
    say_time("base image")
    found = packages.make(cpack, build, folder / "made")
    context = context_of(folder / "context", found, root)
    targets = {"cpu": "skein:latest"} | ({"cuda": "skein:cuda"} if "skein-cuda" in found else {})
    for target, tag in targets.items():
        here.build(context / "packaging/container/Containerfile", context, f"localhost/{tag}", "--target", target,
                   "--build-arg", "BASE=localhost/base")
        say_time(f"image {tag}")
    lacking = "podman-compose" if not shutil.which("podman-compose") else bridge_lacking()
    if not lacking:
        (folder / "Prometheus").write_text(PROMETHEUS)
        here.build(folder / "Prometheus", context, "localhost/prometheus")
        say_time("image of Prometheus")
    here.leave_network()
    needs_a_secret(here)
    serves_as_its_user(here, own_model(root, folder / "models"))
    say_time("the CPU image runs")
    if "cuda" in targets:
        cuda_serves_without_gpu(here)
        say_time("the CUDA image runs")
    else:
        print("no skein-cuda in this build: its image was not built")
    if lacking:
        print(f"no {lacking} here: compose.yaml was not run")
    else:
        composed_with_prometheus(here, context / "packaging/container")
        say_time("compose.yaml runs")


def main(arguments: list) -> int:
    cpack, build, root = arguments[0], arguments[1], pathlib.Path(arguments[2])
    try:
        enter_namespaces()
    except no_containers as reason:
        print(f"skipped: {reason}")
        return 77
    with tempfile.TemporaryDirectory(prefix="skein-container-", dir=build) as name:
        folder = pathlib.Path(name)
        here = None
        try:
            here = engine(folder / "engine")
            life(here, folder, cpack, build, root)
        except no_containers as reason:
            print(f"skipped: {reason}")
            return 77
        finally:
            if here:
                here.end()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
