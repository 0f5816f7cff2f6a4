#!/usr/bin/env python3
"""Compares the tool lessons with a running server, which must render the same bytes, and with their own rules.

    skein serve --port 8000 &
    check_tools.py --url http://127.0.0.1:8000 --vocabulary ../skein-demo.vocab.txt [--count 300]

Exits with 1 after the first difference. Needs the standard library only.
"""
from __future__ import annotations

import argparse
import json
import sys
import urllib.request
from random import Random
from typing import Any

import mixture
import tool_forms
from document import END_OF_TEXT, IGNORED, tokenized
from instances import ABILITIES, make
from tool_forms import Call, Talk
from vocabulary import Vocabulary


def template_of(url: str, password: str, body: dict[str, Any]) -> str:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {password}"}
    request = urllib.request.Request(url.rstrip("/") + "/apply-template", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        prompt: str = json.load(response)["prompt"]
    return prompt


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether an argument has the type and the values of its schema."""
    kinds = {"string": (str,), "integer": (int,), "number": (int, float)}
    if not isinstance(value, kinds[schema["type"]]) or isinstance(value, bool):
        return False
    return value in schema.get("enum", [value]) and (not isinstance(value, (int, float)) or (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)))


def check_call(call: Call, talk: Talk) -> None:
    tool = next(t for t in talk.tools if t.name == call.name)
    arguments = json.loads(call.arguments)
    assert list(arguments) == [name for name in tool.properties if name in arguments], (call, tool)
    assert all(fits(value, tool.properties[name]) for name, value in arguments.items()), (call, tool)
    assert tool_forms.calls_in(tool_forms.FENCE + call.text()) == [Call(call.name, tool_forms.compact(arguments))], call


def check_document(rng: Random, talk: Talk, vocabulary: Vocabulary) -> None:
    """The training document is the conversation that the server renders, in tokens that decode to it."""
    pieces = tool_forms.pieces(rng, talk)
    text = "".join(piece.text for piece in pieces)
    made = tokenized(pieces, vocabulary)
    tokens = [token for token in made.tokens if token != END_OF_TEXT]
    assert vocabulary.decode(tokens) == text, text
    assert tokens == vocabulary.greedy(text.encode()), text
    assert len(made.tokens) == len(made.targets)
    answers = sum(piece.is_answer for piece in pieces)
    assert made.targets.count(END_OF_TEXT) == answers > 0, text
    for token, following, target in zip(made.tokens, made.tokens[1:], made.targets):
        assert target in (IGNORED, END_OF_TEXT, following), vocabulary.decode([token, following, target])
    if not talk.tools:
        assert not any(piece.is_answer and "arguments" in piece.text for piece in pieces), text


def plain_text(rng: Random, talk: Talk) -> str:
    """The document up to the opening of its last answer, in the form of a resent history without thoughts."""
    while True:
        pieces = tool_forms.pieces(rng, talk)
        text = "".join(piece.text for piece in pieces[:-1])
        opening = tool_forms.standard_opening(talk)
        if text.endswith(opening) and "<think" not in text.removesuffix(opening):
            return text


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--password", default="none")
    parser.add_argument("--vocabulary", required=True)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    vocabulary = Vocabulary.load(args.vocabulary)
    mixture.learn_known_words(vocabulary)
    rng = Random(args.seed)

    def same(got: str, talk: Talk, more: dict[str, Any]) -> None:
        wanted = template_of(args.url, args.password, {**tool_forms.request(talk), **more})
        if got != wanted:
            sys.exit(f"the server renders\n{wanted}\n\nbut the lesson\n{got}")

    for _ in range(args.count):
        talk = mixture.talk_with_tools(rng)
        for step in talk.steps:
            for call in step.calls if talk.tools else ():
                check_call(call, talk)
        check_document(rng, talk, vocabulary)
        same(tool_forms.prompt(talk), talk, {})
        same(plain_text(rng, talk), talk, {})
    for ability in ABILITIES:
        for instance in make(ability, 10):
            assert instance.answer_of(instance.to_write()) in instance.expected, instance
            if instance.talk is not None:
                same(instance.rendered(), instance.talk, {})
    print(f"{args.count} conversations are rendered as the server renders them")


if __name__ == "__main__":
    main()
