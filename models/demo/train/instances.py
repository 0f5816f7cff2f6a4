"""The held-out instances by which the model is judged: a request and the answers that count as right."""
from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, Callable

import arithmetic
import counting
import fill
import memory
import mixture
import phrasebook
import small_talk
import tool_forms
import tools
from document import NO_THINK, Turn
from tool_forms import Said, Step, Talk


@dataclass
class Instance:
    """A chat (messages), one with tools (talk), or a completion (prompt, and a suffix for a gap). `is_named`: the
    request names the function that must be called."""
    expected: list[str]
    messages: list[dict[str, str]] = field(default_factory=list)
    prompt: str = ""
    suffix: str | None = None
    talk: Talk | None = None
    is_named: bool = False

    def rendered(self) -> str:
        """The bytes that the server makes of it."""
        if self.talk is not None:
            return tool_forms.prompt(self.talk)
        if not self.messages:
            if self.suffix is None:
                return self.prompt
            return f"✿prefix✿✿suffix✿{self.suffix}✿middle✿{self.prompt}"
        who = {"system": "System", "user": "User", "assistant": "Assistant"}
        return "".join(f"{who[m['role']]}: {m['content']}\n\n" for m in self.messages) + NO_THINK

    def answer_of(self, written: str) -> str:
        """What the server shows of what the model wrote; calls as tool_forms.shown has them."""
        if not self.is_chat():
            return written
        text = written.removeprefix(">").lstrip("\n")
        return tool_forms.shown(tool_forms.calls_in(text)) or text if self.talk is not None else text

    def is_chat(self) -> bool:
        return bool(self.messages) or self.talk is not None

    def to_write(self) -> str:
        """What the model should write: the first answer that counts as right, with what closes the opened tag."""
        if self.talk is None or not self.talk.steps[-1].calls:
            return (">\n" if self.is_chat() else "") + self.expected[0]
        calls = tool_forms.written(self.talk.steps[-1].calls)
        return "\n" + calls if self.talk.required else ">\n" + tool_forms.FENCE + calls

    def request(self) -> dict[str, Any]:
        """The body of a chat request, without sampling."""
        if self.talk is None:
            return {"messages": self.messages}
        made = tool_forms.request(self.talk)
        if self.is_named:
            made["tool_choice"] = {"type": "function", "function": {"name": self.talk.steps[-1].calls[0].name}}
        return made


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


# ---------------------------------------------------------------- tools
def _with_steps(steps: list[Step], of: tools.Offer, required: bool = False, is_named: bool = False) -> Instance:
    last = steps[-1]
    expected = tools.accepted_calls(of, last.calls) if last.calls else small_talk.accepted(last.answer)
    return Instance(expected, talk=Talk(steps, of.tools, "", required), is_named=is_named)


def _exchange(rng: Random, needs: str) -> tuple[list[Step], tools.Offer]:
    """A question that needs a tool, the call, the result and the answer."""
    of = tools.offer(rng, True, needs)
    if needs == "clock":
        assert of.clock is not None
        return tools.asking_the_clock(rng, of.clock, True), of
    return tools.calculation(rng, of.calculators, True), of


def _either(rng: Random) -> tuple[list[Step], tools.Offer]:
    return _exchange(rng, rng.choice(("calculator", "calculator", "clock")))


def _call(needs: str) -> Callable[[Random], Instance]:
    def make(rng: Random) -> Instance:
        steps, of = _exchange(rng, needs)
        return _with_steps(steps[:1], of)
    return make


def _required_call(rng: Random) -> Instance:
    steps, of = _either(rng)
    return _with_steps(steps[:1], of, True, rng.random() < 0.4)


def _from_result(rng: Random) -> Instance:
    return _with_steps(*_either(rng))


NOT_NEEDED = [counting.spelling, counting.letters, counting.things, small_talk.chat, small_talk.about]


def _no_call(rng: Random) -> Instance:
    of = tools.offer(rng, True)
    turn = rng.choice(NOT_NEEDED)(rng, True)
    while not tools.fits_without(of, turn):
        turn = rng.choice(NOT_NEEDED)(rng, True)
    return _with_steps([Step((Said("user", turn.user),), answer=turn.answer)], of)


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
    "calculator call": _call("calculator"),
    "clock call": _call("clock"),
    "required call": _required_call,
    "answer from the result": _from_result,
    "no call when not needed": _no_call,
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
