"""Spelling words, counting letters and things, counting from one number to another."""
from __future__ import annotations

from random import Random
from typing import Sequence

import words as w
from document import Turn
from split import drawn, is_held_out
from wording import counted, invented_word, loosened, number_word, plural

SPELL = ["Spell {q}.", "How do you spell {q}?", "Can you spell {q}?", "Spell the word {q}.", "Please spell {q}.",
         "How is {q} spelled?", "Spell {q} letter by letter.", "What are the letters of {q}?", "How do I spell {q}?"]
BACKWARDS = ["Spell {q} backwards.", "Write {q} backwards.", "What is {q} backwards?", "Reverse the word {q}.",
             "Reverse {q}."]
HOW_MANY = ["How many letters are in {q}?", "How many letters does {q} have?", "Count the letters in {q}.",
            "How many letters are there in the word {q}?", "How long is the word {q}?"]
OCCURS = ["How many times does the letter {l} occur in {q}?", "How often does {l} occur in {q}?",
          "Count the letter {l} in {q}.",
          "How many {l}'s are in {q}?", "How many times is the letter {l} in {q}?"]
FIRST = ["What is the {n} letter of {q}?", "Which letter is the {n} in {q}?", "Tell me the {n} letter of {q}."]
COUNT = ["Count from {a} to {b}.", "Please count from {a} to {b}.", "Can you count from {a} to {b}?",
         "List the numbers from {a} to {b}.", "Write the numbers from {a} to {b}."]
THINGS = ["How many {n} are in this list: {l}?", "How many {n} are in: {l}?", "How many {n} are there: {l}?",
          "How many {n}: {l}", "Count the {n}: {l}", "How many times do I say {s}? {l}",
          "Here is a list: {l}. How many {n} are there?"]

# Words with a token of their own come whole when they stand alone, so their letters can only be learnt by heart:
# these are never held out. load_known_words fills this set before anything is drawn.
known_by_heart: set[str] = set()


def _word(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.05:
        return (invented_word(rng, 3) + invented_word(rng, 2))[:18]
    if draw < 0.25:
        return invented_word(rng)
    if draw < 0.50 and known_by_heart:
        return rng.choice(_by_heart())
    return rng.choice(w.SPELLING)


def _by_heart() -> list[str]:
    if len(_sorted_by_heart) != len(known_by_heart):
        _sorted_by_heart[:] = sorted(known_by_heart)
    return _sorted_by_heart


_sorted_by_heart: list[str] = []


def _drawn_word(rng: Random, held_out: bool) -> str:
    if not held_out:
        return drawn(lambda: _word(rng), lambda x: ("word", "" if x in known_by_heart else x), False)
    if rng.random() < 0.4:
        return rng.choice([x for x in sorted(set(w.SPELLING)) if x not in known_by_heart and is_held_out("word", x)])
    return drawn(lambda: invented_word(rng), lambda x: ("word", x), True)


def _quoted(rng: Random, word: str) -> str:
    return rng.choice(('"{}"', '"{}"', "'{}'", "{}", "{}", "{}")).format(word)


def _dashed(word: str) -> str:
    return "-".join(word)


def spelling(rng: Random, held_out: bool = False) -> Turn:
    word = _drawn_word(rng, held_out)
    quoted = _quoted(rng, word)
    draw = rng.random()
    if draw < 0.6:
        return Turn(loosened(rng, rng.choice(SPELL).format(q=quoted)), _dashed(word),
                    f"I go through {word} letter by letter.")
    if draw < 0.7:
        return Turn(loosened(rng, rng.choice(BACKWARDS).format(q=quoted)), word[::-1],
                    f"Forwards it is {_dashed(word)}.")
    number, place = rng.choice((("first", 0), ("second", 1), ("last", -1), ("third", 2)))
    if len(word) < 3:
        number, place = "first", 0
    return Turn(loosened(rng, rng.choice(FIRST).format(q=quoted, n=number)),
                f'The {number} letter of "{word}" is {word[place]}.', f"The letters are {_dashed(word)}.")


def _numbered(letters: str) -> str:
    return "-".join(f"{letter}{i + 1}" for i, letter in enumerate(letters))


def _marked(items: Sequence[str], sought: str, gap: str) -> tuple[str, int]:
    """The items in a row, the sought ones with a running number: counting aloud, one step at a time."""
    shown, count = [], 0
    for item in items:
        count += item == sought
        shown.append(f"{item}{gap}{count}" if item == sought else item)
    return (", " if gap else "-").join(shown), count


def letters(rng: Random, held_out: bool = False) -> Turn:
    word = _drawn_word(rng, held_out)
    quoted = _quoted(rng, word)
    if rng.random() < 0.6:
        return Turn(loosened(rng, rng.choice(HOW_MANY).format(q=quoted)),
                    f'{_numbered(word)}: "{word}" has {counted(len(word), "letter")}.', f"The word is {_dashed(word)}.")
    letter = rng.choice(word) if rng.random() < 0.8 else rng.choice("abcdefghijklmnopqrstuvwxyz")
    shown, times = _marked(word, letter, "")
    return Turn(loosened(rng, rng.choice(OCCURS).format(q=quoted, l=letter)),
                f'{shown}: the letter {letter} occurs {counted(times, "time")} in "{word}".',
                f"I look at {_dashed(word)}.")


def numbers(rng: Random, held_out: bool = False) -> Turn:
    def draw() -> tuple[int, int]:
        a = rng.choice((1, 1, rng.randint(0, 90)))
        return a, min(99, a + rng.randint(2, 14))
    a, b = drawn(draw, lambda p: ("count", *p), held_out)
    if rng.random() < 0.25:
        return Turn(loosened(rng, rng.choice(("Count down from {b} to {a}.",
                                              "Count backwards from {b} to {a}.")).format(a=a, b=b)),
                    ", ".join(str(n) for n in range(b, a - 1, -1)), f"I go down from {b}.")
    if rng.random() < 0.3 and a == 1:
        said = number_word(b) if rng.random() < 0.4 else b
        return Turn(loosened(rng, rng.choice(("Count to {}.", "Can you count to {}?", "Count up to {}.")).format(said)),
                    ", ".join(str(n) for n in range(a, b + 1)), "I start at 1.")
    said = (number_word(a), number_word(b)) if rng.random() < 0.1 else (a, b)
    return Turn(loosened(rng, rng.choice(COUNT).format(a=said[0], b=said[1])),
                ", ".join(str(n) for n in range(a, b + 1)), f"I start at {a}.")


def things(rng: Random, held_out: bool = False) -> Turn:
    """How often one thing stands in a list with others."""
    def draw() -> tuple[str, ...]:
        kinds = rng.sample(w.FRUITS + w.THINGS + w.ANIMALS, rng.choice((1, 2, 2, 3)))
        items = [rng.choice(kinds) for _ in range(rng.randint(2, 9))]
        return (rng.choice(kinds), *items)
    sought, *items = drawn(draw, lambda x: ("things", *x), held_out)
    shown, count = _marked(items, sought, " ")
    question = rng.choice(THINGS).format(n=plural(sought), s=sought, l=", ".join(items))
    return Turn(question, f"{shown}: {counted(count, sought)}.", f"I go through the list and count each {sought}.")


def turn(rng: Random, held_out: bool = False) -> Turn:
    return rng.choice((spelling, spelling, letters, numbers, things))(rng, held_out)
