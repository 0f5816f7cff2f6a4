"""Conversations with tools: sums for a calculator, questions for a clock, answers from results, and no call otherwise.

What makes the instance is the sum or the wording of the question for the time, and besides the tool with its
parameters.
"""
from __future__ import annotations

import datetime
import re
from fractions import Fraction
from random import Random
from typing import Callable, NamedTuple

import arithmetic
import small_talk
import words as w
from document import Turn
from split import drawn, is_held_out
from tool_box import TOWNS, ZONE_OF, Calculator, Clock, calculators, clock, others
from tool_forms import Call, Said, Step, Talk, Tool, compact, shown
from wording import counted, invented_name, listed, loosened, number_word, plural

NUMBER = re.compile(r"\d+(?:\.\d+)?")
SPOKEN = {"+": " + ", "-": " - ", "*": " x ", "/": " / "}
SHARE_OF_WRONG_RESULTS = 0.06  # what the tool says counts, even where the model knows better


class Sum(NamedTuple):
    """Something to calculate. `{r}` in the answer is the result, as the tool writes it."""
    question: str
    expression: str
    answer: str
    operands: tuple[str, str, str] | None = None  # first, sign, second


# ---------------------------------------------------------------- what is asked
MULTIPLY = ["What is {a} * {b}?", "{a} * {b}", "{a}*{b}", "What is {a} times {b}?", "How much is {a} x {b}?",
            "Multiply {a} by {b}.", "What is {a} x {b}?", "Calculate {a} * {b}.", "What's {a}*{b}?", "{a} x {b} = ?",
            "What is the product of {a} and {b}?", "Compute {a} times {b}.", "{a} × {b}", "What is {a} × {b}?",
            "{a}x{b}", "How much is {a} times {b}?", "{a}*{b}=", "Multiply {a} and {b}.", "What's {a} times {b}?",
            "Please multiply {a} by {b}.", "what is {a}*{b}", "Calculate {a} times {b}."]
DIVIDE = ["What is {a} / {b}?", "{a} / {b}", "{a}/{b}", "What is {a} divided by {b}?", "Divide {a} by {b}.",
          "How much is {a} / {b}?", "Calculate {a} / {b}.", "What's {a}/{b}?", "{a} ÷ {b}", "What is {a} ÷ {b}?",
          "Compute {a} divided by {b}.", "{a} / {b} = ?", "How much is {a} divided by {b}?", "{a}/{b}=",
          "Please divide {a} by {b}.", "what is {a}/{b}", "What is the quotient of {a} and {b}?"]
ASKED = {"+": arithmetic.ADD, "-": arithmetic.SUBTRACT, "*": MULTIPLY, "/": DIVIDE}
ANY = ["What is {e}?", "{e}", "{e} =", "Calculate {e}.", "Compute {e}.", "How much is {e}?", "What's {e}?", "{e} = ?",
       "Evaluate {e}.", "Can you calculate {e}?", "Please calculate {e}.", "Use the calculator: {e}",
       "What is {e}? Use the calculator.", "Use your tools to calculate {e}.", "Can you work out {e}?", "Solve {e}.",
       "I need the result of {e}.", "What does {e} give?", "Tell me {e}.", "What is the result of {e}?",
       "Please use the calculator for {e}.", "calculate {e}", "compute {e}"]


def _whole(rng: Random, digits_most: int = 6) -> int:
    digits = min(digits_most, rng.choices((1, 2, 3, 4, 5, 6), (6, 26, 26, 18, 12, 12))[0])
    return rng.randint(10 ** (digits - 1) if digits > 1 else 2, 10 ** digits - 1)


def _number(rng: Random, is_whole: bool) -> str:
    if is_whole or rng.random() < 0.85:
        return str(_whole(rng))
    places = rng.choice((1, 2, 2, 3))
    return f"{_whole(rng, 4)}." + f"{rng.randint(1, 10 ** places - 1):0{places}d}".rstrip("0")


