"""Which documents the model sees, and how often: one call, one document."""
from __future__ import annotations

from random import Random
from typing import Callable

import arithmetic
import counting
import fill
import memory
import phrasebook
import poems
import small_talk
import stories
import tool_forms
import tools
import words
from document import Document, Piece, Turn, conversation, tokenized
from plots import TRAITS
from vocabulary import Vocabulary
from wording import article, plural

TOOLS_WEIGHT = 18           # beside 105 of the other documents
DOCUMENT_TOKENS_MAX = 1008  # longer ones are drawn again

Weighted = list[tuple[int, Callable[[Random], Turn]]]

# One question, one answer. The weights of what may stand between telling and asking, and of what stands alone.
BETWEEN: Weighted = [(24, small_talk.chat), (14, small_talk.about), (20, arithmetic.turn), (20, counting.turn),
                     (10, small_talk.knowledge), (6, phrasebook.turn), (5, small_talk.unknown), (2, stories.turn),
                     (1, poems.turn), (4, arithmetic.other)]
ALONE: Weighted = [(10, small_talk.chat), (14, small_talk.about), (22, arithmetic.turn), (34, counting.turn),
                   (11, small_talk.knowledge), (7, phrasebook.turn), (10, small_talk.unknown), (9, stories.turn),
                   (2, poems.turn), (7, arithmetic.other)]


def _pick(rng: Random, table: Weighted) -> Turn:
    return rng.choices([make for _, make in table], [weight for weight, _ in table])[0](rng)


# Where a calculator is offered, sums are its task.
BETWEEN_NO_SUMS, ALONE_NO_SUMS = ([row for row in table if row[1] not in (arithmetic.turn, arithmetic.other)]
                                  for table in (BETWEEN, ALONE))


def between(rng: Random) -> Turn:
    return _pick(rng, BETWEEN)


def _distance(rng: Random) -> int:
    """Turns between telling and asking."""
    return rng.choice((0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20))


def _memory(rng: Random) -> list[Piece]:
    story = memory.talk(rng, between, _distance(rng))
    return conversation(rng, story.turns, story.system)


def _system(rng: Random) -> str:
    """A system text, or none; now and then one that asks for more than the model can do."""
    draw = rng.random()
    if draw < 0.8:
        return ""
    if draw < 0.95:
        return rng.choice(memory.SYSTEMS)
    trait, thing = rng.choice(TRAITS), rng.choice(words.THINGS + words.JOBS + words.ANIMALS)
    return rng.choice((f"You are a {trait} assistant who knows all about {plural(thing)}.",
                       f"You speak like {article(thing)}.",
                       f"You are an assistant for people who need {article(thing)}. Be {trait} and never rude.",
                       f"Answer every question as {article(trait)} {thing} would.",
                       "You are a helpful assistant. Use markdown. If you do not know something, say so.",
                       f"You work for a company that sells {plural(thing)}. Do not talk about other things."))


def _single_turns(rng: Random) -> list[Piece]:
    turns = [_pick(rng, ALONE) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    return conversation(rng, turns, _system(rng))


def _follow_ups(rng: Random) -> list[Piece]:
    """Questions that lean on the one before."""
    draw = rng.random()
    if draw < 0.1:
        turns = arithmetic.chained(rng)
    elif draw < 0.15:
        turns = stories.asked_again(rng)
    elif draw < 0.3:
        turns = phrasebook.remembering(rng, between)
    elif draw < 0.45:
        turns = phrasebook.follow_up(rng)
    elif draw < 0.7:
        more = rng.choice(("Another one, please.", "Tell me another one.", "One more, please.", "Another one!",
                           "Again!"))
        make = rng.choice((stories.turn, poems.turn, _joke))
        turns = [make(rng), make(rng)._replace(user=more)]
    else:
        system, turn = small_talk.persona(rng)
        turns = [between(rng) for _ in range(rng.choice((0, 0, 1, 3)))] + [turn]
        return conversation(rng, turns, system)
    return conversation(rng, [between(rng) for _ in range(rng.choice((0, 0, 1)))] + turns)


def _joke(rng: Random) -> Turn:
    joke = next(i for i in small_talk.SMALL_TALK if i.name == "joke")
    return Turn("Tell me a joke.", rng.choice(joke.answers), "A joke.")


def _never_told(rng: Random) -> list[Piece]:
    turns = memory.unknown_talk(rng)
    if rng.random() < 0.4:
        turns.insert(0, between(rng))
    return conversation(rng, turns, _system(rng))


def _with_tools(rng: Random) -> list[Piece]:
    return tool_forms.pieces(rng, talk_with_tools(rng))


def talk_with_tools(rng: Random) -> tool_forms.Talk:
    if rng.random() < 0.06:
        def remembered(ask: Callable[[Random], Turn]) -> list[Turn]:
            return memory.talk(rng, ask, rng.choice((0, 1, 2, 3, 5))).turns
        return tools.offered_only(rng, remembered, lambda r: _pick(r, BETWEEN_NO_SUMS), between, "")
    system = _system(rng) if rng.random() < 0.6 else rng.choice(tools.SYSTEMS)
    return tools.talk(rng, lambda r: _pick(r, ALONE_NO_SUMS), lambda r: _pick(r, ALONE), system)


DOCUMENTS: list[tuple[int, Callable[[Random], list[Piece]]]] = [
    (20, _memory), (42, _single_turns), (3, _never_told), (7, _follow_ups), (16, phrasebook.pieces), (15, fill.pieces),
    (2, stories.pieces), (TOOLS_WEIGHT, _with_tools)]


def pieces(rng: Random) -> list[Piece]:
    return rng.choices([make for _, make in DOCUMENTS], [weight for weight, _ in DOCUMENTS])[0](rng)


def document(rng: Random, vocabulary: Vocabulary) -> Document:
    while True:
        made = tokenized(pieces(rng), vocabulary)
        if len(made.tokens) <= DOCUMENT_TOKENS_MAX:
            return made


def learn_known_words(vocabulary: Vocabulary) -> None:
    """Tells the spelling lessons which words have a token of their own; see counting.py."""
    for token in vocabulary.tokens:
        if token.startswith(b" ") and token[1:].isalpha() and token.isascii() and token[1:].islower() and len(token) > 3:
            counting.known_by_heart.add(token[1:].decode())
