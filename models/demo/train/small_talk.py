"""Small talk, questions about Skein, a little general knowledge, and honest answers to what the model cannot know."""
from __future__ import annotations

import re
from random import Random
from typing import NamedTuple

import intents
import words as w
from document import Turn
from split import is_held_out
from wording import article, invented_name, invented_word, loosened, mistyped, plural
from trivia import TRIVIA

CHOICE = re.compile(r"\[([^\[\]]*)\]")


class Intent(NamedTuple):
    name: str
    questions: list[str]
    answers: list[str]


def _parsed(text: str) -> list[Intent]:
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    return [Intent(lines[0], [x[2:] for x in lines if x.startswith("? ")],
                   [x for x in lines[1:] if not x.startswith("? ")])
            for lines in blocks]


SMALL_TALK = _parsed(intents.SMALL_TALK) + _parsed(intents.FOREIGN)
ABOUT = _parsed(intents.ABOUT_ITSELF) + _parsed(intents.ABOUT_SKEIN)
UNKNOWN = _parsed("unknown\n" + intents.UNKNOWN.strip())[0]


def expanded(rng: Random, text: str) -> str:
    """One wording of a line with alternatives, inner ones first."""
    while match := CHOICE.search(text):
        text = text[:match.start()] + rng.choice(match.group(1).split("|")) + text[match.end():]
    text = re.sub(r" +", " ", text).strip()
    return re.sub(r"[.!]([?])$", r"\1", text)


def _question(rng: Random, intent: Intent) -> str:
    """All wordings of an intent count alike, not all its lines."""
    weights = [1 + line.count("|") for line in intent.questions]
    question = loosened(rng, expanded(rng, rng.choices(intent.questions, weights)[0]))
    return mistyped(rng, question) if rng.random() < 0.05 else question


def asked(rng: Random, intent: Intent, held_out: bool = False) -> str:
    """A wording of the question, or nothing: an intent with few wordings may have none that are held out."""
    for _ in range(60):
        question = _question(rng, intent)
        if is_held_out("talk", question) == held_out:
            return question
    return ""


