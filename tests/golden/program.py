"""Runs the built program: `skein logits` for one list of tokens, and `skein serve` as a server to talk to.
SKEIN_BINARY names the program."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

import numpy as np

from golden_data import ROOT, tensor_files

BINARY = os.environ.get("SKEIN_BINARY") or str(ROOT / "build/dev/skein")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("SKEIN_")}


class Fed(NamedTuple):
    logits: bytes  # float32 [tokens, vocab]
    state: bytes   # the state's file


def logits(model: pathlib.Path, tokens: Sequence[int], dtype: str, chunk: int, threads: int,
           state_in: Optional[pathlib.Path] = None, state_out: Optional[pathlib.Path] = None,
           device: str = "cpu", weight_format: str = "") -> Fed:
    with tempfile.TemporaryDirectory() as folder:
        ids, out = os.path.join(folder, "ids"), os.path.join(folder, "out")
        state_out = state_out or pathlib.Path(folder, "state.safetensors")
        pathlib.Path(ids).write_text(",".join(map(str, tokens)))
        command = [BINARY, "logits", "--model", model, "--device", device, "--dtype", dtype, "--threads", str(threads),
                   "--chunk", str(chunk), "--tokens-file", ids, "--out", out, "--state-out", state_out]
        if state_in:
            command += ["--state-in", state_in]
        if weight_format:
            command += ["--weight-format", weight_format]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"skein logits ended with {done.returncode}: {done.stderr}")
        return Fed(pathlib.Path(out).read_bytes(), state_out.read_bytes())


def read_state(file: bytes) -> Dict[str, np.ndarray]:
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as copy:
        copy.write(file)
        copy.flush()
        return {name: array.astype(np.float64) for name, array in tensor_files.read_tensors(copy.name).items()}


class Server:
    """`skein serve` on a free port, from entering to leaving; it must end with 0."""

    def __init__(self, model: pathlib.Path, vocab: str, *settings: str, dtype: str = "auto") -> None:
        self._command = [BINARY, "serve", "--port", "0", "--device", "cpu", "--model", str(model), "--model-name",
                         "golden", "--vocab", vocab, "--dtype", dtype, "--log-format", "json"]
        for setting in ("drain.grace_ms=0", *settings):
            self._command += ["--set", setting]

    def __enter__(self) -> "Server":
        self._process = subprocess.Popen(self._command, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                                         stderr=subprocess.PIPE, text=True)
        self._log: List[str] = []
        for line in self._process.stderr:
            self._log.append(line)
            if '"msg":"ready"' in line:
                self._port = json.loads(line)["port"]
                break
        else:
            self._process.stderr.close()
            raise AssertionError(f"skein ended with {self._process.wait()} before it was ready:\n{''.join(self._log)}")
        self._reader = threading.Thread(target=lambda: self._log.extend(self._process.stderr))
        self._reader.start()
        return self

    def __exit__(self, kind: Any, *_rest: Any) -> None:
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait()
        self._reader.join()
        self._process.stderr.close()
        if kind is None and code != 0:
            raise AssertionError(f"skein ended with {code}:\n{''.join(self._log)}")

    def _answer(self, method: str, path: str, body: Optional[Dict[str, Any]]) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, path, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            read = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise AssertionError(f"{path} answered {response.status}: {read!r}")
        return read

    def await_slots(self, used: int) -> None:
        """Waits until `used` slots are used; the timeout only ends a test that would hang."""
        end = time.monotonic() + 300
        while (health := self.get("/health"))["slots"]["used"] != used:
            if time.monotonic() > end:
                raise AssertionError(f"never got to {used} slots: {health}")
            time.sleep(0.01)

    @contextlib.contextmanager
    def busy(self, slots: int, bodies: Sequence[Dict[str, Any]]) -> Iterator[None]:
        """Within, these completions run, which must not end by themselves."""
        with contextlib.ExitStack() as connections:
            for body in bodies:
                connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
                connections.callback(connection.close)
                connection.request("POST", "/v1/completions", json.dumps(body).encode(),
                                   {"Content-Type": "application/json"})
            self.await_slots(slots)
            yield
        self.await_slots(0)

    def get(self, path: str) -> Dict[str, Any]:
        return json.loads(self._answer("GET", path, None))

    def post(self, path: str, **body: Any) -> Dict[str, Any]:
        return json.loads(self._answer("POST", path, body))

    def completion(self, **body: Any) -> List[Dict[str, Any]]:
        """The choices of a completion, in order."""
        return self.post("/v1/completions", **body)["choices"]

    def stream(self, **body: Any) -> Iterator[Dict[str, Any]]:
        """The events of a streamed completion."""
        events = self._answer("POST", "/v1/completions", dict(body, stream=True)).decode()  # strict: whole characters
        lines = [line[len("data: "):] for line in events.split("\n") if line.startswith("data: ")]
        if lines[-1] != "[DONE]":
            raise AssertionError(f"the stream ends with {lines[-1]}")
        return (json.loads(line) for line in lines[:-1])

    def streamed_texts(self, **body: Any) -> List[str]:
        """The texts of all choices of a streamed completion."""
        texts: Dict[int, str] = {}
        for event in self.stream(**body):
            for choice in event["choices"]:
                texts[choice["index"]] = texts.get(choice["index"], "") + choice["text"]
        return [texts[index] for index in sorted(texts)]

    def texts(self, **body: Any) -> List[str]:
        return [choice["text"] for choice in self.completion(**body)]


def at_once(calls: Sequence[Any]) -> List[Any]:
    """The results of all calls, run at the same time."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(calls)) as pool:
        return [running.result() for running in [pool.submit(call) for call in calls]]
