#!/usr/bin/env python3
"""Shows that text of many scripts passes the running server unharmed, with the World vocabulary: a model that recites a
known text (make_models.py), which has characters in single bytes, and a random model that draws any tokens."""
import json
import unittest
from functools import partial

from golden_data import GEN_7_WORLD, MADE, ORACLE, WORLD
from program import Server, at_once

BROKEN = "\ufffd"
CHINESE = "大雁飞向南方，天鹅湖上游泳。"


class RecitedText(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.text = (MADE / "recital.txt").read_bytes().decode()
        cls.server = cls.enterClassContext(Server(MADE / "recital.safetensors", str(WORLD)))
        cls.body = {"prompt": "Recite:", "max_tokens": 500, "temperature": 0}

    def test_the_text_has_what_is_to_be_shown(self) -> None:
        self.assertIn(CHINESE[:4], self.text)
        self.assertGreater(len(self.text), 100)
        tokens = self.server.post("/tokenize", content=self.text, with_pieces=True)["tokens"]
        self.assertTrue(any(isinstance(token["piece"], list) for token in tokens), "no token is part of a character")

    def test_whole_and_streamed(self) -> None:
        self.assertEqual(self.server.texts(**self.body), [self.text])
        for chunk_size in (1, 2, 5):
            events = list(self.server.stream(**self.body, chunk_size=chunk_size))
            pieces = [choice["text"] for event in events for choice in event["choices"]]
            self.assertEqual("".join(pieces), self.text)
            self.assertFalse([piece for piece in pieces if BROKEN in piece])
            self.assertEqual(events[-1]["choices"][0]["finish_reason"], "stop")

    def test_cut_at_any_token_only_whole_characters_show(self) -> None:
        length = len(self.server.completion(**self.body, logprobs=0)[0]["logprobs"]["tokens"])
        bodies = [dict(self.body, max_tokens=count) for count in range(1, length)]
        for body, [whole], [streamed] in zip(bodies, at_once([partial(self.server.texts, **body) for body in bodies]),
                                             at_once([partial(self.server.streamed_texts, **b) for b in bodies])):
            with self.subTest(max_tokens=body["max_tokens"]):
                self.assertEqual(streamed, whole)
                self.assertTrue(self.text.startswith(whole.rstrip(BROKEN)))

    def test_stop_strings_of_any_script(self) -> None:
        starts = range(len(self.text) - 1)
        stops = [self.text[start:start + length] for start in starts for length in (1, 2, 4)]
        wanted = [stop for stop in dict.fromkeys(stops) if not stop.isascii()]
        self.assertGreater(len([stop for stop in wanted if stop in self.text and "\u4e00" <= stop[0] <= "\u9fff"]), 20)
        for first in range(0, len(wanted), 32):
            some = wanted[first:first + 32]
            bodies = [dict(self.body, stop=[stop, "不在文中"]) for stop in some]
            choices = at_once([partial(self.server.completion, **body) for body in bodies])
            streamed = at_once([partial(self.server.streamed_texts, **body) for body in bodies])
            for stop, [choice], texts in zip(some, choices, streamed):
                with self.subTest(stop=stop):
                    self.assertEqual(choice["text"], self.text[:self.text.index(stop)])
                    self.assertEqual(choice["stop_reason"], stop)
                    self.assertEqual("".join(texts), choice["text"])


class DrawnTokens(unittest.TestCase):
    def test_streams_and_echoes_of_any_tokens(self) -> None:
        prompts = [CHINESE, "Дикие гуси летят на юг", "渡り鳥は夜に鳴く", "الإوز يطير جنوبًا", "🪿🦢 wild geese", "हंस उड़ते हैं", ""]
        with Server(GEN_7_WORLD.path, GEN_7_WORLD.vocab) as server:
            for i, prompt in enumerate(prompts):
                body = {"prompt": prompt, "max_tokens": 48, "temperature": 1, "seed": i, "n": 2, "ignore_eos": True}
                with self.subTest(prompt=prompt):
                    whole = server.texts(**body)
                    self.assertEqual(server.streamed_texts(**body), whole)
                    self.assertEqual(server.texts(**body, echo=True), [prompt + text for text in whole])
                    self.assertEqual(server.streamed_texts(**body, echo=True), [prompt + text for text in whole])

    def test_tokenize_and_detokenize(self) -> None:
        cases = json.loads((ORACLE / "tokenizer_cases.json").read_text())
        with Server(GEN_7_WORLD.path, GEN_7_WORLD.vocab) as server:
            for case in cases:
                text = bytes.fromhex(case["hex"]).decode(errors="replace")
                with self.subTest(case=case["name"]):
                    self.assertEqual(server.post("/detokenize", tokens=case["ids"])["content"], text)
                    if case["text"] is not None:
                        self.assertEqual(server.post("/tokenize", content=text)["tokens"], case["ids"])


if __name__ == "__main__":
    unittest.main()
