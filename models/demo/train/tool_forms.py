"""Conversations with tools in the bytes that the server renders: what describes the tools, a call, a result.

docs/tools.md describes the form; check_tools.py compares it with a running server. A call ends with its last bracket:
the server allows nothing after it, and adds the fence when the call becomes history.
"""
from __future__ import annotations

import json
from random import Random
from typing import Any, NamedTuple, Sequence

from document import NO_THINK, PLAIN, Piece, Turn, opening

ONLY_CALLS = "\nReturn only a JSON function call."
CALL_OPENING = "Assistant: ```json"  # what the server sends if a call is required
FENCE = "```json\n"
FENCE_END = "\n```"
RESULT = "Function output:\n"
SPEAKERS = {"user": "User: ", "result": "User: " + RESULT, "observation": "Observation: "}


class Tool(NamedTuple):
    name: str
    description: str
    properties: dict[str, dict[str, Any]]
    required: tuple[str, ...] = ()

    def definition(self) -> dict[str, Any]:
        """As OpenAI's API has it."""
        function: dict[str, Any] = {"name": self.name}
        if self.description:
            function["description"] = self.description
        if self.properties:
            function["parameters"] = {"type": "object", "properties": self.properties, "required": list(self.required),
                                      "additionalProperties": False}
        return {"type": "function", "function": function}


class Call(NamedTuple):
    name: str
    arguments: str  # JSON, without white space between tokens

    def text(self) -> str:
        return f'{{"name":{compact(self.name)},"arguments":{self.arguments}}}'


class Said(NamedTuple):
    role: str  # user, result (of a call) or observation (a result that names no call)
    text: str


class Step(NamedTuple):
    """What the model reads, and what it writes then: calls or an answer."""
    said: tuple[Said, ...]
    calls: tuple[Call, ...] = ()
    answer: str = ""
    thought: str = ""


class Talk(NamedTuple):
    """A conversation. Without tools, the calls in its history are those of earlier requests."""
    steps: list[Step]
    tools: list[Tool]
    system: str = ""
    required: bool = False  # the request requires a call, which is the last step


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def fenced(calls: tuple[Call, ...]) -> str:
    """Calls in a history."""
    return "\n".join(FENCE + call.text() + FENCE_END for call in calls)


def written(calls: tuple[Call, ...]) -> str:
    """Calls as the model writes them below a fence: several are a list."""
    return calls[0].text() if len(calls) == 1 else "[" + ",".join(call.text() for call in calls) + "]"


def shown(calls: Sequence[Call]) -> str:
    """Calls in a form that can be compared."""
    return " ".join(call.name + compact(json.loads(call.arguments)) for call in calls)


def calls_in(text: str) -> list[Call]:
    """The calls that are all of a text, in the form that the lessons teach; else none."""
    try:
        value = json.loads(text.removeprefix(FENCE))
        return [Call(one["name"], compact(one["arguments"])) for one in (value if isinstance(value, list) else [value])]
    except (ValueError, KeyError, TypeError):
        return []


def system_turn(talk: Talk) -> str:
    text = talk.system
    if talk.tools:
        described = []
        for tool in talk.tools:
            one: dict[str, Any] = {"name": tool.name}
            if tool.description:
                one["description"] = tool.description
            described.append({**one, "arguments": tool.properties})
        text += ("\n" if text else "") + "Tools:\n" + compact(described) + (ONLY_CALLS if talk.required else "")
    return f"System: {text}\n\n" if text else ""


def said_turns(step: Step, wish: str = "") -> str:
    """`wish`: the thinking instruction, after the last message of the user."""
    users = [i for i, said in enumerate(step.said) if said.role == "user"]
    return "".join(f"{SPEAKERS[said.role]}{said.text}{wish if users and i == users[-1] else ''}\n\n"
                   for i, said in enumerate(step.said))


def standard_opening(talk: Talk) -> str:
    return CALL_OPENING if talk.required else NO_THINK


def prompt(talk: Talk) -> str:
    """What the server makes of a request whose answer is the last step."""
    text = system_turn(talk)
    for step in talk.steps[:-1]:
        text += said_turns(step) + f"{PLAIN} {fenced(step.calls) if step.calls else step.answer}\n\n"
    return text + said_turns(talk.steps[-1]) + standard_opening(talk)


def _opened(rng: Random, talk: Talk, step: Step) -> tuple[str, str, str]:
    """As document.opening: a wish, the opening, what the model writes."""
    if talk.required:
        if rng.random() < 0.15:
            return "", "Assistant: <think", f">{step.thought}</think>\n{written(step.calls)}"
        return "", CALL_OPENING, "\n" + written(step.calls)
    return opening(rng, Turn("", FENCE + written(step.calls) if step.calls else step.answer, step.thought))


def pieces(rng: Random, talk: Talk) -> list[Piece]:
    """The training document; see document.conversation."""
    is_session = rng.random() < 0.25 and not talk.required
    keeps_end = is_session and rng.random() < 0.5
    last = talk.steps[-1]
    wish, opened, answer = _opened(rng, talk, last)
    asked = max((i for i, step in enumerate(talk.steps) if any(said.role == "user" for said in step.said)))
    made = [Piece(system_turn(talk))]
    for number, step in enumerate(talk.steps[:-1]):
        made.append(Piece(said_turns(step, wish if number == asked else "")))
        is_learnt = not talk.required and (bool(talk.tools) or not step.calls) and len(step.calls) < 2
        if not is_learnt:
            made.append(Piece(f"{PLAIN} {fenced(step.calls) if step.calls else step.answer}"))
        else:
            text = FENCE + written(step.calls) if step.calls else step.answer
            _, opening_before, text_before = _opened(rng, talk, step) if is_session else ("", PLAIN, " " + text)
            made += [Piece(opening_before), Piece(text_before, True, keeps_end and not step.calls)]
            made.append(Piece(FENCE_END if step.calls else ""))
        made.append(Piece("\n\n"))
    return made + [Piece(said_turns(last, wish if asked + 1 == len(talk.steps) else "") + opened), Piece(answer, True)]


def request(talk: Talk) -> dict[str, Any]:
    """The request that the server renders as prompt(talk)."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": talk.system}] if talk.system else []
    ids: list[str] = []
    number = 0
    for step in talk.steps:
        for said in step.said:
            if said.role == "result":
                messages.append({"role": "tool", "tool_call_id": ids.pop(0), "content": said.text})
            else:
                messages.append({"role": "user" if said.role == "user" else "tool", "content": said.text})
        if step is talk.steps[-1]:
            break
        if not step.calls:
            messages.append({"role": "assistant", "content": step.answer})
            continue
        ids = [f"call_{number + i}" for i in range(len(step.calls))]
        number += len(ids)
        messages.append({"role": "assistant", "content": None, "tool_calls": [
            {"id": i, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for i, c in zip(ids, step.calls)]})
    made: dict[str, Any] = {"messages": messages}
    if talk.tools:
        made["tools"] = [tool.definition() for tool in talk.tools]
        made["tool_choice"] = "required" if talk.required else "auto"
    return made
