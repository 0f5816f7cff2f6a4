"""Conversations in which somebody tells facts and asks for them later, with other talk in between.

An answer that recalls a fact has one exact form per kind of fact, so that it can be judged; what the model says when it
hears a fact varies.
"""
from __future__ import annotations

from random import Random
from typing import Callable, NamedTuple

import words as w
from document import Turn
from split import drawn
from wording import article, invented_name, invented_word, loosened, plural


def _note(rng: Random) -> str:
    """Half a sentence that nobody could guess."""
    who, thing = person_name(rng), rng.choice(w.THINGS)
    return rng.choice((f"{who} has the {thing}", f"the {thing} is {rng.choice(w.PLACES)}",
                       f"{who} comes on {rng.choice(w.DAYS)}",
                       f"{who} needs {article(thing)}", f"the train leaves at {rng.randint(5, 22)}", f"{who} called",
                       f"the {rng.choice(w.ANIMALS)} is in the {rng.choice(('garden', 'kitchen', 'cellar', 'barn'))}",
                       f"the {thing} costs {rng.randint(2, 99)} euros"))


class Kind(NamedTuple):
    """A kind of fact about the user. `{v}` is the value, in all texts."""
    name: str
    values: Callable[[Random], str]
    tells: list[str]
    asks: list[str]
    answer: str
    unknown: str


def _digits(rng: Random, least: int, most: int) -> str:
    count = rng.randint(least, most)
    return str(rng.randint(10 ** (count - 1), 10 ** count - 1))


def _code(rng: Random) -> str:
    return "".join(rng.choice("abcdefghkmnprstwxyz0123456789") for _ in range(rng.randint(4, 6)))


def person_name(rng: Random) -> str:
    return rng.choice(w.NAMES) if rng.random() < 0.7 else invented_name(rng)


def city_name(rng: Random) -> str:
    return rng.choice(w.CITIES) if rng.random() < 0.75 else invented_name(rng)


def _from(values: list[str], invented: float = 0.0) -> Callable[[Random], str]:
    return lambda rng: invented_word(rng) if rng.random() < invented else rng.choice(values)


def _favourite(name: str, noun: str, values: Callable[[Random], str]) -> Kind:
    return Kind(
        name, values,
        [f"My favourite {noun} is {{v}}.", f"My favorite {noun} is {{v}}.", f"{{v}} is my favourite {noun}.",
         f"I like {{v}} more than any other {noun}.", f"The {noun} I like best is {{v}}.",
         f"If I had to choose one {noun}, I would choose {{v}}.", f"Remember that my favourite {noun} is {{v}}.",
         f"For me the best {noun} is {{v}}."],
        [f"What is my favourite {noun}?", f"What's my favourite {noun}?", f"Which {noun} do I like best?",
         f"Do you remember my favourite {noun}?", f"Can you tell me my favourite {noun}?",
         f"What is my favorite {noun}?", f"Which {noun} is my favourite?", f"Which {noun} do I like?",
         f"What {noun} do I like?", f"What {noun} did I say I like best?"],
        f"Your favourite {noun} is {{v}}.", f"You have not told me your favourite {noun} yet.")


def _owned(name: str, noun: str, values: Callable[[Random], str]) -> Kind:
    """Somebody or something of the user that has a name."""
    return Kind(
        name, values,
        [f"My {noun} is called {{v}}.", f"My {noun}'s name is {{v}}.", f"I have a {noun} called {{v}}.",
         f"I have a {noun}, {{v}}.", f"The name of my {noun} is {{v}}.", f"{{v}} is my {noun}."],
        [f"What is my {noun} called?", f"What is my {noun}'s name?", f"What's the name of my {noun}?",
         f"Do you remember the name of my {noun}?", f"How is my {noun} called?",
         f"What did I say my {noun} is called?"],
        f"Your {noun} is called {{v}}.", f"You have not told me what your {noun} is called.")


KIN = ("brother", "sister", "friend", "mother", "father", "son", "daughter", "neighbour", "teacher")