def _two(rng: Random, signs: str, is_whole: bool, most: int) -> Sum:
    sign = rng.choice(signs)
    if most:
        a, b = str(rng.randint(0, most)), str(rng.randint(0, most))
    elif sign == "/" and rng.random() < 0.5:  # without a remainder
        divisor = _whole(rng, 3)
        a, b = str(divisor * _whole(rng, 3)), str(divisor)
    else:
        a, b = _number(rng, is_whole), _number(rng, is_whole)
    if sign == "/" and Fraction(b) == 0:
        b = "4"
    if sign == "-" and Fraction(a) < Fraction(b) and rng.random() < 0.7:
        a, b = b, a
    said, lines = (a, b), ASKED[sign]
    if a.isdigit() and b.isdigit():
        if int(a) < 100 and int(b) < 100 and rng.random() < 0.08:
            said = (number_word(int(a)), number_word(int(b)))
            lines = [line for line in lines if re.search(r"[a-z] \{b\}|\{b\} (to|from|away)", line)]
        elif max(int(a), int(b)) > 999 and rng.random() < 0.12:
            said = (f"{int(a):,}", f"{int(b):,}")
    if sign == "-" and Fraction(a) < Fraction(b):
        lines = lines[:5]  # the others are odd where the result is negative
    if rng.random() < 0.6 or said[0] != a and not said[0][0].isdigit():
        question = rng.choice(lines).format(a=said[0], b=said[1])
    else:
        shown = rng.choice({"*": ("*", " * ", " x ", " × ", " times "), "/": ("/", " / ", " ÷ ", " divided by "),
                            "+": ("+", " + ", " + ", " plus "), "-": ("-", " - ", " - ", " minus ")}[sign])
        question = rng.choice(ANY).format(e=said[0] + shown + said[1])
    question = question[0].upper() + question[1:]
    return Sum(loosened(rng, question), a + sign + b, f"{a}{SPOKEN[sign]}{b} = {{r}}.", (a, sign, b))


def _told(rng: Random, signs: str) -> Sum:
    """A small story with two numbers."""
    sign = rng.choice(signs)
    name, noun = rng.choice(w.NAMES), rng.choice(w.FRUITS + w.THINGS)
    a, b = _whole(rng, 5), _whole(rng, 3)
    many = plural(noun)
    if sign == "+":
        more = rng.choice(("gets {b} more", "buys {b} more", "finds {b} more")).format(b=b)
        return Sum(f"{name} has {counted(a, noun)} and {more}. How many {many} does {name} have now?", f"{a}+{b}",
                   f"{name} has {{r}} {many}.", (str(a), "+", str(b)))
    if sign == "-":
        a, b = max(a, b), min(a, b)
        less = rng.choice(("gives away {b}", "loses {b}", "sells {b}")).format(b=b)
        return Sum(f"{name} has {counted(a, noun)} and {less}. How many {many} does {name} have now?", f"{a}-{b}",
                   f"{name} has {{r}} {many}.", (str(a), "-", str(b)))
    if sign == "*":
        a = _whole(rng, 3)
        return rng.choice((
            Sum(f"One {noun} costs {a} euros. What do {b} {many} cost?", f"{a}*{b}", f"{b} {many} cost {{r}} euros.",
                (str(a), "*", str(b))),
            Sum(f"There are {a} boxes with {b} {many} each. How many {many} are there?", f"{a}*{b}",
                f"There are {{r}} {many}.", (str(a), "*", str(b)))))
    a = b * _whole(rng, 3)
    return Sum(f"{counted(a, noun)} are shared among {b} people. How many does each of them get?", f"{a}/{b}",
               "Each gets {r}.", (str(a), "/", str(b)))


def _spoken(expression: str) -> str:
    return "".join(SPOKEN.get(c, c) for c in expression)


