#!/usr/bin/env python3
"""Shows that a seeded answer of the running server is its own: byte for byte the same alone and among 63 others,
streamed or not, as one of n rows, and when it has to give its slot to others every three tokens. How the scheduler packs
a crowd into ticks is shown by scheduler_test; here only texts and states of the server count, never its pace."""
import os
import unittest
from functools import partial
from typing import Any, Dict, List

from golden_data import GEN_7, TINY
from program import Server, at_once

CROWDED = ["engine.slots=64", "engine.max_tick_tokens=80", "engine.prefill_chunk_tokens=20"]

PROMPTS = ["The ", "In the morning", "She said: ", "1, 2, 3", "\n", "Once upon a time there was a king"]


def request(i: int) -> Dict[str, Any]:
    """The i-th of many seeded requests that differ in prompt, sampler and length; every fifth has three rows."""
    return {"prompt": PROMPTS[i % len(PROMPTS)], "seed": 1000 + i, "max_tokens": 24 + 7 * i % 40, "ignore_eos": True,
            "temperature": 0.8 + 0.1 * (i % 8), "top_p": [1, 0.9, 0.5][i % 3], "top_k": [0, 40][i % 2],
            "presence_penalty": 0.3 * (i % 4), "n": 3 if i % 5 == 0 else 1}


def numbered(body: Dict[str, Any], vocab: int) -> Dict[str, Any]:
    """The same with a prompt of tokens, for a model whose vocabulary has no text."""
    return dict(body, prompt=[byte * 7 % vocab for byte in body["prompt"].encode()])


def ask(server: Server, streamed: bool, body: Dict[str, Any]) -> List[str]:
    return server.streamed_texts(**body) if streamed else server.texts(**body)


def first_difference(got: str, expected: str) -> str:
    at = len(os.path.commonprefix([got, expected]))
    return (f"characters 0 to {at} agree, then got {got[at:at + 40]!r} and expected {expected[at:at + 40]!r}; "
            f"lengths {len(got)} and {len(expected)}")


class Company(unittest.TestCase):
    maxDiff = None

    def assert_same_texts(self, got: List[str], expected: List[str], body: Dict[str, Any]) -> None:
        self.assertEqual(len(got), len(expected), f"choices of {body}")
        for row, (one, other) in enumerate(zip(got, expected)):
            if one != other:
                self.fail(f"row {row} of {body} differs: {first_difference(one, other)}\n"
                          f"got      {one!r}\nexpected {other!r}")

    def compare_crowd(self, server: Server, requests: List[Dict[str, Any]]) -> None:
        alone = [server.texts(**body) for body in requests]
        self.assertGreater(len({texts[0] for texts in alone}), 0.9 * len(alone))
        crowd = at_once([partial(ask, server, i % 2 == 1, body) for i, body in enumerate(requests)])
        for body, expected, got in zip(requests, alone, crowd):
            with self.subTest(**body):
                self.assert_same_texts(got, expected, body)

    def test_among_63_others(self) -> None:
        with Server(TINY.path, TINY.vocab, *CROWDED) as server:
            self.compare_crowd(server, [request(i) for i in range(64)])
            self.assertEqual(server.get("/health")["slots"]["total"], 64)
        with Server(GEN_7.path, GEN_7.vocab, *CROWDED) as server:
            self.compare_crowd(server, [numbered(request(i), 512) for i in range(64)])

    def test_beside_63_that_never_end(self) -> None:
        """The batch is certain: all others have a slot before the first is compared, and sample in every tick."""
        with Server(TINY.path, TINY.vocab, *CROWDED) as server:
            alone = [server.texts(**request(i)) for i in range(0, 24, 3)]
            with server.busy(63, [dict(request(i), n=1, max_tokens=1000000) for i in range(63)]):
                before = server.get("/health")
                for i, expected in zip(range(0, 24, 3), alone):
                    body = request(i)
                    with self.subTest(**body):
                        self.assert_same_texts(ask(server, i % 2 == 1, body), expected, body)
                after = server.get("/health")
            tokens = after["tokens"]["generated"] - before["tokens"]["generated"]
            ticks = after["ticks"] - before["ticks"]
            self.assertGreater(ticks, 0)
            self.assertGreater(tokens, 40 * ticks)  # 63 of the others, but when three rows need their slots

    def test_one_of_64_prompts_of_one_request(self) -> None:
        """A prompt draws the same wherever it stands in the list."""
        prompts = [f"{PROMPTS[i % len(PROMPTS)]}{i}" for i in range(64)]
        with Server(TINY.path, TINY.vocab, *CROWDED) as server:
            for i in range(8):
                body = dict(request(i), n=1, max_tokens=100)
                alone = server.texts(**dict(body, prompt=prompts[i]))
                shift = (i - 20) % len(prompts)  # prompt i comes to stand at place 20
                together = server.texts(**dict(body, prompt=prompts[shift:] + prompts[:shift]))
                self.assert_same_texts(together[20:21], alone, dict(body, prompt=prompts[i]))

    def test_when_slots_are_taken_in_turns(self) -> None:
        with Server(TINY.path, TINY.vocab, "engine.slots=2", "queue.turn_tokens=3") as server:
            self.compare_crowd(server, [request(i) for i in range(10)])
            self.assertGreater(server.get("/health")["requests"]["preempted"], 20)

    def test_no_turns_without_room_to_park(self) -> None:
        with Server(TINY.path, TINY.vocab, "engine.slots=2", "queue.turn_tokens=3", "queue.parked_max=0") as server:
            at_once([partial(server.texts, **dict(request(i), n=1)) for i in range(4)])
            self.assertEqual(server.get("/health")["requests"]["preempted"], 0)

    def test_streamed_or_not_and_in_rows(self) -> None:
        with Server(TINY.path, TINY.vocab) as server:
            for i in range(6):
                body = dict(request(i), n=1)
                [alone] = server.texts(**body)
                rows = server.texts(**dict(body, n=4))
                with self.subTest(**body):
                    self.assert_same_texts(server.streamed_texts(**body), [alone], body)
                    self.assert_same_texts(rows[:1], [alone], body)
                    self.assert_same_texts(server.streamed_texts(**dict(body, n=4)), rows, body)
                    self.assertEqual(len(set(rows)), 4)
                    self.assertNotEqual(server.texts(**dict(body, seed=1)), [alone])


if __name__ == "__main__":
    unittest.main()