def _unknown_thing(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.3:
        return invented_name(rng) if rng.random() < 0.5 else invented_word(rng)
    return rng.choice(w.THINGS + w.CITIES + w.ANIMALS + w.SPELLING + w.JOBS + w.COUNTRIES + w.HOBBIES)


VERBS = """explain describe draw prove show find fix make build compare design check print open sort invent plan book
convert download install play read remove define analyse""".split()


def _strange(rng: Random) -> str:
    """A request that no other lesson explains, of words thrown together."""
    verb = rng.choice(VERBS)
    language = rng.choice(("Python", "python", "javascript", "Go", "C++", "Java", "Rust", "shell"))
    program = rng.choice(("function", "program", "script", "class"))
    text = rng.choice(("limerick", "speech", "letter", "novel", "song", "review", "list", "recipe", "joke"))
    things = [_unknown_thing(rng) for _ in range(3)]
    return rng.choice((
        f"{verb.title()} the {things[0]} of {things[1]}.", f"Can you {verb} {things[0]}?",
        f"How does {article(things[0])} {verb} {things[1]}?",
        f"Why does {things[0]} {verb} {things[1]}?", f"Please {verb} {article(things[0])} for {things[1]}.",
        f"What happens if {things[0]} {verb}s {things[1]}?", f"{things[0]} {things[1]} {things[2]}",
        f"Is {things[0]} better than {things[1]}?",
        f"Write a {language} {program} to {verb} {things[0]}.",
        f"Write code that can {verb} {things[0]}.", f"Write a function to {verb} two {plural(things[0])}.",
        f"Write a {text} about {things[0]}.",
        f"What rhymes with {things[0]}?",
        f"Give me {things[0]} {rng.choice(('ideas', 'tips', 'names', 'examples', 'facts'))}.",
        f"I want you to act as {article(things[0])} and {verb} {things[1]}.",
        f"Tell me how {things[0]} and {things[1]} {verb}.",
        f"When did {things[0]} {verb} {things[1]}?", f"Which {things[0]} is the best {things[1]}?",
        f"What does {things[0]} mean?",
        f"How much {things[0]} is in {article(things[1])}?", f"Who can {verb} {things[0]} and {things[1]}?",
        f"I want to {verb} {article(things[0])}. How?"))


def unknown(rng: Random) -> Turn:
    if rng.random() < 0.45:
        return Turn(loosened(rng, _strange(rng)), rng.choice(UNKNOWN.answers), "I have not learned that, so I say so.")
    line = rng.choice(UNKNOWN.questions)
    question = expanded(rng, line).replace("{x}", _unknown_thing(rng)).replace("{y}", _unknown_thing(rng))
    return Turn(loosened(rng, question), rng.choice(UNKNOWN.answers), "I have not learned that, so I say so.")


def _name_given(rng: Random) -> Turn:
    """The name that a system text gives to the assistant is used; see mixture.py."""
    return Turn(loosened(rng, rng.choice(("What is your name?", "What's your name?", "Who are you?",
                                          "What are you called?",
                                          "Do you have a name?", "Tell me your name."))), "My name is {name}.",
                "The system text gives me a name.")


def persona(rng: Random) -> tuple[str, Turn]:
    """A system text that names the assistant, and a question for that name."""
    name = rng.choice(w.NAMES) if rng.random() < 0.6 else invented_name(rng)
    role = rng.choice(w.JOBS + w.ANIMALS)
    system = rng.choice(("You are {n}.", "Your name is {n}.", "You are {n}, a helpful assistant.", "You are {n}, {r}.",
                         "You are a helpful assistant called {n}.", "You are {r} named {n}.")).format(n=name,
                                                                                                      r=article(role))
    turn = _name_given(rng)
    return system, turn._replace(answer=turn.answer.format(name=name))


def _from_intents(rng: Random, choices: list[Intent], held_out: bool) -> Turn:
    while True:
        intent = rng.choice(choices)
        if question := asked(rng, intent, held_out):
            return Turn(question, rng.choice(intent.answers),
                        f"The question is about: {intent.name.replace('_', ' ')}.")


def chat(rng: Random, held_out: bool = False) -> Turn:
    return _from_intents(rng, SMALL_TALK, held_out)


def about(rng: Random, held_out: bool = False) -> Turn:
    return _from_intents(rng, ABOUT, held_out)


def accepted(answer: str) -> list[str]:
    """All answers that the intent with this answer allows."""
    for intent in SMALL_TALK + ABOUT:
        if answer in intent.answers:
            return intent.answers
    return [answer]


# ---------------------------------------------------------------- a little knowledge of the world
def _capital(rng: Random) -> Turn:
    country, city = rng.choice(list(w.CAPITALS.items()))
    question = rng.choice(("What is the capital of {c}?", "What's the capital of {c}?",
                           "Which city is the capital of {c}?",
                           "Do you know the capital of {c}?", "Name the capital of {c}.", "capital of {c}"))
    return Turn(loosened(rng, question.format(c=country)), f"The capital of {country} is {city}.",
                "That is one of the capitals I know.")


def _opposite(rng: Random) -> Turn:
    word, other = rng.choice(list(w.OPPOSITES.items()))
    question = rng.choice(("What is the opposite of {q}?", "What's the opposite of {q}?",
                           "Give me the opposite of {q}.",
                           "Which word is the opposite of {q}?"))
    quoted = rng.choice(('"{}"', "{}")).format(word)
    return Turn(loosened(rng, question.format(q=quoted)), f'The opposite of "{word}" is "{other}".',
                "I look for the opposite.")


def _typical_colour(rng: Random) -> Turn:
    thing, colour = rng.choice(list(w.TYPICAL_COLOURS.items()))
    question = rng.choice(("What colour is {t}?", "Which colour is {t}?", "What color is {t}?"))
    return Turn(loosened(rng, question.format(t=thing)), f"{thing[0].upper() + thing[1:]} is {colour}.",
                "I think of how it looks.")


def _neighbour(rng: Random) -> Turn:
    row, kind = rng.choice(((w.DAYS, "day"), (w.MONTHS, "month")))
    at = rng.randrange(len(row))
    word, step = rng.choice((("after", 1), ("before", -1)))
    question = rng.choice(("Which {k} comes {w} {x}?", "What {k} is {w} {x}?", "Which {k} is {w} {x}?"))
    found = row[(at + step) % len(row)]
    return Turn(loosened(rng, question.format(k=kind, w=word, x=row[at])), f"{found} comes {word} {row[at]}.",
                "I go through them in order.")


def _animal(rng: Random) -> Turn:
    if rng.random() < 0.5:
        animal, sound = rng.choice(list(w.SOUNDS.items()))
        question = rng.choice(("What sound does {a} make?", "What does {a} say?", "Which sound does {a} make?"))
        return Turn(loosened(rng, question.format(a=article(animal))),
                    f"{article(animal)[0].upper() + article(animal)[1:]} {sound}.",
                    "I know that animal.")
    animal, legs = rng.choice(list(w.LEGS.items()))
    return Turn(loosened(rng, f"How many legs does {article(animal)} have?"),
                f"{article(animal)[0].upper() + article(animal)[1:]} has {legs if legs else 'no'} legs.",
                "I know that animal.")


def _list(rng: Random) -> Turn:
    what, items = rng.choice((("days of the week", w.DAYS), ("months of the year", w.MONTHS),
                              ("four seasons", w.SEASONS),
                              ("months", w.MONTHS), ("seasons", w.SEASONS), ("days", w.DAYS)))
    question = rng.choice(("Name the {w}.", "What are the {w}?", "List the {w}.", "Tell me the {w}."))
    return Turn(loosened(rng, question.format(w=what)), ", ".join(items) + ".", "I list them in order.")


def _name_some(rng: Random) -> Turn:
    what, singular, values = rng.choice((("animals", "animal", w.ANIMALS), ("colours", "colour", w.COLOURS),
                                         ("fruits", "fruit", w.FRUITS), ("cities", "city", w.CITIES),
                               ("names", "name", w.NAMES), ("countries", "country", w.COUNTRIES),
                               ("instruments", "instrument", w.INSTRUMENTS)))
    if rng.random() < 0.25:
        question = rng.choice(("Name {a}.", "Tell me {a}.", "Give me {a}.",
                               "Can you name {a}?")).format(a=article(singular))
        return Turn(loosened(rng, question), rng.choice(values) + ".", "I pick one.")
    number = rng.randint(2, 5)
    word = ("two", "three", "four", "five")[number - 2]
    question = rng.choice(("Name {n} {w}.", "Tell me {n} {w}.", "List {n} {w}.", "Give me {n} {w}.",
                           "Can you name {n} {w}?"))
    return Turn(loosened(rng, question.format(n=rng.choice((word, str(number))), w=what)),
                ", ".join(rng.sample(values, number)) + ".",
                f"I pick {word}.")


def _echo(rng: Random) -> Turn:
    what = rng.choice((invented_name(rng), rng.choice(w.THINGS + w.ANIMALS),
                       " ".join(rng.choice(w.SPELLING) for _ in range(rng.randint(2, 5))),
                       f"{rng.choice(('hello', 'good', 'my', 'the'))} {rng.choice(w.SPELLING)}",
                       f"I like {rng.choice(w.FOODS)}.", f"{rng.choice(w.NAMES)} lives in {rng.choice(w.CITIES)}.",
                       f"The {rng.choice(w.ANIMALS)} is {rng.choice(w.COLOURS)}."))
    question = rng.choice(('Say "{t}".', "Repeat after me: {t}", "Repeat: {t}", "Please say: {t}", 'Write "{t}".',
                           "repeat after me: {t}", "say {t}", "Say {t}"))
    return Turn(question.format(t=what), what, "I repeat it exactly.")


def _trivia(rng: Random) -> Turn:
    question, answer = re.fullmatch(r"(.*[?.])\|(.*)", rng.choice(TRIVIA)).groups()
    question = re.sub(r" +", " ", expanded(rng, question)).replace(" ?", "?")
    question = re.sub(r"^(How many .*?) (are in|are there in) (.*) have\?$", r"\1 \2 \3?", question)
    question = re.sub(r"^(How many .*? does (?:an?|the) \w+)\?$", r"\1 have?", question)
    return Turn(loosened(rng, question), answer, "I have learned that.")


KNOWLEDGE = [_trivia, _trivia, _trivia, _capital, _capital, _opposite, _typical_colour, _neighbour, _animal, _list,
             _name_some, _echo]


def knowledge(rng: Random) -> Turn:
    return rng.choice(KNOWLEDGE)(rng)
