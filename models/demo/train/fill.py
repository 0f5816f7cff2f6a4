"""Short texts in which one sentence is determined by the others: the middle that is masked and filled in."""
from __future__ import annotations

from random import Random
from typing import Callable, NamedTuple

import words as w
from document import Piece, fill_in
from split import drawn
from wording import article, counted, listed, number_word, plural, sentence


class Text(NamedTuple):
    """The sentences of a text, the one that the others determine, and what makes the instance."""
    sentences: list[str]
    masked: int
    key: tuple[object, ...]


def _shopping(rng: Random) -> Text:
    """What each day brought is summed up at the end."""
    name, items = rng.choice(w.NAMES), rng.sample(w.FRUITS + w.THINGS, 3)
    first = rng.randrange(5)
    verb = rng.choice(("bought", "found", "drew", "sold", "lost"))
    days = [f"On {w.DAYS[first + i]} {name} {verb} {article(item)}." for i, item in enumerate(items)]
    end = f"In the end {name} had {verb.replace('drew', 'drawn')} {listed([article(i) for i in items])}."
    return Text(days + [end], rng.randrange(4), (name, verb, *items))


def _ordered(rng: Random) -> Text:
    """A list of steps that the last sentence repeats."""
    name = rng.choice(w.NAMES)
    places = rng.sample(w.CITIES, 3)
    verb = rng.choice(("went to", "visited", "drove to", "wrote to"))
    words = rng.choice((("First", "Then", "Finally"), ("First", "Next", "Last")))
    past = {"went to": "went to", "visited": "visited", "drove to": "drove to", "wrote to": "wrote to"}[verb]
    steps = [f"{word}, {name} {past} {place}." for word, place in zip(words, places)]
    end = f"So the order was {places[0]}, {places[1]}, {places[2]}."
    return Text(steps + [end], rng.randrange(4), (name, verb, *places))


def _gift(rng: Random) -> Text:
    """A sum with one number missing."""
    a, b = rng.sample(w.NAMES, 2)
    noun = rng.choice(w.FRUITS + w.THINGS)
    first, more = rng.randint(1, 20), rng.randint(1, 20)
    texts = [f"{a} had {counted(first, noun)}.", f"{b} gave {a} {counted(more, noun)}.",
             f"Thanks to {b}, {a} now has {counted(first + more, noun)}."]
    return Text(texts, rng.randrange(3), (a, b, noun, first, more))


def _people(rng: Random) -> Text:
    """Everybody's home, said twice."""
    names, cities = rng.sample(w.NAMES, 3), rng.sample(w.CITIES, 3)
    homes = [f"{n} lives in {c}." for n, c in zip(names, cities)]
    again = " ".join(f"If you go to {c}, you can meet {n}." for n, c in zip(names, cities))
    return Text(homes + [again], rng.randrange(3), (*names, *cities))


def _counting(rng: Random) -> Text:
    """A row of numbers, each sentence one more than the one before."""
    noun, place = rng.choice(w.ANIMALS), rng.choice(("on the hill", "by the lake", "in the barn", "under the tree",
                                                     "at the gate"))
    start, length = rng.randint(1, 30), rng.randint(3, 5)
    def said(n: int) -> str:
        verb = "is" if n == 1 else "are"
        return f"{sentence(number_word(n))} {noun if n == 1 else plural(noun)} {verb} {place}."
    return Text([said(start + i) for i in range(length)], rng.randrange(1, length - 1), (noun, place, start, length))


def _days(rng: Random) -> Text:
    """Days or months in a row with one thing each."""
    row = rng.choice((w.DAYS, w.MONTHS))
    what = rng.choice(("is fine", "is quiet", "is busy", "is long", "goes by fast", "is a good time for tea"))
    first, length = rng.randrange(len(row)), rng.randint(3, 5)
    names = [row[(first + i) % len(row)] for i in range(length)]
    return Text([f"{n} {what}." for n in names], rng.randrange(1, length - 1), (row[0], what, first, length))


