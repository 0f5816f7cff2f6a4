#!/usr/bin/env python3
"""Checks that answers depend only on the request and on the session that it continues, not on load:

    steady_answers.py SKEIN OUT.json [--answers N] [--seed S] -- ARGUMENTS OF skein serve...

For example: steady_answers.py bundle/skein out.json --answers 10000 -- --model m.pth --device cuda --state-dtype fp16

Every request (completions, chats with n, two turns of a session; seeded and greedy; some with logprobs) is first sent
alone to a server with default settings. Then all are sent at once to a server with few slots and small ticks, with a
warm prefix cache, together with clients that hang up and slow readers of streams. Every complete answer must have the
same bytes. Prints the differences; exit status 1 if there are any, or if fewer than half of the answers are complete.
"""
import concurrent.futures
import http.client
import json
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time

WORDS = ("river", "stone", "the", "a", "winter", "seven", "machine", "quiet", "light", "of", "under", "and", "paper",
         "walks", "north", "0x1f", "Zeile", "\n\n", "because", "it", "never", "returns", "window")
AT_ONCE = 96


def text(dice: random.Random, words: int) -> str:
    return " ".join(dice.choice(WORDS) for _ in range(words))


def make_requests(count: int, dice: random.Random) -> list:
    """Requests as lists of steps, each a path and a body; a later step continues the session of the previous one."""
    beginnings = [text(dice, dice.choice((20, 70, 200, 600))) for _ in range(20)]
    requests = []
    for number in range(count):
        prompt = (dice.choice(beginnings) + " " if dice.random() < 0.5 else "") + text(dice, dice.randrange(1, 300))
        common = {"seed": number, "temperature": dice.choice((0, 1)), "max_tokens": dice.randrange(1, 40)}
        if dice.random() < 0.3:
            common["n"] = 3
        if dice.random() < 0.5:
            steps = [("/v1/completions", {"prompt": prompt, "logprobs": dice.choice((None, 2)), **common})]
        else:
            body = {"messages": [{"role": "user", "content": prompt}], "stop": dice.choice((None, "e"))}
            steps = [("/v1/chat/completions", {**body, **common})]
            if "n" not in common and dice.random() < 0.5:
                again = {"messages": [{"role": "user", "content": text(dice, dice.randrange(1, 90))}], **common}
                steps.append(("/v1/chat/completions", again))
                for _, step in steps:
                    step["session_id"] = f"s{number}"
        requests.append([(path, {k: v for k, v in body.items() if v is not None}) for path, body in steps])
    return requests


class Server:
    def __init__(self, skein: str, arguments: list, folder: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen([skein, "serve", "--host", "127.0.0.1", "--port", str(self.port),
                                         "--state-dir", folder, *arguments])
        for _ in range(1200):
            if self.process.poll() is not None:
                sys.exit(f"the server ended with {self.process.returncode}")
            try:
                if self.ask("GET", "/readyz")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.5)
        sys.exit("the server was not ready in ten minutes")

    def ask(self, method: str, path: str, body: dict | None = None) -> tuple:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=900)
        try:
            connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def complete(self, request: list) -> list | None:
        """The answer to each step; None if one was refused."""
        answers = []
        for path, body in request:
            for _ in range(200):
                status, said = self.ask("POST", path, body)
                if status not in (429, 503):
                    break
                time.sleep(0.2)
            if status != 200:
                return None
            answers.append(json.dumps(json.loads(said)["choices"], sort_keys=True))
        return answers

    def disturb(self, number: int, dice: random.Random) -> None:
        """Opens a stream and hangs up after a while, or reads it slowly to its end."""
        body = {"prompt": text(dice, dice.randrange(1, 600)), "max_tokens": 200, "stream": True}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=900)
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        if number % 3 == 0:
            time.sleep(dice.random() / 5)  # perhaps in the middle of its prompt
        else:
            answer = connection.getresponse()
            while number % 3 == 1 and answer.read(200):
                time.sleep(0.05)
            answer.read(100)
        connection.close()

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(120)


def main() -> int:
    words = sys.argv[1:]
    if "--" not in words or words.index("--") < 2:
        sys.exit(__doc__)
    own, arguments = words[:words.index("--")], words[words.index("--") + 1:]
    options = dict(zip(own[2::2], own[3::2]))
    count, seed = int(options.get("--answers", 2000)), int(options.get("--seed", 1))
    requests = make_requests(count, random.Random(seed))
    with tempfile.TemporaryDirectory() as folder:
        server = Server(own[0], arguments, folder)
        alone = [server.complete(request) for request in requests]
        server.end()
    small = ["--slots", "24", "--set", "engine.max_tick_tokens=200", "--set", "engine.prefill_chunk_tokens=96",
             "--set", "queue.turn_tokens=8"]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        server = Server(own[0], [*arguments, *small], folder)
        dice = random.Random(seed + 1)
        disturbed = [pool.submit(server.disturb, i, random.Random(i)) for i in range(AT_ONCE // 4)]
        order = list(range(count))
        dice.shuffle(order)
        together = {}
        for place, number in enumerate(order):
            together[number] = pool.submit(server.complete, requests[number])
            if place % 8 == 0:
                disturbed.append(pool.submit(server.disturb, place, random.Random(place)))
        got = {number: answer.result() for number, answer in together.items()}
        server.end()
    whole = [i for i in range(count) if alone[i] is not None and got[i] is not None]
    differ = [i for i in whole if alone[i] != got[i]]
    for i in differ[:5]:
        print(f"request {i} differs: {json.dumps(requests[i])[:300]}\n  alone    {alone[i]}\n  together {got[i]}")
    answers = sum(body.get("n", 1) for i in whole for _, body in requests[i])
    report = {"asked": count, "complete": len(whole), "answers": answers, "differ": len(differ), "seed": seed, "arguments": arguments}
    pathlib.Path(own[1]).write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report))
    return 1 if differ or 2 * len(whole) < count else 0


if __name__ == "__main__":
    sys.exit(main())