def _home(noun: str) -> Kind:
    """Where somebody of the user's family lives."""
    return Kind(
        noun + " home", city_name, [f"My {noun} lives in {{v}}.", f"My {noun} moved to {{v}}.",
                                    f"My {noun} is from {{v}}."],
        [f"Where does my {noun} live?", f"Which city does my {noun} live in?", f"Where is my {noun} from?"],
        f"Your {noun} lives in {{v}}.", f"You have not told me where your {noun} lives.")


KINDS = [
    Kind("name", person_name,
         ["My name is {v}.", "I am {v}.", "I'm {v}.", "Hi, I'm {v}!", "Hello, my name is {v}.", "You can call me {v}.",
          "People call me {v}.", "Please call me {v}.", "This is {v} speaking.", "{v} is my name.",
          "Hi! My name is {v}.",
          "Hello, I am {v}.", "The name is {v}.", "Remember my name: {v}."],
         ["What is my name?", "What's my name?", "Do you remember my name?", "Who am I?", "Can you tell me my name?",
          "What did I say my name was?", "Do you still know my name?", "Tell me my name.", "What am I called?",
          "Do you know my name?", "Do you know who I am?", "Say my name."],
         "Your name is {v}.", "You have not told me your name yet."),
    Kind("city", city_name,
         ["I live in {v}.", "I'm living in {v}.", "My home is in {v}.", "My city is {v}.", "I come from {v}.",
          "I am from {v}.", "I'm from {v}.", "{v} is where I live.", "My flat is in {v}.",
          "I have lived in {v} for years."],
         ["Where do I live?", "Which city do I live in?", "What city am I from?", "Where am I from?",
          "Do you remember where I live?", "Where is my home?", "What is my city?", "In which city do I live?",
          "What city do I live in?", "Can you tell me where I live?"],
         "You live in {v}.", "You have not told me where you live."),
    Kind("age", lambda rng: str(rng.randint(6, 99)),
         ["I am {v} years old.", "I'm {v} years old.", "My age is {v}.", "I turned {v} last week.", "I am {v}.",
          "I have just turned {v}."],
         ["How old am I?", "What is my age?", "Do you remember how old I am?", "What age am I?", "Do you know my age?"],
         "You are {v} years old.", "You have not told me how old you are."),
    _favourite("colour", "colour", _from(w.COLOURS)),
    _favourite("animal", "animal", _from(w.ANIMALS, 0.1)),
    _favourite("food", "food", _from(w.FOODS, 0.1)),
    _favourite("drink", "drink", _from(w.DRINKS, 0.1)),
    _favourite("fruit", "fruit", _from(w.FRUITS, 0.1)),
    _favourite("season", "season", _from(w.SEASONS)),
    _favourite("instrument", "instrument", _from(w.INSTRUMENTS)),
    _favourite("day", "day", _from(w.DAYS)),
    _favourite("book", "book", lambda rng: "The " + rng.choice(w.COLOURS).title() + " " + rng.choice(w.ANIMALS +
                                                                                                     w.THINGS).title()),
    Kind("number", lambda rng: _digits(rng, 1, 5),
         ["My lucky number is {v}.", "My favourite number is {v}.", "Remember the number {v}.", "The number is {v}.",
          "Please remember this number: {v}.", "Keep the number {v} in mind.", "My number is {v}.",
          "Remember this number: {v}."],
         ["What is my number?", "Which number did I tell you?", "What was the number?",
          "What number should you remember?",
          "What is my lucky number?", "Do you remember the number?", "What is the number?", "Tell me the number."],
         "The number is {v}.", "You have not told me a number."),
    Kind("code", _code,
         ["The password is {v}.", "The secret word is {v}.", "The code is {v}.", "My code is {v}.",
          "Remember the code {v}.", "The door code is {v}.", "Please remember this code: {v}."],
         ["What is the password?", "What is the code?", "What was the code?", "Tell me the code.", "What is my code?",
          "Do you remember the code?", "What is the secret word?", "Which code did I give you?"],
         "The code is {v}.", "You have not told me a code."),
    Kind("job", _from(w.JOBS),
         ["I work as a {v}.", "My job is {v}.", "I earn my living as a {v}.", "By profession I am a {v}.",
          "I am a {v} by trade."],
         ["What is my job?", "What do I do for a living?", "What is my profession?", "Do you remember my job?",
          "What's my job?", "What do I work as?"],
         "Your job is {v}.", "You have not told me your job."),
    Kind("hobby", _from(w.HOBBIES, 0.1),
         ["My hobby is {v}.", "In my free time I enjoy {v}.", "I spend my weekends {v}.",
          "What I like to do is {v}."],
         ["What is my hobby?", "What do I do in my free time?", "Do you remember my hobby?",
          "What's my hobby?"],
         "Your hobby is {v}.", "You have not told me your hobby."),
    Kind("birthday", lambda rng: f"{rng.randint(1, 28)} {rng.choice(w.MONTHS)}",
         ["My birthday is on {v}.", "My birthday is {v}.", "I celebrate my birthday on {v}."],
         ["When is my birthday?", "What day is my birthday?", "What is my birthday?", "Do you remember my birthday?"],
         "Your birthday is on {v}.", "You have not told me when your birthday is."),
    Kind("year", lambda rng: str(rng.randint(1930, 2020)),
         ["I was born in {v}.", "My year of birth is {v}.", "I was born in the year {v}."],
         ["When was I born?", "In which year was I born?", "What year was I born in?", "What is my year of birth?"],
         "You were born in {v}.", "You have not told me when you were born."),
    Kind("language", _from(w.LANGUAGES),
         ["I am learning {v}.", "I study {v} at the moment.", "The language I am learning is {v}.",
          "I take lessons in {v}."],
         ["Which language am I learning?", "What language do I study?", "What am I learning?",
          "Do you remember which language I am learning?"],
         "You are learning {v}.", "You have not told me which language you are learning."),
    Kind("car", _from(w.COLOURS),
         ["My car is {v}.", "I drive a {v} car.", "The colour of my car is {v}.", "I bought a {v} car."],
         ["What colour is my car?", "Which colour does my car have?", "Do you remember the colour of my car?"],
         "Your car is {v}.", "You have not told me the colour of your car."),
    Kind("room", lambda rng: str(rng.randint(2, 999)),
         ["My room number is {v}.", "I am in room {v}.", "My room is number {v}.", "I stay in room {v}."],
         ["What is my room number?", "Which room am I in?", "What room do I stay in?",
          "Do you remember my room number?"],
         "Your room number is {v}.", "You have not told me your room number."),
    Kind("meeting", lambda rng: f"{rng.choice(w.DAYS)} at {rng.randint(7, 20)}",
         ["My meeting is on {v}.", "I have a meeting on {v}.", "The meeting takes place on {v}.",
          "Remind me: the meeting is on {v}."],
         ["When is my meeting?", "When does the meeting take place?", "When is the meeting?",
          "Do you remember my meeting?"],
         "Your meeting is on {v}.", "You have not told me about a meeting."),
    Kind("love", lambda rng: rng.choice(w.FOODS + w.DRINKS + w.HOBBIES + w.FRUITS + w.ANIMALS),
         ["I love {v}.", "I like {v}.", "I really like {v}.", "I am very fond of {v}.", "I enjoy {v}."],
         ["What do I love?", "What do I like?", "What do I enjoy?", "What am I fond of?",
          "Do you remember what I like?"],
         "You like {v}.", "You have not told me what you like."),
    Kind("children", lambda rng: f"{person_name(rng)} and {person_name(rng)}",
         ["I have two children, {v}.", "I have two kids, {v}.", "My children are called {v}.", "My kids are {v}.",
          "My two children are {v}."],
         ["What are my children called?", "What are my kids' names?", "Who are my children?",
          "What are the names of my children?",
          "How are my kids called?"],
         "Your children are called {v}.", "You have not told me about your children."),
    Kind("note", _note,
         ["Remember this: {v}.", "Please remember: {v}.", "Keep in mind that {v}.", "Note this: {v}.",
          "Remember that {v}.",
          "Do not forget that {v}."],
         ["What should you remember?", "What did I ask you to remember?", "What should you keep in mind?",
          "What was I not to forget?", "What is on my list?", "What did I tell you to remember?"],
         "You asked me to remember that {v}.", "You have not asked me to remember anything."),
] + [_owned(n, n, person_name) for n in ("dog", "cat", "sister", "brother", "friend", "teacher", "son", "daughter",
                                         "boat",
                                         "horse", "parrot", "neighbour", "mother", "father", "rabbit")] + [_home(n)
                                                                                                           for n in KIN]

