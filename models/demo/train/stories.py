"""Short stories on a given subject: hero, name, place, object, theme; told by the plots."""
from __future__ import annotations

from random import Random
from typing import NamedTuple

import plots as p
import words as w
from document import Piece, Turn, plain_text
from split import drawn
from wording import article, invented_name, invented_word, loosened


class Subject(NamedTuple):
    hero: str
    trait: str
    name: str
    pronoun: str
    place: str  # a key of PLACES
    thing: str
    theme: str


OPENINGS = ["Once upon a time there was {a} named {N}, who lived {p}.", "Once upon a time, {a} named {N} lived {p}.",
            "There was once {a} called {N}, who lived {p}.", "{P} there lived {a} named {N}.",
            "{N} was {a} who lived {p}.", "Long ago, {p}, there lived {a} named {N}."]

ASK_HERO = ["Tell me a story about {h}.", "Write a short story about {h}.", "Can you tell me a story about {h}?",
            "Please write a story about {h}.", "I would like to hear a story about {h}.",
            "Tell a short story about {h}.",
            "A story about {h}, please.", "Make up a story about {h}.", "Write me a story about {h}.",
            "Story about {h}", "story about {h}", "tell me a story about {h}", "Tell me about {h} in a story.",
            "A short story about {h}"]
ASK_ANY = ["Tell me a story.", "Can you tell me a story?", "Write a short story.", "I would like to hear a story.",
           "Make up a story, please.", "Do you know a story?", "Tell me a bedtime story.", "Tell me a longer story.",
           "Tell me a short story.", "story", "A story, please.", "Another story."]


def _name_for(rng: Random, pronoun: str) -> str:
    if rng.random() < 0.15:
        return invented_name(rng)
    return rng.choice(w.HE_NAMES if pronoun == "he" else w.SHE_NAMES)


def _subject(rng: Random) -> Subject:
    draw = rng.random()
    if draw < 0.55:
        hero, pronoun = rng.choice(w.ANIMALS), rng.choice(("he", "she"))
    elif draw < 0.92:
        hero, pronoun = rng.choice(list(p.PEOPLE.items()))
    else:
        hero = invented_word(rng, 2) if rng.random() < 0.5 else rng.choice(w.SPELLING)
        pronoun = rng.choice(("he", "she"))
    name = _name_for(rng, pronoun)
    trait = rng.choice(p.TRAITS) if rng.random() < 0.7 else ""
    return Subject(hero, trait, name, pronoun, rng.choice(list(p.PLACES)), rng.choice(w.THINGS),
                   rng.choice(list(p.PLOTS)))


def told(rng: Random, s: Subject) -> str:
    """The story as one paragraph."""
    friend_name = rng.choice([n for n in w.NAMES[:120] if n != s.name])
    friend = rng.choice([a for a in w.ANIMALS if a != s.hero])
    his, him = ("his", "him") if s.pronoun == "he" else ("her", "her")
    described = article(f"{s.trait} {s.hero}".strip())
    place = p.PLACES[s.place]
    words = {"N": s.name, "h": s.hero, "he": s.pronoun, "He": s.pronoun.title(), "him": him, "his": his,
             "His": his.title(),
             "F": friend_name, "f": friend, "he2": w.PRONOUNS[friend_name], "o": s.thing,
             "o_a": article(s.thing), "the_o": "the " + s.thing,
             "m": rng.choice(w.INSTRUMENTS).replace("drums", "drum")}
    lines = [rng.choice(OPENINGS).format(a=described, N=s.name, p=place, P=place[0].upper() + place[1:])]
    for wordings in rng.choice(p.PLOTS[s.theme]):
        text = rng.choice(wordings).format(P=rng.choice(p.ELSEWHERE), **words)
        lines.append(text[0].upper() + text[1:])
    return " ".join(lines)


def request_for_hero(rng: Random, s: Subject) -> str:
    """A request that names some of what the story must hold; the hero always, unless nothing is asked for."""
    trait = s.trait if rng.random() < 0.8 else ""
    what = article(f"{trait} {s.hero}".strip())
    draw = rng.random()
    place = rng.choice((p.PLACES[s.place], p.PLACES[s.place], f"in a {s.place}", f"in the {s.place}"))
    if draw < 0.25:
        what += rng.choice((" named ", " called ")) + s.name
        if rng.random() < 0.3:
            what += " " + place
    elif draw < 0.40:
        what += f" and {article(s.thing)}"
    elif draw < 0.55:
        what += " " + place
    elif draw < 0.65 and s.theme != "loss":
        what += f" and {s.theme}"
    elif draw < 0.72:  # what no plot can follow, so that it does not confuse
        what += rng.choice((" who likes {}", " who is afraid of {}", " who wants {}", " that eats {}",
                            " and the {}")).format(
            rng.choice(w.FOODS + w.ANIMALS + w.SPELLING))
    return loosened(rng, rng.choice(ASK_HERO).format(h=what))


def _asked_other(rng: Random, s: Subject) -> str:
    draw = rng.random()
    if draw < 0.5:
        return loosened(rng, rng.choice(ASK_ANY))
    if draw < 0.75 and s.theme != "loss":
        return loosened(rng, rng.choice(ASK_HERO).format(h=s.theme))
    if draw < 0.9:
        return loosened(rng, rng.choice(ASK_HERO).format(h="the " + s.place))
    return loosened(rng, rng.choice(ASK_HERO).format(h=s.name))


def subject(rng: Random, held_out: bool = False) -> Subject:
    return drawn(lambda: _subject(rng), lambda s: ("story", s.hero, s.name), held_out)


def request(rng: Random, s: Subject) -> str:
    return request_for_hero(rng, s) if rng.random() < 0.75 else _asked_other(rng, s)


def turn(rng: Random) -> Turn:
    s = subject(rng)
    return Turn(request(rng, s), told(rng, s),
                f"A story about {article(s.hero)} called {s.name}; it is about {s.theme}.")


def asked_again(rng: Random) -> list[Turn]:
    """A story, and a question about it."""
    s = subject(rng)
    return [Turn(request(rng, s), told(rng, s),
                 f"A story about {article(s.hero)} called {s.name}; it is about {s.theme}."),
            Turn(loosened(rng, rng.choice(("What was the story about?", "Who was the story about?",
                                           "Who was the hero of the story?",
                                           "What was the hero called?", "Who is it about?"))),
                 f"It was about {article(s.hero)} named {s.name}.", "I look back at the story.")]


def pieces(rng: Random) -> list[Piece]:
    """A story as plain text, without a question."""
    return plain_text(told(rng, subject(rng)))
