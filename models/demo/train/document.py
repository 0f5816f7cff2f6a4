"""What a training document is: pieces of text, some given, some to be answered, in the bytes that the server renders.

A document becomes input tokens and, for each, the token that should come next (or IGNORED where the text is the
user's). The end of an answer has the target END_OF_TEXT even where the conversation goes on in the input: the model
must end every answer, while a client that resends the history sends no end of text.
"""
from __future__ import annotations

from random import Random
from typing import NamedTuple, Sequence

from vocabulary import END_OF_TEXT, Vocabulary

IGNORED = 65535

NO_THINK = "Assistant: <think>\n</think"  # what the server sends unless asked otherwise
PLAIN = "Assistant:"


class Turn(NamedTuple):
    """A question and its answer; the thought is written where the client asks for thinking."""
    user: str
    answer: str
    thought: str = ""


class Piece(NamedTuple):
    text: str
    is_answer: bool = False
    keeps_end: bool = False  # after the answer: the end of text stays in the input


class Document(NamedTuple):
    tokens: list[int]
    targets: list[int]


def tokenized(pieces: Sequence[Piece], vocabulary: Vocabulary) -> Document:
    tokens: list[int] = []
    targets: list[int] = []
    context = ""
    for piece in pieces:
        if not piece.is_answer:
            context += piece.text
            continue
        tokens += vocabulary.encode(context)
        context = ""
        targets += [IGNORED] * (len(tokens) - len(targets))
        answer = vocabulary.encode(piece.text)
        if targets:
            targets[-1] = answer[0]
        tokens += answer
        targets += answer[1:] + [END_OF_TEXT]
        if piece.keeps_end:
            tokens.append(END_OF_TEXT)
            targets.append(IGNORED)
    return Document(tokens, targets)


# ---------------------------------------------------------------- chat
def opening(rng: Random, turn: Turn) -> tuple[str, str, str]:
    """How a client may open the answer: a wish that is added to the question, the opening, what the model writes."""
    if turn.thought and rng.random() < 0.5:
        wish = rng.choice(("", "", "", " (think)", " (think a bit)", " (think a lot)"))
        if rng.random() < 0.04:
            return "", "Assistant: <think>嗯", f"，{turn.thought}</think>\n{turn.answer}"
        return wish, "Assistant: <think", f">{turn.thought}</think>\n{turn.answer}"
    draw = rng.random()
    if draw < 0.70:
        return "", NO_THINK, f">\n{turn.answer}"
    if draw < 0.77:
        return "", NO_THINK + ">", f"\n{turn.answer}"
    if draw < 0.84:
        return "", NO_THINK + ">\n", turn.answer
    return "", PLAIN, f" {turn.answer}"


def conversation(rng: Random, turns: Sequence[Turn], system: str = "") -> list[Piece]:
    """A conversation as clients send it: mostly with the history resent as plain turns; sometimes as a stateful session
    feeds it, each answer as it was written and perhaps its end of text."""
    pieces = [Piece(f"System: {system}\n\n")] if system else []
    is_session = rng.random() < 0.25
    keeps_end = is_session and rng.random() < 0.5
    for number, turn in enumerate(turns):
        is_last = number + 1 == len(turns)
        if is_last or is_session:
            wish, opened, written = opening(rng, turn)
        else:
            wish, opened, written = "", PLAIN, f" {turn.answer}"
        pieces.append(Piece(f"User: {turn.user}{wish}\n\n{opened}"))
        pieces.append(Piece(written, True, keeps_end and not is_last))
        pieces.append(Piece("\n\n"))
    return pieces


# ---------------------------------------------------------------- other forms
def translation(source: str, target: str, text: str, translated: str) -> list[Piece]:
    return [Piece(f"{source}: {text}\n\n{target}:"), Piece(" " + translated, True)]


def fill_in(prefix: str, suffix: str, middle: str) -> list[Piece]:
    return [Piece(f"✿prefix✿✿suffix✿{suffix}✿middle✿{prefix}"), Piece(middle, True)]


def plain_text(text: str) -> list[Piece]:
    """A text that begins with nothing before it: a plain completion continues it from any place."""
    return [Piece(text, True)]