def _longer(rng: Random) -> Sum:
    """More than two numbers, brackets, percents, squares and roots."""
    draw = rng.random()
    if draw < 0.62:
        numbers = [_number(rng, rng.random() < 0.8) for _ in range(rng.choice((3, 3, 3, 4)))]
        signs = [rng.choice("++--**/") for _ in numbers[1:]]
        parts = [numbers[0]]
        for sign, number in zip(signs, numbers[1:]):
            parts += [sign, number]
        if rng.random() < 0.45:
            at = 2 * rng.randrange(len(signs))
            parts[at], parts[at + 2] = "(" + parts[at], parts[at + 2] + ")"
        expression = "".join(parts)
        shown = rng.choice((expression, _spoken(expression).replace(" x ", " * "), _spoken(expression)))
        return Sum(loosened(rng, rng.choice(ANY).format(e=shown)), expression, f"{_spoken(expression)} = {{r}}.")
    a = _whole(rng, 4)
    if draw < 0.78:
        p = rng.randint(1, 99)
        question = rng.choice(("What is {p}% of {a}?", "What is {p} % of {a}?", "How much is {p} percent of {a}?",
                               "{p}% of {a}", "What's {p} percent of {a}?", "Calculate {p}% of {a}."))
        return Sum(loosened(rng, question.format(p=p, a=a)), f"{a}*{p}/100", f"{p} % of {a} is {{r}}.")
    if draw < 0.86:
        question = rng.choice(("What is {a} squared?", "Square {a}.", "{a} squared", "What is the square of {a}?"))
        return Sum(loosened(rng, question.format(a=a)), f"{a}*{a}", f"{a} x {a} = {{r}}.", (str(a), "*", str(a)))
    if draw < 0.93:
        question = rng.choice(("What is the square root of {a}?", "Square root of {a}?", "What's the square root of {a}?",
                               "sqrt({a})", "What is sqrt({a})?", "Calculate the square root of {a}."))
        return Sum(loosened(rng, question.format(a=a)), f"sqrt({a})", f"The square root of {a} is {{r}}.")
    a, b = rng.randint(2, 30), rng.randint(2, 12)
    question = rng.choice(("What is {a} to the power of {b}?", "{a}^{b}", "What is {a}^{b}?", "{a}**{b}",
                           "Calculate {a} to the power of {b}."))
    return Sum(loosened(rng, question.format(a=a, b=b)), f"{a}**{b}", f"{a} to the power of {b} is {{r}}.")


def _sum_key(made: Sum) -> tuple[object, ...]:
    """Small sums share their key with those that the model calculates itself."""
    if made.operands is None:
        return ("expression", made.expression)
    a, sign, b = made.operands
    if sign in "+-" and a.isdigit() and b.isdigit():
        return arithmetic.key(sign, int(a), int(b))
    return ("expression", *(sorted((a, b)) if sign == "*" else (a, b)), sign)


def _sum(rng: Random, tools: list[Calculator], held_out: bool) -> Sum:
    """Something that the tools can calculate."""
    signs = "".join(tool.signs for tool in tools)
    by_expression = bool(tools[0].expression)
    is_whole, most = tools[0].kind == "integer", tools[0].most

    def draw() -> Sum:
        chosen = rng.random()
        while True:
            if chosen < 0.13 and not most:
                made = _told(rng, signs)
            elif chosen < 0.40 and by_expression:
                made = _longer(rng)
            else:
                made = _two(rng, signs, is_whole, most)
            try:
                value_of(made.expression)
                return made
            except ZeroDivisionError:
                continue
    return drawn(draw, _sum_key, held_out)


def call_of(tools: list[Calculator], asked: Sum) -> Call:
    if tools[0].expression:
        return Call(tools[0].tool.name, compact({tools[0].expression: asked.expression}))
    assert asked.operands is not None
    a, sign, b = asked.operands
    tool = next(t for t in tools if sign in t.signs)
    numbers = {name: f'"{x}"' if tool.kind == "string" else x for name, x in zip(tool.operands, (a, b))}
    if tool.operation:
        numbers[tool.operation] = compact(tool.operations[sign])
    return Call(tool.tool.name, "{" + ",".join(f'"{name}":{numbers[name]}' for name in tool.tool.properties) + "}")


# ---------------------------------------------------------------- what the calculator says
def value_of(expression: str) -> Fraction | float:
    if expression.startswith("sqrt"):
        return float(expression[5:-1]) ** 0.5
    value: Fraction = eval(NUMBER.sub(r'F("\g<0>")', expression), {"F": Fraction})  # a text of ours
    return value


def result_text(rng: Random, expression: str) -> str:
    """The result as programs write it."""
    value = value_of(expression)
    if value == int(value) and abs(value) < 10 ** 16:
        is_float = ("/" in expression or expression.startswith("sqrt")) and rng.random() < 0.3
        return f"{int(value)}.0" if is_float else str(int(value))
    if abs(value) >= 10 ** 16:
        return str(int(value))
    return rng.choice((repr(float(value)), repr(float(value)), repr(round(float(value), rng.randint(2, 6)))))


