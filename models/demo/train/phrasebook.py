"""Sentence pairs between English, French and Chinese: templates with slot words, in agreement, and fixed phrases."""
from __future__ import annotations

from random import Random
from typing import Callable, NamedTuple, Sequence

import phrases as p
from document import Piece, Turn, translation
from phrases import Noun
from split import drawn
from wording import article, loosened, plural, sentence
from words import NAMES


class Sentences(NamedTuple):
    """One sentence in three languages, and what makes it: its template and slot words."""
    key: tuple[str, ...]
    texts: dict[str, str]


# ---------------------------------------------------------------- French agreement
def _elides(noun: Noun) -> bool:
    return noun.fr[0] in "aeiouéèêhœ"


def le(n: Noun) -> str:
    return "l'" + n.fr if _elides(n) else ("le " if n.gender == "m" else "la ") + n.fr


def un(n: Noun) -> str:
    return ("un " if n.gender == "m" else "une ") + n.fr


def mon(n: Noun) -> str:
    return ("mon " if n.gender == "m" or _elides(n) else "ma ") + n.fr


def ce(n: Noun) -> str:
    if n.gender == "f":
        return "cette " + n.fr
    return ("cet " if _elides(n) else "ce ") + n.fr


def du(n: Noun) -> str:
    return "de l'" + n.fr if _elides(n) else ("du " if n.gender == "m" else "de la ") + n.fr


def au(n: Noun) -> str:
    return "à l'" + n.fr if _elides(n) else ("au " if n.gender == "m" else "à la ") + n.fr


def _plural(n: Noun) -> str:
    return n.fr_plural or n.fr + ("" if n.fr[-1] in "sx" else "s")


def _agree(adjective: Sequence[str], n: Noun) -> str:
    return adjective[1] if n.gender == "m" else adjective[2]


# ---------------------------------------------------------------- templates
Texts = tuple[str, str, str]  # English, French, Chinese

ABOUT_THING: list[Callable[[Noun], Texts]] = [
    lambda n: (f"Where is the {n.en}?", f"Où est {le(n)} ?", f"{n.zh}在哪里？"),
    lambda n: (f"I would like {article(n.en)}.", f"Je voudrais {un(n)}.", f"我想要一{n.measure}{n.zh}。"),
    lambda n: (f"I have lost my {n.en}.", f"J'ai perdu {mon(n)}.", f"我丢了我的{n.zh}。"),
    lambda n: (f"How much is this {n.en}?", f"Combien coûte {ce(n)} ?", f"这{n.measure}{n.zh}多少钱？"),
    lambda n: (f"This is my {n.en}.", f"C'est {mon(n)}.", f"这是我的{n.zh}。"),
    lambda n: (f"Do you have {article(n.en)}?", f"Avez-vous {un(n)} ?", f"你有{n.zh}吗？"),
    lambda n: (f"The {n.en} is on the table.", f"{sentence(le(n))} est sur la table.", f"{n.zh}在桌子上。"),
    lambda n: (f"I need {article(n.en)}.", f"J'ai besoin d'{un(n)}.", f"我需要一{n.measure}{n.zh}。"),
    lambda n: (f"I am looking for {article(n.en)}.", f"Je cherche {un(n)}.", f"我在找一{n.measure}{n.zh}。"),
    lambda n: (f"We bought {article(n.en)} yesterday.", f"Nous avons acheté {un(n)} hier.",
               f"我们昨天买了一{n.measure}{n.zh}。"),
    lambda n: (f"Is this your {n.en}?", f"Est-ce {'votre ' + n.fr} ?", f"这是你的{n.zh}吗？"),
    lambda n: (f"There is {article(n.en)} in the room.", f"Il y a {un(n)} dans la chambre.",
               f"房间里有一{n.measure}{n.zh}。"),
    lambda n: (f"He gave me {article(n.en)}.", f"Il m'a donné {un(n)}.", f"他给了我一{n.measure}{n.zh}。"),
    lambda n: (f"I do not want this {n.en}.", f"Je ne veux pas de {ce(n)}.", f"我不要这{n.measure}{n.zh}。"),
]
ABOUT_PLACE: list[Callable[[Noun], Texts]] = [
    lambda n: (f"Where is the {n.en}?", f"Où est {le(n)} ?", f"{n.zh}在哪里？"),
    lambda n: (f"How do I get to the {n.en}?", f"Comment aller {au(n)} ?", f"去{n.zh}怎么走？"),
    lambda n: (f"I am going to the {n.en}.", f"Je vais {au(n)}.", f"我去{n.zh}。"),
    lambda n: (f"The {n.en} is closed today.", f"{sentence(le(n))} est fermé{'e' * (n.gender == 'f')} aujourd'hui.",
               f"{n.zh}今天关门。"),
    lambda n: (f"Is the {n.en} far?", f"Est-ce que {le(n)} est loin ?", f"{n.zh}远吗？"),
    lambda n: (f"We are waiting in front of the {n.en}.", f"Nous attendons devant {le(n)}.", f"我们在{n.zh}前面等。"),
    lambda n: (f"She works at the {n.en}.", f"Elle travaille {au(n)}.", f"她在{n.zh}工作。"),
    lambda n: (f"The {n.en} is on the left.", f"{sentence(le(n))} est à gauche.", f"{n.zh}在左边。"),
]
ABOUT_FOOD: list[Callable[[Noun], Texts]] = [
    lambda n: (f"I like {n.en}.", f"J'aime {le(n)}.", f"我喜欢{n.zh}。"),
    lambda n: (f"I do not like {n.en}.", f"Je n'aime pas {le(n)}.", f"我不喜欢{n.zh}。"),
    lambda n: (f"Some {n.en}, please.", f"{sentence(du(n))}, s'il vous plaît.", f"请给我一些{n.zh}。"),
    lambda n: (f"She buys {n.en} at the market.", f"Elle achète {du(n)} au marché.", f"她在市场买{n.zh}。"),
    lambda n: (f"The {n.en} is very good.", f"{sentence(le(n))} est très bon{'ne' * (n.gender == 'f')}.", f"{n.zh}很好。"),
    lambda n: (f"Would you like some {n.en}?", f"Voulez-vous {du(n)} ?", f"你要{n.zh}吗？"),
    lambda n: (f"There is no more {n.en}.", f"Il n'y a plus {'d' + chr(39) if _elides(n) else 'de '}{n.fr}.",
               f"没有{n.zh}了。"),
]


