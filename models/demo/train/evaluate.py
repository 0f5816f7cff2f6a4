#!/usr/bin/env python3
"""Measures the demo model through a running server, on instances that training never saw.

    skein serve --port 8000 &
    evaluate.py --url http://127.0.0.1:8000 --vocabulary ../skein-demo.vocab.txt

Exact match of the whole answer, greedy and without penalties; then the same with whatever the server does by default.
An answer counts as ended when the model wrote the end of text, not when a stop string or a limit cut it. Needs the
standard library only.
"""
from __future__ import annotations

import argparse
import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any, NamedTuple

import instances
import stories
from instances import Instance
from tool_forms import Call, shown
from mixture import learn_known_words
from vocabulary import END_OF_TEXT, Vocabulary

TOKENS_MAX = 320
GREEDY = {"temperature": 0, "alpha_presence": 0, "alpha_frequency": 0}


class Answer(NamedTuple):
    text: str
    ended: bool


class Server:
    def __init__(self, url: str, password: str) -> None:
        self._url, self._password = url.rstrip("/"), password

    def ask(self, instance: Instance, fields: dict[str, Any]) -> Answer:
        # The end of text is the only stop, so that finish_reason tells whether the model wrote it.
        body: dict[str, Any] = {"max_tokens": TOKENS_MAX, "stop_tokens": [END_OF_TEXT], **fields}
        if instance.is_chat():
            choice = self._post("/v1/chat/completions", {**instance.request(), **body})
            return Answer(text_of(choice["message"]), choice["finish_reason"] in ("stop", "tool_calls"))
        if instance.suffix is not None:
            body["suffix"] = instance.suffix
        choice = self._post("/v1/completions", {"prompt": instance.prompt, **body})
        return Answer(choice["text"], choice["finish_reason"] == "stop")

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._password}"}
        request = urllib.request.Request(self._url + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=600) as response:
            choice: dict[str, Any] = json.load(response)["choices"][0]
        return choice


def text_of(message: dict[str, Any]) -> str:
    """The answer, its calls as the instances have them."""
    text = message["content"] or ""
    calls = [Call(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls") or []]
    try:
        return text + shown(calls)
    except ValueError:  # cut within the arguments
        return text + str(calls)


def share(part: int, whole: int) -> str:
    return f"{100 * part / max(1, whole):.1f} %"


def measure(server: Server, pool: ThreadPoolExecutor, count: int, shown: int) -> None:
    """The table of the model card."""
    print("| ability | instances | exact, greedy | ended | exact, server's defaults | ended |")
    print("|---|---|---|---|---|---|")
    totals = [0, 0, 0]
    wrong: list[str] = []
    for ability in instances.ABILITIES:
        asked = instances.make(ability, count)
        greedy = list(pool.map(lambda i: server.ask(i, GREEDY), asked))
        default = list(pool.map(lambda i: server.ask(i, {"seed": 1}), asked))
        cells = [ability, str(len(asked))]
        for answers in (greedy, default):
            right = sum(a.text in i.expected for a, i in zip(answers, asked))
            cells += [share(right, len(asked)), share(sum(a.ended for a in answers), len(asked))]
        print("| " + " | ".join(cells) + " |", flush=True)
        totals[0] += len(asked)
        totals[1] += sum(a.ended for a in greedy)
        totals[2] += sum(a.ended for a in default)
        missed = [(i, a) for i, a in zip(asked, greedy) if a.text not in i.expected]
        wrong += [f"{ability}: {i.rendered()[-160:]!r} -> {a.text!r}, not {i.expected[0]!r}" for i, a in missed[:shown]]
    print(f"| all | {totals[0]} | | {share(totals[1], totals[0])} | | {share(totals[2], totals[0])} |")
    print("\n".join(wrong))


def tell_stories(server: Server, pool: ThreadPoolExecutor, count: int) -> None:
    """Stories about heroes and names that were held out together, with the server's default sampler."""
    rng = Random(20)
    subjects = [stories.subject(rng, held_out=True) for _ in range(count)]
    asked = [Instance([], [{"role": "user", "content": stories.request_for_hero(rng, s)}]) for s in subjects]
    told = list(pool.map(lambda pair: server.ask(pair[1], {"seed": pair[0]}), enumerate(asked)))
    kept = sum(s.hero in a.text for s, a in zip(subjects, told))
    print(f"\n{count} stories: {share(kept, count)} tell of the hero asked for, "
          f"{share(sum(a.ended for a in told), count)} ended\n")
    for instance, answer in list(zip(asked, told))[:20]:
        print(f"**{instance.messages[0]['content']}**\n{answer.text}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--password", default="none")
    parser.add_argument("--vocabulary", required=True)
    parser.add_argument("--count", type=int, default=200, help="instances of each ability")
    parser.add_argument("--stories", type=int, default=200)
    parser.add_argument("--wrong", type=int, default=5, help="wrong answers to show of each ability")
    parser.add_argument("--parallel", type=int, default=8)
    args = parser.parse_args()
    learn_known_words(Vocabulary.load(args.vocabulary))
    server = Server(args.url, args.password)
    with ThreadPoolExecutor(args.parallel) as pool:
        measure(server, pool, args.count, args.wrong)
        tell_stories(server, pool, args.stories)


if __name__ == "__main__":
    main()
