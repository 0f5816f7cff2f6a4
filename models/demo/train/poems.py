"""Poems of four lines: couplets about a subject, with rhymes that hold whatever the subject is."""
from __future__ import annotations

from random import Random

import words as w
from document import Turn
from plots import PEOPLE
from wording import article, loosened

FIRST = ["I saw {a} upon a hill,\nthe wind was soft, the world was still.",
         "The morning came so clear and bright,\n{a} stood dreaming in the light.",
         "Oh little {x}, where will you go?\nThe road is long, the clouds are low.",
         "There was {a}, so small, so dear,\nit sang a song for all to hear.",
         "When evening falls on field and tree,\n{a} comes to talk with me.",
         "Beneath the moon, beside the sea,\n{a} is waiting quietly.",
         "I met {a} one rainy day,\nit smiled at me and went its way.",
         "High above the sleeping town\n{a} looks gently down."]
LAST = ["I waved my hand and said goodbye,\nand grey geese crossed the evening sky.",
        "And when the stars began to shine,\nI wished that such a life were mine.",
        "The night is deep, the day is done,\ntomorrow brings another sun.",
        "So keep this {x} within your heart,\nand you will never be apart.",
        "And though the winter wind may blow,\nthe {x} remembers what we know.",
        "The years go by, the rivers run,\nand every end is but begun.",
        "So let us sing, so let us play,\nand thank the {x} for this fine day.",
        "Now close your eyes and sleep till dawn,\nthe {x} is here, the dark is gone."]
ASK = ["Write a poem about {a}.", "Write a short poem about {a}.", "Can you write a poem about {a}?",
       "Tell me a poem about {a}.",
       "A poem about {a}, please.", "Make a rhyme about {a}.", "Please write a poem about {a}.",
       "I would like a poem about {a}."]
ASK_ANY = ["Write a poem.", "Can you write a poem?", "Tell me a poem.", "Write a short poem, please.",
           "Do you know a poem?",
           "Make a rhyme."]


HAIKU = {"autumn": "Red leaves on the path,\nthe wind turns another page,\ngrey geese are leaving.",
         "winter": "Snow on every roof,\nthe village holds its breath now,\none small light still burns.",
         "spring": "The ice is melting,\na bird tries its first new song,\nthe door stands open.",
         "summer": "Bees in the warm grass,\nthe long day forgets to end,\nmilk and strawberries.",
         "the sea": "Waves come and go home,\nthe boat nods to the harbour,\nsalt upon my lips.",
         "the moon": "A coin in the sky,\nthe pond has caught it again,\nthe frog is so rich.",
         "rain": "Drops on the window,\neach one looks for another,\nthen they run as one.",
         "geese": "A line in the sky,\nthe first one calls to the last,\nnobody is lost."}


def _haiku(rng: Random) -> Turn:
    subject, text = rng.choice(list(HAIKU.items()))
    question = rng.choice(("Write a haiku about {}.", "Write a haiku about {}, please.", "A haiku about {}.",
                           "Can you write a haiku about {}?"))
    return Turn(loosened(rng, question.format(subject) if rng.random() < 0.7 else "Write a haiku."), text,
                "Five, seven and five syllables.")


def turn(rng: Random) -> Turn:
    if rng.random() < 0.2:
        return _haiku(rng)
    subject = rng.choice(w.ANIMALS + w.THINGS + w.FRUITS + list(PEOPLE) +
                         ["river", "forest", "winter", "dream", "house", "garden"])
    question = rng.choice(ASK).format(a=article(subject)) if rng.random() < 0.8 else rng.choice(ASK_ANY)
    lines = []
    for couplet in (rng.choice(FIRST), rng.choice(LAST)):
        text = couplet.format(a=article(subject), x=subject)
        lines.append(text[0].upper() + text[1:])
    return Turn(loosened(rng, question), "\n".join(lines), f"Four lines about {article(subject)}, with rhymes.")