ATTRIBUTES = """
phone number, email, street, postcode, surname, middle name, nickname, company, school, team, shoe size, height,
hair colour, eye colour, star sign, hometown, username, bank, hotel, flight number, seat, train, bus line, blood
type, weight, favourite song, favourite film, favourite programming language, favourite sport, favourite game,
favourite band, favourite city, favourite country, favourite flower, favourite tree, favourite word, favourite
planet, favourite dish, favourite painter, favourite writer, plan, goal, dream, problem, project, password hint,
lucky charm, first name, last name, address, budget, deadline, locker, ticket number, order number, customer number,
best friend, doctor, boss, dentist, favourite teacher, street number, floor, gate""".strip().replace("\n", " ").split(", ")
OWNED = """
wife husband boyfriend girlfriend partner boss baby uncle aunt grandmother grandfather cousin colleague hamster
goldfish pony goose team company school house garden bicycle robot computer doll teddy turtle niece nephew twin""".split()


def _open_value(rng: Random) -> str:
    """Anything that a user may give as the value of anything."""
    draw = rng.random()
    if draw < 0.25:
        return person_name(rng)
    if draw < 0.40:
        return rng.choice((_digits(rng, 1, 6), f"{_digits(rng, 2, 4)}-{_digits(rng, 2, 4)}", _code(rng),
                           f"{_digits(rng, 1, 3)} {rng.choice(('cm', 'kg', 'euros'))}"))
    if draw < 0.55:
        return rng.choice(w.COLOURS + w.ANIMALS + w.THINGS + w.FRUITS)
    if draw < 0.70:
        return rng.choice(w.SPELLING)
    if draw < 0.80:
        return f"{rng.choice(w.COLOURS)} {rng.choice(w.THINGS + w.ANIMALS)}"
    return invented_name(rng) if rng.random() < 0.5 else invented_word(rng)


