"""Small tools for varied, correct wording: articles, number words, casing, invented names."""
from __future__ import annotations

from random import Random
from typing import Sequence

ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen").split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()

_ONSETS = "b c d f g h j k l m n p r s t v w z br ch cl dr fl fr gr kl kr pl pr sh sk sl st th tr".split()
_VOWELS = "a a e e i o o u ai ea ee ia oo".split()
_CODAS = ["", "", "", "", "l", "m", "n", "r", "s", "t", "k", "nd", "rt", "sh", "x"]


def number_word(n: int) -> str:
    """0 .. 99 in words."""
    if n < 20:
        return ONES[n]
    return TENS[n // 10] + ("-" + ONES[n % 10] if n % 10 else "")


def article(word: str) -> str:
    """The word with "a" or "an" before it; our word lists hold no word whose sound deceives."""
    return ("an " if word[0].lower() in "aeiou" and not word.startswith(("uni", "use")) else "a ") + word


def plural(noun: str) -> str:
    irregular = {"goose": "geese", "mouse": "mice", "wolf": "wolves", "leaf": "leaves", "sheep": "sheep",
                 "fish": "fish", "knife": "knives", "scarf": "scarves", "child": "children", "tooth": "teeth",
                 "foot": "feet"}
    if noun in irregular:
        return irregular[noun]
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) or noun in ("potato", "tomato") else "s")


def counted(n: int, noun: str) -> str:
    return f"{n} {noun if n == 1 else plural(noun)}"


def listed(items: Sequence[str]) -> str:
    """a; a and b; a, b and c"""
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def invented_word(rng: Random, syllables: int = 0) -> str:
    """A word that nobody knows, so that copying letter by letter is learnt."""
    count = syllables or rng.choice((1, 2, 2, 2, 3))
    return "".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS) for _ in range(count))[:11]


def invented_name(rng: Random) -> str:
    return sentence(invented_word(rng, rng.choice((1, 2, 2, 3))))


def mistyped(rng: Random, text: str) -> str:
    """One letter too few, too many or out of place."""
    at = rng.randrange(max(1, len(text) - 1))
    if not text[at:at + 2].isalpha():
        return text
    return text[:at] + rng.choice((text[at + 1:], text[at] + text[at:], text[at + 1:at + 2] + text[at] + text[at + 2:]))


def loosened(rng: Random, question: str) -> str:
    """A user's careless spelling of a message: case, punctuation, a polite word."""
    draw = rng.random()
    if draw < 0.08:
        return question.lower().rstrip("?.! ")
    if draw < 0.14:
        return question.rstrip("?.! ")
    if draw < 0.19:
        return question[0].lower() + question[1:]
    if draw < 0.23 and question.endswith("?"):
        return question[:-1] + ", please?"
    if draw < 0.27 and question.endswith("."):
        return question[:-1] + ", please."
    if draw < 0.33:
        return rng.choice(("Tell me: ", "Question: ", "Hey! ", "OK. ", "Hm. ", "Next: ", "And now: ",
                           "Another question: ")) + question
    return question