def _two(rng: Random, nouns: list[Noun]) -> tuple[Noun, Noun]:
    a, b = rng.sample(nouns, 2)
    return a, b


def _combined(rng: Random) -> Sentences:
    """Templates with two slots."""
    kind = rng.randrange(14)
    if kind == 0:
        n, adjective = rng.choice(p.THINGS), rng.choice(p.ADJECTIVES)
        texts = (f"The {n.en} is {adjective[0]}.", f"{sentence(le(n))} est {_agree(adjective, n)}.",
                 f"{n.zh}是{adjective[3]}的。")
        key = (n.en, adjective[0])
    elif kind == 1:
        n, state = rng.choice(p.THINGS), rng.choice(p.STATES)
        texts = (f"This {n.en} is very {state[0]}.", f"{sentence(ce(n))} est très {_agree(state, n)}.",
                 f"这{n.measure}{n.zh}很{state[3]}。")
        key = (n.en, state[0])
    elif kind == 2:
        who, mood = rng.choice(p.PEOPLE), rng.choice(p.MOODS)
        much = "" if mood[0] == "ill" else "很"
        texts = (f"My {who.en} is {mood[0]}.", f"{sentence(mon(who))} est {_agree(mood, who)}.",
                 f"我的{who.zh}{much}{mood[3]}。")
        key = (who.en, mood[0])
    elif kind == 3:
        who, city = rng.choice(p.PEOPLE), rng.choice(p.CITIES)
        texts = (f"My {who.en} lives in {city[0]}.", f"{sentence(mon(who))} habite à {city[1]}.",
                 f"我的{who.zh}住在{city[2]}。")
        key = (who.en, city[0])
    elif kind == 4:
        who, food = rng.choice(p.PEOPLE), rng.choice(p.FOODS)
        texts = (f"My {who.en} likes {food.en}.", f"{sentence(mon(who))} aime {le(food)}.", f"我的{who.zh}喜欢{food.zh}。")
        key = (who.en, food.en)
    elif kind == 5:
        who, n = rng.choice(p.PEOPLE), rng.choice(p.THINGS)
        texts = (f"My {who.en} has {article(n.en)}.", f"{sentence(mon(who))} a {un(n)}.",
                 f"我的{who.zh}有一{n.measure}{n.zh}。")
        key = (who.en, n.en)
    elif kind == 6:
        a, b = _two(rng, p.PLACES)
        texts = (f"The {a.en} is near the {b.en}.", f"{sentence(le(a))} est près {du(b)}.", f"{a.zh}在{b.zh}附近。")
        key = (a.en, b.en)
    elif kind == 7:
        a, b = _two(rng, p.FOODS)
        texts = (f"We would like {a.en} and {b.en}.", f"Nous voudrions {du(a)} et {du(b)}.", f"我们想要{a.zh}和{b.zh}。")
        key = (a.en, b.en)
    elif kind == 8:
        n, number = rng.choice(p.THINGS), rng.choice(p.NUMBERS)
        texts = (f"I have {number[0]} {n.plural or plural(n.en)}.", f"J'ai {number[1]} {_plural(n)}.",
                 f"我有{number[2]}{n.measure}{n.zh}。")
        key = (n.en, number[0])
    elif kind == 9:
        city, day = rng.choice(p.CITIES), rng.choice(p.DAYS)
        texts = (f"On {day[0]} I am going to {city[0]}.", f"{sentence(day[1])}, je vais à {city[1]}.",
                 f"{day[2]}我去{city[2]}。")
        key = (city[0], day[0])
    elif kind == 10:
        place, day = rng.choice(p.PLACES), rng.choice(p.DAYS)
        texts = (f"The {place.en} is open on {day[0]}.",
                 f"{sentence(le(place))} est ouvert{'e' * (place.gender == 'f')} le {day[1]}.",
                 f"{place.zh}{day[2]}开门。")
        key = (place.en, day[0])
    elif kind in (11, 12):
        n, colour = rng.choice(p.THINGS), rng.choice(p.ADJECTIVES[2:])  # French puts colours behind the noun
        who = rng.choice(p.PEOPLE) if kind == 11 else None
        texts = (f"{'My ' + who.en + ' has' if who else 'I have'} {article(colour[0])} {n.en}.",
                 f"{sentence(mon(who)) + ' a' if who else 'J' + chr(39) + 'ai'} {un(n)} {_agree(colour, n)}.",
                 f"我{'的' + who.zh if who else ''}有一{n.measure}{colour[3]}的{n.zh}。")
        key = (who.en if who else "I", n.en, colour[0])
    else:
        name, city = rng.choice(NAMES), rng.choice(p.CITIES)
        texts = (f"My name is {name} and I live in {city[0]}.", f"Je m'appelle {name} et j'habite à {city[1]}.",
                 f"我叫{name}，我住在{city[2]}。")
        key = (name, city[0])
    return Sentences((str(kind), *key), dict(zip(("English", "French", "Chinese"), texts)))


