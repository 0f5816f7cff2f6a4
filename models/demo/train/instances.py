"""The held-out instances by which the model is judged: a request and the answers that count as right."""
from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Callable

import arithmetic
import counting
import fill
import memory
import mixture
import phrasebook
import small_talk
from document import NO_THINK, Turn


@dataclass
class Instance:
    """Either a chat (messages) or a completion (prompt, and a suffix for a gap)."""
    expected: list[str]
    messages: list[dict[str, str]] = field(default_factory=list)
    prompt: str = ""
    suffix: str | None = None

    def rendered(self) -> str:
        """The bytes that the server makes of it."""
        if not self.messages:
            if self.suffix is None:
                return self.prompt
            return f"✿prefix✿✿suffix✿{self.suffix}✿middle✿{self.prompt}"
        who = {"system": "System", "user": "User", "assistant": "Assistant"}
        return "".join(f"{who[m['role']]}: {m['content']}\n\n" for m in self.messages) + NO_THINK

    def answer_of(self, written: str) -> str:
        """What the server shows of what the model wrote."""
        if self.messages:
            return written.removeprefix(">").lstrip("\n")
        return written


def _chat(turns: list[Turn], expected: list[str], system: str = "") -> Instance:
    messages = [{"role": "system", "content": system}] if system else []
    for turn in turns[:-1]:
        messages += [{"role": "user", "content": turn.user}, {"role": "assistant", "content": turn.answer}]
    return Instance(expected, messages + [{"role": "user", "content": turns[-1].user}])


def _remember(least: int, most: int) -> Callable[[Random], Instance]:
    def make(rng: Random) -> Instance:
        story = memory.talk(rng, mixture.between, rng.randint(least, most), held_out=True)
        return _chat(story.turns, [story.turns[-1].answer], story.system)
    return make


def _turn(make_turn: Callable[[Random, bool], Turn]) -> Callable[[Random], Instance]:
    def make(rng: Random) -> Instance:
        turn = make_turn(rng, True)
        return _chat([turn], small_talk.accepted(turn.answer))
    return make


def _phrase(source: str, target: str) -> Callable[[Random], Instance]:
    def make(rng: Random) -> Instance:
        texts = phrasebook.sentences(rng, held_out=True).texts
        return Instance([" " + texts[target]], prompt=f"{source}: {texts[source]}\n\n{target}:")
    return make


def _gap(rng: Random) -> Instance:
    gap = fill.gap(rng, held_out=True)
    return Instance([gap.middle], prompt=gap.prefix, suffix=gap.suffix or None)


GAP = "filling a gap"

ABILITIES: dict[str, Callable[[Random], Instance]] = {
    "remembering, 10 to 18 turns": _remember(10, 18),
    "remembering, 1 to 9 turns": _remember(1, 9),
    "addition": _turn(arithmetic.addition),
    "subtraction": _turn(arithmetic.subtraction),
    "spelling": _turn(counting.spelling),
    "counting letters": _turn(counting.letters),
    "counting numbers": _turn(counting.numbers),
    "counting things": _turn(counting.things),
    "English to Chinese": _phrase("English", "Chinese"),
    "Chinese to English": _phrase("Chinese", "English"),
    "English to French": _phrase("English", "French"),
    "French to English": _phrase("French", "English"),
    GAP: _gap,
    "small talk": _turn(small_talk.chat),
    "questions about Skein": _turn(small_talk.about),
}


def make(ability: str, count: int, seed: int = 2026) -> list[Instance]:
    """Instances that all differ, the same in every process."""
    rng = Random(f"{seed} {ability}")
    made: dict[str, Instance] = {}
    while len(made) < count:
        instance = ABILITIES[ability](rng)
        if ability != GAP or instance.suffix is not None:  # without text after it there is no gap to fill
            made.setdefault(instance.rendered(), instance)
    return list(made.values())