def _open_kind(rng: Random) -> Kind:
    """A kind of fact that is made up on the spot: "My X is V"."""
    if rng.random() < 0.3:
        noun = rng.choice(OWNED + w.ANIMALS + w.THINGS)
        return _owned(noun, noun, person_name)
    noun = rng.choice(ATTRIBUTES) if rng.random() < 0.6 else rng.choice(("favourite ", "", "", "new ", "old ")) + (
        rng.choice(w.SPELLING + w.THINGS) if rng.random() < 0.7 else invented_word(rng, 2))
    return Kind(
        noun, _open_value, [f"My {noun} is {{v}}.", f"My {noun} is {{v}}.", f"Remember that my {noun} is {{v}}.",
                            f"{{v}} is my {noun}."],
        [f"What is my {noun}?", f"What's my {noun}?", f"Do you remember my {noun}?", f"Tell me my {noun}.",
         f"Can you tell me my {noun}?"],
        f"Your {noun} is {{v}}.", f"You have not told me your {noun}.")


COMMON = [k for k in KINDS if k.name in ("name", "city", "colour", "number", "age", "code", "food", "animal", "dog",
                                         "cat", "note")]


class Relation(NamedTuple):
    """A kind of fact about somebody else or about a thing; `{s}` is who or what."""
    name: str
    subjects: Callable[[Random], str]
    values: Callable[[Random], str]
    tells: list[str]
    asks: list[str]
    answer: str


def _thing(rng: Random) -> str:
    return "the " + (rng.choice(w.COLOURS) + " " if rng.random() < 0.2 else "") + rng.choice(w.THINGS)