def _single(rng: Random) -> Sentences:
    """Templates with one slot."""
    templates, nouns, group = rng.choice(((ABOUT_THING, p.THINGS, "thing"), (ABOUT_PLACE, p.PLACES, "place"),
                                          (ABOUT_FOOD, p.FOODS, "food")))
    number, noun = rng.randrange(len(templates)), rng.choice(nouns)
    return Sentences((group, str(number), noun.en), dict(zip(("English", "French", "Chinese"),
                                                             templates[number](noun))))


def _short(rng: Random) -> Sentences:
    """Small sentences that are always in training: fixed phrases, languages, days, hours."""
    draw = rng.random()
    if draw < 0.7:
        texts = tuple(rng.choice(p.FIXED.split("\n")).split("|"))
    elif draw < 0.8:
        en, fr, zh = rng.choice(p.LANGUAGES)
        elided = ("l'" if fr[0] in "aeio" else "le ") + fr
        texts = rng.choice(((f"I am learning {en}.", f"J'apprends {elided}.", f"我在学{zh}。"),
                            (f"Do you speak {en}?", f"Parlez-vous {fr} ?", f"你会说{zh}吗？")))
    elif draw < 0.9:
        en, fr, zh = rng.choice(p.DAYS)
        texts = rng.choice(((f"Today is {en}.", f"Aujourd'hui, c'est {fr}.", f"今天是{zh}。"),
                            (f"See you on {en}.", f"À {fr}.", f"{zh}见。")))
    else:
        name = rng.choice(NAMES)
        texts = (f"My name is {name}.", f"Je m'appelle {name}.", f"我叫{name}。")
    return Sentences(("short",), dict(zip(("English", "French", "Chinese"), texts)))


def sentences(rng: Random, held_out: bool = False) -> Sentences:
    if not held_out and rng.random() < 0.15:
        return _short(rng)
    return drawn(lambda: (_combined if rng.random() < 0.6 else _single)(rng), lambda s: ("phrase", *s.key), held_out)


PAIRS = [("English", "Chinese"), ("Chinese", "English"), ("English", "French"), ("French", "English")] * 4 + [
    ("French", "Chinese"), ("Chinese", "French")]


def drawn_pair(rng: Random, held_out: bool = False) -> tuple[str, str, str, str]:
    """Source language, target language, text, translation."""
    source, target = rng.choice(PAIRS)
    texts = sentences(rng, held_out).texts
    return source, target, texts[source], texts[target]


def pieces(rng: Random) -> list[Piece]:
    return translation(*drawn_pair(rng))