def calculated(rng: Random, asked: Sum, result: str) -> str:
    """What the tool returns."""
    draw = rng.random()
    if draw < 0.45:
        return result
    name = rng.choice(("result", "result", "result", "value", "answer", "output"))
    if draw < 0.65:
        return rng.choice((f'{{"{name}":{result}}}', f'{{"{name}": {result}}}', f'{{"{name}":"{result}"}}'))
    if draw < 0.72:
        return rng.choice((f'{{"expression":"{asked.expression}","{name}":{result}}}',
                           f'{{"ok":true,"{name}":{result}}}', f'{{"{name}":{result},"error":null}}'))
    return rng.choice((f"{asked.expression} = {result}", f"{asked.expression}={result}", f"= {result}", f"Result: {result}",
                       f"The result is {result}.", f"{_spoken(asked.expression)} = {result}", f"{name}: {result}",
                       f"The answer is {result}"))


ERRORS = """unknown city|invalid expression|division by zero|not available|timeout|permission denied|service unavailable
|invalid argument|unknown time zone|syntax error""".replace("\n", "").split("|")


def _failed(rng: Random) -> tuple[str, str]:
    """What a tool returns that failed, and the answer."""
    error = rng.choice(ERRORS)
    text = rng.choice(("Error: {e}", "error: {e}", '{{"error":"{e}"}}', '{{"error": "{e}"}}', "ERROR: {e}"))
    return text.format(e=error), f"The tool reports an error: {error}."


def calculation(rng: Random, tools: list[Calculator], held_out: bool = False) -> list[Step]:
    asked = _sum(rng, tools, held_out)
    return [_called_step(tools, asked), _calculated_step(rng, asked, held_out)]


def _called_step(tools: list[Calculator], asked: Sum, thought: str = "This is a task for the calculator.") -> Step:
    return Step((Said("user", asked.question),), (call_of(tools, asked),), thought=thought)


def _answer_step(rng: Random, asked: Sum, result: str) -> Step:
    return Step((Said("result", calculated(rng, asked, result)),), answer=asked.answer.format(r=result),
                thought=f"The calculator says {result}.")


def _calculated_step(rng: Random, asked: Sum, held_out: bool) -> Step:
    if rng.random() < 0.03 and not held_out:
        text, answer = _failed(rng)
        return Step((Said("result", text),), answer=answer, thought="The tool failed.")
    result = result_text(rng, asked.expression)
    if rng.random() < SHARE_OF_WRONG_RESULTS and not held_out:
        result = str(_whole(rng))
    return _answer_step(rng, asked, result)


CONTINUED = {"+": ("Now add {}.", "And plus {}?", "Add {} to that.", "plus {}"),
             "-": ("Now subtract {}.", "And minus {}?", "Take away {}.", "minus {}"),
             "*": ("Now multiply that by {}.", "And times {}?", "Times {}.", "times {}", "Multiply it by {}."),
             "/": ("Now divide that by {}.", "Divided by {}?", "Divide it by {}.", "And divided by {}?")}


def continued(rng: Random, tools: list[Calculator]) -> list[Step]:
    """A sum, and another one that begins with its result."""
    asked = _sum(rng, tools, False)
    while (result := result_text(rng, asked.expression)).startswith("-") or not result.isdigit() or len(result) > 8:
        asked = _sum(rng, tools, False)
    steps = [_called_step(tools, asked), _answer_step(rng, asked, result)]
    sign = rng.choice("".join(tool.signs for tool in tools))
    b = str(_whole(rng, 4))
    if tools[0].most:
        return steps
    question = rng.choice(CONTINUED[sign]).format(b)
    more = Sum(question, result + sign + b, f"{result}{SPOKEN[sign]}{b} = {{r}}.", (result, sign, b))
    if is_held_out(*_sum_key(more)):
        return steps
    return steps + [_called_step(tools, more, "I will continue with the last result."), _calculated_step(rng, more, False)]




# ---------------------------------------------------------------- the clock
TIME = ["What time is it{p}?", "What's the time{p}?", "What is the time{p}?", "What time is it{p} now?", "What time is it{p} right now?",
        "Tell me the time{p}.", "Can you tell me the time{p}?", "What is the current time{p}?", "How late is it{p}?",
        "Do you know what time it is{p}?", "current time{p}", "time{p}", "Time{p}?", "Could you tell me what time it is{p}?",
        "What's the current time{p}?", "I need to know the time{p}.", "Please tell me the time{p}.", "What does the clock say{p}?",
        "what time is it{p}", "Give me the time{p}.", "Use the clock: what time is it{p}?", "How late is it{p} now?",
        "What time do we have{p}?", "Check the time{p}.", "Is it late{p}? Tell me the time."]