def _own_thing(rng: Random) -> str:
    return "my " + rng.choice(w.THINGS + ["car", "bicycle", "phone", "money", "passport", "dog", "cat", "homework"])


def _things(rng: Random) -> str:
    return "the " + plural(rng.choice(w.THINGS + w.FRUITS + ["ticket", "paper", "child", "shoe", "glove"]))


def _stuff(rng: Random) -> str:
    stuff = "milk butter bread honey cheese water money tea coffee sugar cake soup rice salt".split()
    return "the " + rng.choice(stuff)


def _place(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.7:
        return rng.choice(w.PLACES)
    return rng.choice((f"on level {rng.randint(1, 9)}", f"in room {rng.randint(1, 400)}", f"in {rng.choice(w.CITIES)}",
                       f"at {person_name(rng)}'s place",
                       f"under the {rng.choice(w.THINGS)}", f"next to the {rng.choice(w.THINGS)}",
                       f"behind the {rng.choice(w.ANIMALS)}",
                       f"in box {rng.randint(1, 50)}", "at the station", "at work", "at home"))


RELATIONS = [
    Relation("lives", person_name, city_name, ["{s} lives in {v}.", "{s} comes from {v}.",
                                               "My friend {s} lives in {v}."],
             ["Where does {s} live?", "Which city does {s} live in?", "Where is {s} from?"], "{s} lives in {v}."),
    Relation("likes", person_name, lambda rng: rng.choice(w.FOODS + w.DRINKS + w.HOBBIES),
             ["{s} likes {v}.", "{s} loves {v}.", "{s} is very fond of {v}."],
             ["What does {s} like?", "What does {s} love?", "What is {s} fond of?"], "{s} likes {v}."),
    Relation("colour", person_name, _from(w.COLOURS), ["{s}'s favourite colour is {v}.", "{s} likes the colour {v}."],
             ["What is {s}'s favourite colour?", "Which colour does {s} like?"], "{s}'s favourite colour is {v}."),
    Relation("works", person_name, lambda rng: article(rng.choice(w.JOBS)), ["{s} is {v}.", "{s} works as {v}."],
             ["What is {s}'s job?", "What does {s} do?", "What does {s} work as?"], "{s} is {v}."),
    Relation("age", person_name, lambda rng: str(rng.randint(3, 99)),
             ["{s} is {v} years old.", "{s} turned {v} today."],
             ["How old is {s}?", "What is {s}'s age?"], "{s} is {v} years old."),
    Relation("has", person_name, lambda rng: f"{article(rng.choice(w.PETS))} called {person_name(rng)}",
             ["{s} has {v}.", "{s} owns {v}."], ["What pet does {s} have?", "Which pet does {s} own?"], "{s} has {v}."),
    Relation("place", _thing, _place, ["I put {s} {v}.", "{S} is {v}.", "I left {s} {v}.", "You can find {s} {v}."],
             ["Where is {s}?", "Where did I put {s}?", "Where can I find {s}?", "Do you remember where {s} is?"],
             "{S} is {v}."),
    Relation("stuff", _stuff, _place, ["{S} is {v}.", "I put {s} {v}.", "Remember that {s} is {v}.",
                                       "You can find {s} {v}."],
             ["Where is {s}?", "Where did I put {s}?", "Where can I find {s}?"], "{S} is {v}."),
    Relation("things", _things, _place, ["{S} are {v}.", "I put {s} {v}.", "I left {s} {v}.",
                                         "Remember that {s} are {v}."],
             ["Where are {s}?", "Where did I put {s}?", "Where can I find {s}?", "Do you remember where {s} are?"],
             "{S} are {v}."),
    Relation("own", _own_thing, _place, ["{S} is {v}.", "I left {s} {v}.", "Remember that {s} is {v}."],
             ["Where is {s}?", "Do you remember where {s} is?", "Where can I find {s}?"], "{Y} is {v}."),
    Relation("price", _thing, lambda rng: str(rng.randint(2, 99)),
             ["{S} costs {v} euros.", "I paid {v} euros for {s}."],
             ["What does {s} cost?", "How much did I pay for {s}?", "How much is {s}?"], "{S} costs {v} euros."),
]

HEARD = ["Noted.", "I will remember that.", "Thank you, I will remember that.", "Got it.",
         "All right, I keep that in mind.",
         "Good to know.", "Thanks for telling me.", "I have made a note of it.", "Understood.", "OK, noted."]
GREETED = ["Nice to meet you, {v}!", "Hello {v}! Nice to meet you.", "Hi {v}, how can I help you?", "Welcome, {v}!",
           "Hello {v}! What can I do for you?", "Good to meet you, {v}. I will remember your name."]
CHANGED = ["Actually, {t}", "I changed my mind. {T}", "Correction: {t}", "Things have changed: {t}",
           "Sorry, I was wrong. {T}",
           "An update: {t}", "From now on, {t}"]


class Fact(NamedTuple):
    """One told fact: who or what, which kind, its value, and how it is said."""
    slot: tuple[str, str]  # (kind, subject): a later fact of the same slot replaces this one
    value: str
    statement: str         # the exact answer when asked for it
    tells: list[str]
    asks: list[str]


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _user_fact(rng: Random, kind: Kind, value: str) -> Fact:
    return Fact((kind.name, ""), value, _capital(kind.answer.format(v=value)),
                [_capital(t.format(v=value)) for t in kind.tells], kind.asks)


def _other_fact(rng: Random, relation: Relation, subject: str, value: str) -> Fact:
    def say(text: str) -> str:
        return text.format(s=subject, S=_capital(subject), v=value, Y=_capital(subject.replace("my ", "your ", 1)))
    return Fact((relation.name, subject), value, say(relation.answer), [say(t) for t in relation.tells],
                [say(a) for a in relation.asks])


def _draw_fact(rng: Random, known: dict[tuple[str, str], Fact]) -> Fact:
    """A new fact, or now and then a new value for a known one."""
    draw = rng.random()
    if draw < 0.18:
        kind = _open_kind(rng)
        return _user_fact(rng, kind, kind.values(rng))
    if draw < 0.68:
        kind = rng.choice(COMMON if rng.random() < 0.5 else KINDS)
        return _user_fact(rng, kind, kind.values(rng))
    relation = rng.choice(RELATIONS)
    subjects = [s for (name, s) in known if name == relation.name and s]
    people = [s for (_, s) in known if s and not s.startswith(("the ", "my "))]
    if subjects and rng.random() < 0.15:
        subject = rng.choice(subjects)
    elif people and relation.subjects is person_name and rng.random() < 0.4:
        subject = rng.choice(people)
    else:
        subject = relation.subjects(rng)
    return _other_fact(rng, relation, subject, relation.values(rng))


def _named_and_at_home(rng: Random) -> tuple[list[Fact], str]:
    """Two facts in one sentence: what somebody is called and where they live."""
    noun, name, city = rng.choice(KIN), person_name(rng), city_name(rng)
    kinds = {k.name: k for k in KINDS}
    facts = [_user_fact(rng, kinds[noun], name), _user_fact(rng, kinds[noun + " home"], city),
             _other_fact(rng, RELATIONS[0], name, city)]
    return facts, rng.choice((f"My {noun} {name} lives in {city}.", f"My {noun} is called {name} and lives in {city}.",
                              f"I have a {noun}, {name}, who lives in {city}."))


def _statement(rng: Random) -> Turn:
    """Something the user says that is no fact to be asked for."""
    day = rng.choice(("today", "yesterday", "this morning", "last week", "on " + rng.choice(w.DAYS)))
    text = rng.choice((
        f"I bought {article(rng.choice(w.THINGS))} {day}.", f"I saw {article(rng.choice(w.ANIMALS))} {day}.",
        f"It was very {rng.choice(('hot', 'cold', 'wet', 'nice'))} {day}.",
        f"I went to {rng.choice(w.CITIES)} {day}.", f"We had {rng.choice(w.FOODS)} for dinner {day}.",
        f"I met {rng.choice(w.NAMES)} {day}.",
        f"I want to buy {article(rng.choice(w.THINGS))}.", f"I think that {rng.choice(w.ANIMALS)}s are nice.",
        f"My {rng.choice(w.THINGS)} is broken."))
    return Turn(loosened(rng, text), rng.choice(("I see.", "That is interesting.", "Thanks for telling me.",
                                                 "Good to know.")),
                "The user tells me something.")


def _heard(rng: Random, facts: list[Fact]) -> str:
    last = facts[-1]
    names = [f for f in facts if f.slot == ("name", "")]
    draw = rng.random()
    if names and draw < 0.7:
        return rng.choice(GREETED).format(v=names[-1].value)
    if draw < 0.75 and len(facts) == 1:
        return rng.choice(("Noted: {t}", "Got it: {t}", "I will remember it: {t}", "OK. {T}")).format(
            t=_lowered(last.statement), T=last.statement)
    return rng.choice(HEARD)


def _lowered(text: str) -> str:
    """The sentence as it goes on after a colon."""
    return text[0].lower() + text[1:] if text.split()[0] in ("You", "Your", "The", "My") else text


def _tell(rng: Random, facts: list[Fact], is_change: bool) -> Turn:
    texts = [rng.choice(f.tells) for f in facts]
    if is_change:
        message = rng.choice(CHANGED).format(t=_lowered(texts[0]), T=texts[0])
    elif len(texts) == 2 and rng.random() < 0.5 and texts[1].startswith(("I ", "My ", "The ")):
        message = texts[0].rstrip(".!") + " and " + _lowered(texts[1])
    else:
        message = " ".join(texts)
    return Turn(loosened(rng, message) if rng.random() < 0.4 else message, _heard(rng, facts),
                "The user tells me something. I should keep it in mind.")


def _ask(rng: Random, fact: Fact) -> Turn:
    return Turn(loosened(rng, rng.choice(fact.asks)), fact.statement, f"I was told this before: {fact.statement}")


def _ask_both(rng: Random, facts: list[Fact]) -> Turn:
    """Two facts in one question."""
    one, two = rng.sample(facts, 2)
    questions = [rng.choice([a for a in f.asks if a.startswith(("W", "How"))] or f.asks) for f in (one, two)]
    return Turn(f"{questions[0][:-1]} and {questions[1][0].lower()}{questions[1][1:]}",
                f"{one.statement} {two.statement}",
                "I was told both before.")


def _ask_unknown(rng: Random, known: dict[tuple[str, str], Fact]) -> Turn:
    if rng.random() < 0.7:
        kinds = [k for k in (*KINDS, *(_open_kind(rng) for _ in range(8))) if (k.name, "") not in known]
        kind = rng.choice([k for k in kinds if k in COMMON] or kinds) if rng.random() < 0.5 else rng.choice(kinds)
        return Turn(loosened(rng, rng.choice(kind.asks)), kind.unknown,
                    "I look for it in the conversation. It was not said.")
    relation = rng.choice(RELATIONS)
    subject = relation.subjects(rng)
    while (relation.name, subject) in known:
        subject = relation.subjects(rng)
    fact = _other_fact(rng, relation, subject, "")
    return Turn(loosened(rng, rng.choice(fact.asks)), "You have not told me that yet.",
                "I look for it in the conversation. It was not said.")


def _ask_summary(rng: Random, known: dict[tuple[str, str], Fact]) -> Turn | None:
    facts = [f for (_, subject), f in known.items() if not subject]
    if not 1 <= len(facts) <= 4:
        return None
    question = rng.choice(("What do you know about me?", "What do you remember about me?",
                           "What have I told you about me?",
                           "Tell me everything you know about me.", "Summarise what you know about me."))
    return Turn(loosened(rng, question), " ".join(f.statement for f in facts), "I list what I was told, in order.")


def _ask_said(rng: Random, turns: list[Turn]) -> Turn | None:
    """What the user said just now, or first of all."""
    which = rng.choice(("last", "last", "first"))
    said = turns[0 if which == "first" else -1].user
    if len(said) > 80 or '"' in said:
        return None
    question = {"last": ("What did I just say?", "What did I say just now?", "What was my last message?",
                         "Repeat my last message."),
                "first": ("What did I say first?", "What was my first message?",
                          "What was the first thing I said?")}[which]
    return Turn(loosened(rng, rng.choice(question)), f'You said: "{said}"', "I look back at the conversation.")


SYSTEMS = ["You are a helpful assistant.", "You are a friendly assistant.", "You are Skein's demo model.",
           "Answer briefly.",
           "You are a helpful assistant with a good memory.", "Be polite and brief.", "You answer in English.",
           "You are talking with a user of Skein.", "Help the user.", "You are a helpful AI assistant.",
           "You are an AI assistant.",
           "You are a helpful, harmless and honest assistant.", "Answer in one sentence.", "Be concise.",
           "You are a chatbot.",
           "Answer the user's questions truthfully.", "You are a patient teacher."]

Distractor = Callable[[Random], Turn]


class Story(NamedTuple):
    """A conversation; the last turn asks for `asked`, told `distance` turns before."""
    system: str
    turns: list[Turn]
    facts: tuple[tuple[str, ...], ...]
    distance: int


def _talk(rng: Random, distractor: Distractor, distance: int) -> Story:
    known: dict[tuple[str, str], Fact] = {}
    turns: list[Turn] = []
    system = rng.choice(SYSTEMS) if rng.random() < 0.25 else ""
    told: list[tuple[str, ...]] = []

    def learn(fact: Fact) -> None:
        known.pop(fact.slot, None)
        known[fact.slot] = fact
        told.append((*fact.slot, fact.value))

    target = _draw_fact(rng, known)
    if system and rng.random() < 0.15 and target.slot[0] in ("name", "city"):
        is_name = target.slot[0] == "name"
        system += f" The user's name is {target.value}." if is_name else f" The user lives in {target.value}."
        learn(target)
    else:
        first = [target]
        if rng.random() < 0.3:
            other = _draw_fact(rng, known)
            if other.slot != target.slot:
                first.append(other)
                rng.shuffle(first)
        for fact in first:
            learn(fact)
        turns.append(_tell(rng, first, False))
    for _ in range(distance):
        draw = rng.random()
        if draw < 0.03:
            facts, message = _named_and_at_home(rng)
            for fact in facts:
                learn(fact)
            turns.append(Turn(message, rng.choice(HEARD), "The user tells me something. I should keep it in mind."))
            continue
        if draw < 0.06:
            turns.append(_statement(rng))
            continue
        if draw < 0.30:
            fact = _draw_fact(rng, known)
            is_change = fact.slot in known
            learn(fact)
            turns.append(_tell(rng, [fact], is_change))
        elif draw < 0.45:
            turns.append(_ask(rng, rng.choice(list(known.values()))))
        elif draw < 0.48 and len(known) > 1:
            turns.append(_ask_both(rng, list(known.values())))
        elif draw < 0.53:
            turns.append(_ask_unknown(rng, known))
        elif draw < 0.56 and (summary := _ask_summary(rng, known)):
            turns.append(summary)
        elif draw < 0.58 and turns and (said := _ask_said(rng, turns)):
            turns.append(said)
        else:
            turns.append(distractor(rng))
    turns.append(_ask(rng, known[target.slot]))
    if len(turns) == 2 and rng.random() < 0.15:  # told and asked in one breath
        told_turn, ask_turn = turns
        turns = [Turn(f"{told_turn.user} {ask_turn.user}", ask_turn.answer, ask_turn.thought)]
    return Story(system, turns, tuple(sorted(told)), distance)


def talk(rng: Random, distractor: Distractor, distance: int, held_out: bool = False) -> Story:
    """A conversation whose last question asks for the fact told first, `distance` turns before; facts may have changed
    since. What makes the instance is the set of facts told in it."""
    return drawn(lambda: _talk(rng, distractor, distance), lambda story: ("memory", story.facts), held_out)


def unknown_talk(rng: Random) -> list[Turn]:
    """Questions about facts that were never told."""
    return [_ask_unknown(rng, {}) for _ in range(rng.choice((1, 1, 2)))]