ASK = ['How do you say "{t}" in {l}?', "Translate to {l}: {t}", "Translate into {l}: {t}", 'What is "{t}" in {l}?',
       "Say this in {l}: {t}", "Translate '{t}' into {l}.", "Translate {t} into {l}", "{t} (in {l}, please)",
       'Please translate "{t}" to {l}.']


NOUNS = p.THINGS + p.PLACES + p.FOODS + p.PEOPLE


def _bare(text: str) -> str:
    """A phrase as people put it into a question."""
    text = text.rstrip(" .!?。！？")
    return text if text.startswith(("I ", "I'")) else text[0].lower() + text[1:]


def word_turn(rng: Random) -> Turn:
    """Single words and fixed phrases, asked for in passing."""
    language = rng.choice(("French", "Chinese"))
    draw = rng.random()
    if draw < 0.45:
        texts = dict(zip(("English", "French", "Chinese"), rng.choice(p.FIXED.split("\n")).split("|")))
        if rng.random() < 0.2:
            phrase = texts[language].rstrip(" .!?。！？")
            shown = rng.choice((phrase, phrase[0].lower() + phrase[1:], f'"{phrase}"'))
            return Turn(loosened(rng, rng.choice(("What does {} mean?", "What is {} in English?",
                                                  "What does {} mean in English?")).format(shown)),
                        f'It means "{texts["English"]}"', f"A phrase that I know in {language}.")
        asked = rng.choice((_bare(texts["English"]), f'"{_bare(texts["English"])}"', _bare(texts["English"])))
        question = rng.choice(("How do you say {t} in {l}?", "Say {t} in {l}.", "What is {t} in {l}?", "{t} in {l}",
                               "Translate {t} to {l}."))
        return Turn(question.format(t=asked, l=language), texts[language], f"A phrase that I know in {language}.")
    noun = rng.choice(NOUNS)
    word = noun.fr if language == "French" else noun.zh
    if draw < 0.85:
        question = rng.choice(("What is the {l} word for {n}?", "How do you say {n} in {l}?", "What is {n} in {l}?",
                               "{n} in {l}?",
                               'Translate "{n}" to {l}.', "What's the {l} for {n}?"))
        return Turn(question.format(n=noun.en, l=language), word, f"A word that I know in {language}.")
    question = rng.choice(("What does {w} mean?", 'What does "{w}" mean?', "What is {w} in English?",
                           "What does {w} mean in English?"))
    return Turn(question.format(w=word), f'"{word}" is {language} for "{noun.en}".',
                f"A word that I know in {language}.")


def remembering(rng: Random, between: Callable[[Random], Turn]) -> list[Turn]:
    """A name or a city, told and asked in French or Chinese."""
    name, city = rng.choice(NAMES), rng.choice(p.CITIES)
    chinese = "".join(rng.sample("小明王丽李华张伟刘洋陈静赵强", 2))
    tell, heard, ask, answer = rng.choice((
        (f"Je m'appelle {name}.", f"Enchanté, {name} !", rng.choice(("Comment je m'appelle ?", "Quel est mon nom ?")),
         f"Vous vous appelez {name}."),
        (f"J'habite à {city[1]}.", "D'accord, je m'en souviens.",
         rng.choice(("Où est-ce que j'habite ?", "Où j'habite ?")), f"Vous habitez à {city[1]}."),
        (rng.choice(("我叫{}。", "我叫{}", "我的名字是{}。")).format(chinese), f"你好，{chinese}！",
         rng.choice(("我叫什么名字？", "我叫什么？", "我的名字是什么？")), f"你叫{chinese}。"),
        (f"我住在{city[2]}。", "好的，我记住了。", rng.choice(("我住在哪里？", "我住在哪儿？")), f"你住在{city[2]}。")))
    return [Turn(tell, heard, "I keep that in mind."), *(between(rng) for _ in range(rng.choice((0, 0, 1, 2, 4)))),
            Turn(ask, answer, "I was told this before.")]


def follow_up(rng: Random) -> list[Turn]:
    """A translation in a chat, then the same sentence in the other language."""
    texts = sentences(rng).texts
    first, second = rng.sample(("French", "Chinese"), 2)
    again = rng.choice(("And in {l}?", "And what is that in {l}?", "Now in {l}, please.", "And {l}?",
                        "The same in {l}, please."))
    return [Turn(rng.choice(ASK).format(t=texts["English"], l=first), texts[first], f"I translate to {first}."),
            Turn(again.format(l=second), texts[second], f"The same sentence, now in {second}.")]


def turn(rng: Random) -> Turn:
    """The phrasebook in a chat."""
    if rng.random() < 0.3:
        return word_turn(rng)
    source, target, text, translated = drawn_pair(rng)
    return Turn(rng.choice(ASK).format(t=text, l=target), translated, f"I translate from {source} to {target}.")