AT_PLACE = ["What time is it for people{p}?", "What is the local time{p}?", "What's the local time{p}?", "Local time{p}?",
            "I want to call someone{p}. What time is it there?", "My sister lives{p}. What time is it there?"]
DATE = ["What is the date{p}?", "What's the date{p}?", "What is the date today?", "What's today's date?", "What date is it{p}?",
        "Which date do we have today?", "Tell me the date.", "What is today's date?", "Today's date?", "date", "Give me the date.",
        "Can you tell me the date?", "What date is it today?", "Which date is it?"]
DAY = ["What day is it{p}?", "What day is it today?", "Which day is it?", "What day of the week is it?", "Which day of the week is it today?",
       "Which weekday is it{p}?", "What day is today?", "Tell me what day it is.", "What weekday do we have?"]


class Moment(NamedTuple):
    """A question for the clock."""
    question: str
    wanted: str  # time, date or day
    place: str


def _place(rng: Random, of: Clock) -> str:
    if not of.place or rng.random() < 0.25:
        return ""
    if of.is_zone:
        return rng.choice(list(ZONE_OF))
    return invented_name(rng) if rng.random() < 0.12 else rng.choice(TOWNS)


def _moment(rng: Random, of: Clock, held_out: bool) -> Moment:
    def draw() -> Moment:
        place = _place(rng, of)
        wanted = rng.choices(("time", "date", "day"), (76, 13, 11))[0]
        lines = {"time": TIME + (AT_PLACE if place else []), "date": DATE, "day": DAY}[wanted]
        if place:
            lines = [line for line in lines if "{p}" in line]
        question = rng.choice(lines).format(p=" in " + place if place else "")
        return Moment(loosened(rng, question), wanted, place)
    return drawn(draw, lambda m: ("clock", m.question.lower()), held_out)


def clock_call(rng: Random, of: Clock, asked: Moment) -> Call:
    """Without a place the clock is asked for here. Where it must have one, "local" comes next best."""
    if not of.place or (not asked.place and rng.random() < 0.75):
        return Call(of.tool.name, "{}")
    place = ZONE_OF.get(asked.place, asked.place) if of.is_zone else asked.place
    return Call(of.tool.name, compact({of.place: place or "local"}))


def accepted_calls(of: "Offer", calls: tuple[Call, ...]) -> list[str]:
    """All calls that are as good as these."""
    if of.clock and of.clock.place and calls[0].name == of.clock.tool.name:
        here = [Call(calls[0].name, "{}"), Call(calls[0].name, compact({of.clock.place: "local"}))]
        if calls[0] in here:
            return [shown([call]) for call in here]
    return [shown(calls)]