# What happened, what somebody therefore did, how it ended. {N} is a name, {he} and {his} fit it.
CAUSES = [line.split("|") for line in """It began to rain.|{N} opened the umbrella.|So {N} stayed dry.
The room was dark.|{N} lit a candle.|Then there was light.
{N} was hungry.|{N} ate a sandwich.|After that {N} was full.
{N} was thirsty.|{N} drank a glass of water.|After that {N} was not thirsty any more.
The plants were dry.|{N} watered them.|Soon they were green again.
The door was locked.|{N} took out the key.|The lock clicked and the door was open.
It was cold outside.|{N} put on a warm coat.|In the coat it was cosy.
The soup had no taste.|{N} added some salt.|With the salt it tasted good.
{N} was tired.|{N} went to bed early.|The long sleep helped.
The phone was empty.|{N} plugged in the charger.|An hour later the battery was full.
The bus had already left.|{N} walked home.|The walk took an hour.
The window was dirty.|{N} cleaned the glass.|Now the glass was clear.
The dog wanted to go out.|{N} took the dog for a walk.|After the walk the dog slept.
The ball flew over the wall.|{N} climbed over the wall.|On the other side lay the ball.
{N} did not know the way.|{N} looked at the map.|The map showed the right street.
The milk was gone.|{N} bought milk at the shop.|Now there was milk again.
The shirt had a hole.|{N} sewed the hole shut.|The hole could not be seen any more.
The fire went out.|{N} put wood on the fire.|The wood burned brightly.
The tea was too hot.|{N} waited a few minutes.|After some minutes it was just right.
{N} could not find the glasses.|{N} looked under the sofa.|Under the sofa lay the glasses.
The bicycle had a flat tyre.|{N} mended the tyre.|With the mended tyre {N} rode on.
The baby was crying.|{N} sang a song.|At the end of the song the baby was asleep.
It was {N}'s birthday.|Everybody sang a song for {N}.|{N} loved the song.
The river was deep.|{N} took the boat.|The boat brought {N} to the other bank.
There was a loud noise.|{N} shut the window.|Behind the closed window it was quiet.
{N} had a headache.|{N} took a pill.|The pill helped at once.
The cake was ready.|{N} cut it into pieces.|Everybody got a piece.
The letter was finished.|{N} took it to the post office.|The post office sent it abroad.
The geese were hungry.|{N} gave them some corn.|The geese ate all the corn.
The book was too high up.|{N} climbed on a chair.|From the chair the book was easy to reach.""".split("\n")]
ADVERBS = ["", "That evening, ", "Last week ", "One day ", "In spring, ", "Yesterday ", "On Sunday, ", "Late at night "]


def _cause(rng: Random) -> Text:
    """Cause, deed, effect; the deed is masked. A frame of a name and its city makes the instances many."""
    name, city = rng.choice(w.NAMES), rng.choice(w.CITIES)
    number = rng.randrange(len(CAUSES))
    cause, deed, effect = (part.format(N=name) for part in CAUSES[number])
    start = f"{name} lives in {city}."
    return Text([start, cause, deed, effect], 2, (name, city, number))


def _traits(rng: Random) -> Text:
    """A description in which the last sentence repeats what the masked one says."""
    name, pet, called = rng.choice(w.NAMES), rng.choice(w.PETS), rng.choice(w.NAMES)
    colour, food = rng.choice(w.COLOURS), rng.choice(w.FOODS)
    texts = [f"{name} has {article(pet)}.", f"The {pet} is called {called}.", f"{called} likes {food}.",
             f"So {name} gives {called} the {pet} some {food} every day."]
    if rng.random() < 0.5:
        texts = [f"{name} lives in a {colour} house.", f"In the house lives {article(pet)} called {called}.",
                 f"Every day {called} the {pet} runs through the {colour} house of {name}."]
        return Text(texts, rng.randrange(2), (name, pet, called, colour))
    return Text(texts, rng.randrange(3), (name, pet, called, food))


def _question(rng: Random) -> Text:
    """A question in quotes whose answer follows."""
    a, b = rng.sample(w.NAMES, 2)
    thing, place = rng.choice(w.THINGS), rng.choice(w.PLACES)
    texts = [f'"Where is the {thing}?" asked {a}.', f'"It is {place}," said {b}.',
             f"{a} thanked {b}, looked {place} and found the {thing}."]
    return Text(texts, rng.randrange(3), (a, b, thing, place))


KINDS: list[Callable[[Random], Text]] = [_shopping, _ordered, _gift, _people, _counting, _days, _cause, _cause, _traits,
                                         _question]


class Gap(NamedTuple):
    prefix: str
    suffix: str
    middle: str


def gap(rng: Random, held_out: bool = False) -> Gap:
    """A text with a gap; the blanks at its borders go to either side."""
    kind = rng.choice(KINDS)
    text = drawn(lambda: kind(rng), lambda t: ("fill", *t.key), held_out)
    prefix = " ".join(text.sentences[:text.masked])
    suffix = " ".join(text.sentences[text.masked + 1:])
    middle = text.sentences[text.masked]
    if prefix:
        prefix, middle = (prefix + " ", middle) if rng.random() < 0.5 else (prefix, " " + middle)
    if suffix:
        suffix, middle = (" " + suffix, middle) if rng.random() < 0.6 else (suffix, middle + " ")
    return Gap(prefix, suffix, middle)


def pieces(rng: Random) -> list[Piece]:
    g = gap(rng)
    return fill_in(g.prefix, g.suffix, g.middle)
