#!/usr/bin/env python3
"""Measures how fast rows with a grammar run beside rows without one:

    constrained_rows.py SKEIN OUT.json [--rows 1,32] [--seconds 4] [--rounds 3] -- ARGUMENTS OF skein serve...

For example: constrained_rows.py bundle/skein out.json -- --model m.pth --vocab v.txt --device cuda --state-dtype fp16

For each number of rows, that many answers stream at once: all free, all with a JSON Schema, and half of each. An answer
of the schema is an object whose strings have no end (the schema wants more characters than fit), so that random
weights go on, too. Prints tokens a second of all rows of a kind, medians over the rounds, and their ratio to free rows.
"""
import argparse
import http.client
import json
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

LONG = {"type": "string", "minLength": 100_000}
SCHEMA = {"type": "object", "properties": {"text": LONG}, "required": ["text"], "additionalProperties": False}


class Server:
    def __init__(self, skein: str, arguments: list, folder: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = open(pathlib.Path(folder) / "server.log", "wb")
        self.process = subprocess.Popen([skein, "serve", "--host", "127.0.0.1", "--port", str(self.port),
                                         "--state-dir", folder, *arguments], stdout=self.log, stderr=self.log)
        for _ in range(6000):
            if self.process.poll() is not None:
                raise SystemExit("the server ended:\n" + pathlib.Path(self.log.name).read_text(errors="replace")[-3000:])
            try:
                connection = self.connect()
                connection.request("GET", "/readyz")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise SystemExit("the server is not ready after ten minutes")

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.log.close()


class Answers:
    """Answers that stream until they are stopped, and count their tokens."""

    def __init__(self, server: Server, constrained: int, free: int) -> None:
        self.counts = [0] * (constrained + free)
        self.kinds = [True] * constrained + [False] * free
        self.connections = [server.connect() for _ in self.kinds]
        self.threads = [threading.Thread(target=self.read, args=(i,), daemon=True) for i in range(len(self.kinds))]
        for thread in self.threads:
            thread.start()

    def read(self, i: int) -> None:
        body = {"prompt": f"{i} Once", "max_tokens": 1_000_000, "stream": True, "temperature": 1, "seed": i,
                "ignore_eos": True}
        if self.kinds[i]:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "long", "schema": SCHEMA}}
        try:
            self.connections[i].request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
            response = self.connections[i].getresponse()
            if response.status != 200:
                raise SystemExit(response.read().decode())
            for line in response:
                self.counts[i] += line.startswith(b"data: {")
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass  # stopped

    def rates(self, seconds: float) -> tuple:
        """Tokens a second of the rows with a grammar, and of the others, when all have begun."""
        for _ in range(600):
            if all(self.counts):
                break
            time.sleep(0.1)
        else:
            raise SystemExit(f"{self.counts.count(0)} answers have not begun after a minute")
        time.sleep(0.5)
        before, begin = list(self.counts), time.monotonic()
        time.sleep(seconds)
        done, took = [b - a for a, b in zip(before, self.counts)], time.monotonic() - begin
        if not all(done):
            raise SystemExit("an answer has ended: allow longer ones (limits.max_tokens_max)")
        return tuple(sum(d for d, kind in zip(done, self.kinds) if kind == wanted) / took for wanted in (True, False))

    def stop(self) -> None:
        for connection in self.connections:
            if connection.sock:
                connection.sock.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(10)


def main() -> None:
    own, serve = sys.argv[1:], []
    if "--" in own:
        own, serve = own[:own.index("--")], own[own.index("--") + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("skein")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--rows", default="1,32")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    told = parser.parse_args(own)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        server = Server(told.skein, serve, folder)
        try:
            for rows in map(int, told.rows.split(",")):
                kinds = {"free": (0, rows), "constrained": (rows, 0)}
                if rows > 1:
                    kinds["mixed"] = (rows // 2, rows - rows // 2)
                rates = {name: [] for name in kinds}
                for _ in range(told.rounds):
                    for name, (constrained, free) in kinds.items():
                        answers = Answers(server, constrained, free)
                        rates[name].append(answers.rates(told.seconds))
                        answers.stop()
                        time.sleep(0.5)
                middle = {name: [statistics.median(of) for of in zip(*some)] for name, some in rates.items()}
                free = middle["free"][1]
                row = {"rows": rows, "free": free, "constrained": middle["constrained"][0]}
                if rows > 1:
                    row["mixed_constrained"], row["mixed_free"] = middle["mixed"]
                row["ratio"] = row["constrained"] / free
                print(f"{rows} rows: free {free:.0f}, constrained {row['constrained']:.0f} tokens/s "
                      f"({row['ratio']:.2f})", end="")
                if rows > 1:
                    print(f"; half of each: constrained {row['mixed_constrained']:.0f}, free {row['mixed_free']:.0f} "
                          f"(of half of all free rows {2 * row['mixed_constrained'] / free:.2f}, "
                          f"{2 * row['mixed_free'] / free:.2f})", end="")
                print(flush=True)
                results.append(row)
        finally:
            server.stop()
    told.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