def _told_time(rng: Random, asked: Moment) -> tuple[str, str]:
    """What the clock returns, and the answer."""
    now = datetime.datetime(rng.randint(2024, 2032), 1, 1) + datetime.timedelta(minutes=rng.randrange(365 * 24 * 60))
    seconds = f"{now:%H:%M}:{rng.randint(0, 59):02}"
    weekday, long_date = w.DAYS[now.weekday()], f"{now.day} {w.MONTHS[now.month - 1]} {now.year}"
    iso = f"{now:%Y-%m-%d}"
    offset = rng.choice(("", "Z", "+00:00", "+01:00", "+02:00", "+09:00", "-05:00", "+05:30"))
    half = f"{(now.hour + 11) % 12 + 1}:{now:%M} {'AM' if now.hour < 12 else 'PM'}"
    short = f"{weekday[:3]} {w.MONTHS[now.month - 1][:3]} {now.day:2} {seconds} {now.year}"
    where, zone = asked.place, ZONE_OF.get(asked.place, "UTC")
    at_place = f" in {where}" if where else ""
    hm = f"{now:%H:%M}"
    if asked.wanted == "time":
        forms = [hm, hm, seconds, half, f"{iso} {hm}", f"{iso} {seconds}", f"{iso}T{seconds}{offset}", f"{iso}T{seconds}{offset}",
                 f'{{"time":"{hm}"}}', f'{{"time": "{hm}"}}', f'{{"time":"{seconds}"}}', f'{{"time":"{half}"}}',
                 f'{{"time":"{hm}","timezone":"{zone}"}}', f'{{"datetime":"{iso}T{seconds}{offset}"}}',
                 f'{{"date":"{iso}","time":"{hm}"}}', f'{{"time":"{iso}T{seconds}{offset}"}}', f"It is {hm}{at_place}.",
                 f"It is {half}{at_place}.", f"The time is {hm}.", f"{weekday}, {long_date}, {hm}", short, f"{hm} {zone}",
                 f"The current time{at_place} is {hm}.", f'{{"current_time":"{hm}"}}', f"{iso} {hm} {zone}"]
        if where:
            forms += [f'{{"city":"{where}","time":"{hm}"}}', f'{{"time":"{hm}","city":"{where}"}}', f"{where}: {hm}"]
        text = rng.choice(forms)
        return text, f"It is {half if half in text else hm}{at_place}."
    forms = [f"{iso}", f"{iso} {hm}", f"{iso}T{seconds}{offset}", f"{weekday}, {long_date}", f"{weekday}, {long_date}, {hm}",
             f"{long_date}", f'{{"date":"{iso}","time":"{hm}"}}', f'{{"date":"{iso}","day":"{weekday}"}}',
             f'{{"date":"{iso}","time":"{hm}","weekday":"{weekday}"}}', f"Today is {weekday}, {long_date}.",
             f'{{"datetime":"{iso}T{seconds}{offset}"}}', f"{weekday}, {iso}, {hm}", f'{{"date":"{long_date}"}}']
    text = rng.choice(forms)
    shown = weekday if asked.wanted == "day" and weekday in text else iso if iso in text else long_date
    return text, f"Today is {shown}."


def asking_the_clock(rng: Random, of: Clock, held_out: bool = False) -> list[Step]:
    asked = _moment(rng, of, held_out)
    call = clock_call(rng, of, asked)
    text, answer = _failed(rng) if rng.random() < 0.03 and not held_out else _told_time(rng, asked)
    return [Step((Said("user", asked.question),), (call,), thought="I look at the clock."),
            Step((Said("result", text),), answer=answer, thought="The clock has told me.")]


def both(rng: Random, tools: list[Calculator], of: Clock) -> list[Step]:
    """A sum and the time in one question: two calls, two results."""
    asked, moment = _sum(rng, tools, False), _moment(rng, of, False)
    while not re.fullmatch(r"(What|How|Can)[^?]{,50}\?", asked.question):
        asked = _sum(rng, tools, False)
    while not re.fullmatch(r"(What|How|Can)[^?.]{,50}\?", moment.question) or moment.wanted != "time":
        moment = _moment(rng, of, False)
    result = result_text(rng, asked.expression)
    time_text, time_answer = _told_time(rng, moment)
    calls = [call_of(tools, asked), clock_call(rng, of, moment)]
    texts, answers = [calculated(rng, asked, result), time_text], [asked.answer.format(r=result), time_answer]
    questions = [asked.question, moment.question]
    if rng.random() < 0.5:
        for row in (calls, texts, answers, questions):
            row.reverse()
    first, second, lowered = questions[0], questions[1], questions[1][0].lower() + questions[1][1:]
    joined = rng.choice((f"{first} {second}", f"{first} And {lowered}", f"{first[:-1]} and {lowered}"))
    results = tuple(Said("result", text) for text in texts)
    return [Step((Said("user", joined),), tuple(calls), thought="Two questions, two calls."),
            Step(results, answer=" ".join(answers), thought="I have both results.")]


# ---------------------------------------------------------------- conversations
NO_CLOCK, NO_WINDOW = (next(intent.answers[0] for intent in small_talk.SMALL_TALK if intent.name == name)
                       for name in ("time", "weather"))


SYSTEMS = ["You are a helpful assistant.", "You are a helpful assistant with tools.", "Use the tools if they help.",
           "You are a helpful assistant. Use the tools when needed.", "You can use tools.", "Answer the user's questions.",
           "You have access to tools.", "Use the calculator for all sums.", "Be brief."]


class Offer(NamedTuple):
    """What a request offers."""
    calculators: list[Calculator]
    clock: Clock | None
    tools: list[Tool]


def offer(rng: Random, held_out: bool = False, needs: str = "") -> Offer:
    """`needs`: calculator or clock, which is among the tools then."""
    draw = rng.random()
    has_calculator = needs == "calculator" or draw < 0.72
    has_clock = needs == "clock" or not 0.32 < draw < 0.95
    chosen = calculators(rng, held_out) if has_calculator else []
    time = clock(rng, held_out) if has_clock else None
    tools = [c.tool for c in chosen] + ([time.tool] if time else [])
    more = rng.choices((0, 1, 2, 3), (60, 20, 14, 6))[0] if tools else rng.choice((1, 1, 2, 3))
    tools += others(rng, more)
    rng.shuffle(tools)
    if len({tool.name for tool in tools}) < len(tools):
        return offer(rng, held_out, needs)
    return Offer(chosen, time, tools)


def fits_without(of: Offer, turn: Turn) -> bool:
    """Whether a question is answered without the tools that are offered."""
    if of.clock and turn.answer == NO_CLOCK:
        return False
    return turn.answer != NO_WINDOW or not any("weather" in tool.name for tool in of.tools)


def _which_tools(rng: Random, of: Offer) -> Step:
    question = rng.choice(("What tools do you have?", "Which tools can you use?", "What tools can you use?", "List your tools.",
                           "Which functions can you call?", "Do you have tools?", "Which tools do you have?"))
    names = [tool.name for tool in of.tools]
    return Step((Said("user", loosened(rng, question)),),
                answer=f"My tool is {names[0]}." if len(names) == 1 else f"My tools are {listed(names)}.",
                thought="The system text lists my tools.")


def _plain(rng: Random, of: Offer, talk: Callable[[Random], Turn]) -> Step:
    while True:
        turn = talk(rng)
        if fits_without(of, turn):
            return Step((Said("user", turn.user),), answer=turn.answer, thought=turn.thought)


def _exchange(rng: Random, of: Offer, talk: Callable[[Random], Turn]) -> list[Step]:
    choices: list[tuple[int, Callable[[], list[Step]]]] = [(30, lambda: [_plain(rng, of, talk)]),
                                                          (2, lambda: [_which_tools(rng, of)])]
    if of.calculators:
        choices.append((50, lambda: calculation(rng, of.calculators)))
        choices.append((5, lambda: continued(rng, of.calculators)))
    if (time := of.clock) is not None:
        choices.append((32, lambda: asking_the_clock(rng, time)))
        if of.calculators:
            choices.append((7, lambda: both(rng, of.calculators, time)))
    return rng.choices([make for _, make in choices], [weight for weight, _ in choices])[0]()


def offered_only(rng: Random, turns: Callable[[Callable[[Random], Turn]], list[Turn]], plain: Callable[[Random], Turn],
                 arithmetic_too: Callable[[Random], Turn], system: str) -> Talk:
    """A conversation that needs no tools. `turns` makes it of single questions."""
    of = offer(rng)
    ask = plain if of.calculators else arithmetic_too

    def fitting(rng: Random) -> Turn:
        while not fits_without(of, turn := ask(rng)):
            pass
        return turn
    steps = [Step((Said("user", turn.user),), answer=turn.answer, thought=turn.thought) for turn in turns(fitting)]
    return Talk(steps, of.tools, system)


def talk(rng: Random, plain: Callable[[Random], Turn], arithmetic_too: Callable[[Random], Turn], system: str) -> Talk:
    """`plain`: questions that need neither tool; `arithmetic_too`: where no calculator is offered."""
    of = offer(rng)
    ask = plain if of.calculators else arithmetic_too
    steps: list[Step] = []
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        steps += _exchange(rng, of, ask)
    draw = rng.random()
    if draw < 0.05 and len(steps[-1].said) == 1 and steps[-1].said[0].role == "result":  # a client that names no call
        steps[-1] = steps[-1]._replace(said=(Said("observation", steps[-1].said[0].text),))
    calls = [i for i, step in enumerate(steps) if step.calls]
    if 0.05 < draw < 0.25 and calls:  # required
        return Talk(steps[:calls[-1] + 1], of.tools, system, True)
    if 0.25 < draw < 0.32 and calls and not steps[-1].calls:  # the last request has no tools
        return Talk(steps, [], system)
    return Talk(steps, of.tools, system)


