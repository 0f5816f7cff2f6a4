"""Addition and subtraction of numbers below one hundred, in many phrasings; the times table; honest limits."""
from __future__ import annotations

from random import Random

from document import Turn
from split import drawn, is_held_out
from wording import counted, loosened, number_word, plural

from words import FRUITS, NAMES, THINGS

ADD = ["What is {a} + {b}?", "{a} + {b}", "{a}+{b}", "{a} + {b} =", "What is {a} plus {b}?",
       "How much is {a} plus {b}?",
       "Add {a} and {b}.", "What is the sum of {a} and {b}?", "Calculate {a} + {b}.", "How much is {a} + {b}?",
       "What do you get if you add {b} to {a}?", "Compute {a} plus {b}.", "{a} plus {b}?", "Please add {a} and {b}.",
       "What's {a}+{b}?", "{a} + {b} = ?", "{a}+{b}=?", "{a}+{b}=", "what is {a}+{b}", "What's {a} plus {b}?",
       "Can you add {a} and {b}?", "Solve {a} + {b}."]
SUBTRACT = ["What is {a} - {b}?", "{a} - {b}", "{a}-{b}", "{a} - {b} =", "What is {a} minus {b}?",
            "How much is {a} minus {b}?", "Subtract {b} from {a}.", "What is the difference between {a} and {b}?",
            "Calculate {a} - {b}.", "How much is {a} - {b}?", "What do you get if you take {b} from {a}?",
            "Compute {a} minus {b}.", "{a} minus {b}?", "Take {b} away from {a}.", "What's {a}-{b}?", "{a} - {b} = ?",
            "{a}-{b}=?", "{a}-{b}=", "what is {a}-{b}", "Solve {a} - {b}."]


def _operand(rng: Random) -> int:
    return rng.randint(10, 99) if rng.random() < 0.85 else rng.randint(0, 9)


def _add_thought(a: int, b: int) -> str:
    ones = a % 10 + b % 10
    tens = a // 10 + b // 10 + ones // 10
    carry = f", carry {ones // 10}" if ones > 9 else ""
    extra = " + 1" if ones > 9 else ""
    return f"Ones: {a % 10} + {b % 10} = {ones}{carry}. Tens: {a // 10} + {b // 10}{extra} = {tens}. Together {a + b}."


def _subtract_thought(a: int, b: int) -> str:
    if a < b:
        return f"{a} is less than {b}, so the result is negative. {b} - {a} = {b - a}."
    if a % 10 >= b % 10:
        return (f"Ones: {a % 10} - {b % 10} = {a % 10 - b % 10}. Tens: {a // 10} - {b // 10} = {a // 10 - b // 10}. "
                f"Together {a - b}.")
    return (f"Ones: borrow, {a % 10 + 10} - {b % 10} = {a % 10 + 10 - b % 10}. "
            f"Tens: {a // 10 - 1} - {b // 10} = {a // 10 - 1 - b // 10}. Together {a - b}.")


def addition(rng: Random, held_out: bool = False) -> Turn:
    a, b = drawn(lambda: (_operand(rng), _operand(rng)), lambda p: key("+", *p), held_out)
    thought = _add_thought(a, b)
    if rng.random() < 0.12:
        name, noun = rng.choice(NAMES), rng.choice(FRUITS + THINGS)
        more = rng.choice(("gets {b} more", "finds {b} more", "buys {b} more", "is given another {b}")).format(b=b)
        return Turn(f"{name} has {counted(a, noun)} and {more}. How many {plural(noun)} does {name} have now?",
                    f"{name} has {counted(a + b, noun)}.", thought)
    as_words = rng.random() < 0.08
    said = {"a": number_word(a), "b": number_word(b)} if as_words else {"a": a, "b": b}
    question = rng.choice(ADD).format(**said)
    if as_words:
        question = question[0].upper() + question[1:]
    return Turn(loosened(rng, question), f"{a} + {b} = {a + b}.", thought)


def subtraction(rng: Random, held_out: bool = False) -> Turn:
    def draw() -> tuple[int, int]:
        a, b = _operand(rng), _operand(rng)
        return (max(a, b), min(a, b)) if rng.random() < 0.8 else (a, b)
    a, b = drawn(draw, lambda p: key("-", *p), held_out)
    thought = _subtract_thought(a, b)
    if rng.random() < 0.12 and a >= b:
        name, noun = rng.choice(NAMES), rng.choice(FRUITS + THINGS)
        less = rng.choice(("gives away {b}", "loses {b}", "sells {b}",
                           "eats {b}" if noun in FRUITS else "breaks {b}")).format(b=b)
        return Turn(f"{name} has {counted(a, noun)} and {less}. How many {plural(noun)} does {name} have now?",
                    f"{name} has {counted(a - b, noun)}.", thought)
    question = rng.choice(SUBTRACT)
    if a < b:
        question = rng.choice(SUBTRACT[:6])  # the others are odd where the result is negative
    as_words = rng.random() < 0.08
    said = {"a": number_word(a), "b": number_word(b)} if as_words else {"a": a, "b": b}
    question = question.format(**said)
    if as_words:
        question = question[0].upper() + question[1:]
    return Turn(loosened(rng, question), f"{a} - {b} = {a - b}.", thought)


def key(sign: str, a: int, b: int) -> tuple[object, ...]:
    """What makes a sum an instance; the order of the numbers matters in a subtraction only."""
    return ("add", min(a, b), max(a, b)) if sign == "+" else ("subtract", a, b)


def _three(rng: Random) -> Turn:
    """Three small numbers, from left to right."""
    first, second = rng.choice("+-"), rng.choice("+-")

    def result(sign: str, left: int, right: int) -> int:
        return left + right if sign == "+" else left - right

    def draw() -> tuple[int, int, int]:
        return rng.randint(1, 60), rng.randint(1, 30), rng.randint(1, 9)

    a, b, c = draw()
    while is_held_out(*key(first, a, b)) or is_held_out(*key(second, result(first, a, b), c)):
        a, b, c = draw()
    half = result(first, a, b)
    question = rng.choice(("What is {}?", "{}", "{} =", "How much is {}?",
                           "Calculate {}.")).format(f"{a} {first} {b} {second} {c}")
    return Turn(loosened(rng, question), f"{a} {first} {b} = {half}, and {half} {second} {c} = {result(second, half, c)}.",
                "I go from left to right.")


def _doubled(rng: Random) -> Turn:
    """Doubles, halves and primes."""
    a = rng.randint(1, 50)
    draw = rng.random()
    if draw < 0.35:
        question = rng.choice(("Double {}.", "What is twice {}?", "What is the double of {}?", "double {}")).format(a)
        return Turn(loosened(rng, question), f"Twice {a} is {2 * a}.", f"{a} + {a} = {2 * a}.")
    if draw < 0.7:
        question = rng.choice(("What is half of {}?", "Half of {}?", "half of {}", "What is {} / 2?")).format(2 * a)
        return Turn(loosened(rng, question), f"Half of {2 * a} is {a}.", f"{a} + {a} = {2 * a}.")
    is_prime = a > 1 and all(a % d for d in range(2, a))
    return Turn(loosened(rng, rng.choice(("Is {} prime?", "Is {} a prime number?")).format(a)),
                f"{a} is {'a' if is_prime else 'not a'} prime number.", "I know the small prime numbers.")


def chained(rng: Random) -> list[Turn]:
    """A sum, then more added to its result or taken from it."""
    first = drawn(lambda: (rng.randint(1, 60), rng.randint(1, 39)), lambda p: key("+", *p), False)
    result = sum(first)
    turns = [Turn(loosened(rng, rng.choice(ADD).format(a=first[0], b=first[1])), f"{first[0]} + {first[1]} = {result}.",
                  _add_thought(*first))]
    for _ in range(rng.choice((1, 1, 2))):
        if rng.random() < 0.5:
            step = drawn(lambda: rng.randint(1, 40), lambda x: key("+", result, x), False)
            question = rng.choice(("Now add {}.", "And plus {}?", "Add {} to that.", "now add {}", "plus {}",
                                   "And another {}?")).format(step)
            turns.append(Turn(question, f"{result} + {step} = {result + step}.", _add_thought(result, step)))
            result += step
        else:
            step = drawn(lambda: rng.randint(1, max(1, min(40, result))), lambda x: key("-", result, x), False)
            question = rng.choice(("Now subtract {}.", "And minus {}?", "Take away {}.", "minus {}",
                                   "Now take {} away.")).format(step)
            turns.append(Turn(question, f"{result} - {step} = {result - step}.", _subtract_thought(result, step)))
            result -= step
    return turns


def other(rng: Random) -> Turn:
    """The small times table, comparing, halves, and what is beyond the model."""
    draw = rng.random()
    if draw < 0.12:
        return _three(rng)
    if draw < 0.45:
        a, b = rng.randint(0, 12), rng.randint(0, 12)
        question = rng.choice(("What is {a} * {b}?", "{a} * {b}", "{a}*{b}", "What is {a} times {b}?",
                               "How much is {a} x {b}?",
                               "Multiply {a} by {b}.", "What is {a} x {b}?")).format(a=a, b=b)
        return Turn(loosened(rng, question), f"{a} x {b} = {a * b}.", "That is in the times table.")
    if draw < 0.57:
        a, b = rng.randint(0, 99), rng.randint(0, 99)
        if a == b:
            b += 1
        is_larger = rng.random() < 0.5
        question = rng.choice(("Which number is {w}, {a} or {b}?", "Which is {w}: {a} or {b}?",
                               "which is {w}, {a} or {b}", "Is {a} or {b} {w}?", "What is {w}, {a} or {b}?"))
        picked = max(a, b) if is_larger else min(a, b)
        return Turn(question.format(w=rng.choice(("larger", "bigger", "greater") if is_larger else ("smaller", "less")),
                                    a=a, b=b),
                    f"{picked} is {'larger' if is_larger else 'smaller'}.", "I compare the tens first, then the ones.")
    if draw < 0.62:
        return _doubled(rng)
    if draw < 0.70:
        a = rng.randint(0, 99)
        if rng.random() < 0.5:
            return Turn(rng.choice(("Is {a} even or odd?", "Is {a} an even number or an odd one?")).format(a=a),
                        f"{a} is {'odd' if a % 2 else 'even'}.", "I look at the last digit.")
        step, word = rng.choice(((1, "after"), (-1, "before")))
        return Turn(f"Which number comes {word} {a + 1}?", f"{a + 1 + step} comes {word} {a + 1}.", "I count.")
    a, b = rng.choice((rng.randint(100, 999), 100 * rng.randint(1, 20), rng.randint(1000, 99999))), rng.randint(2, 2000)
    if rng.random() < 0.3:
        a, b = b, a
    if rng.random() < 0.25:
        question = rng.choice(("What is {b} % of {a}?", "What's {b}% of {a}?", "What is {a} / {b}?", "{a} / {b}",
                               "Divide {a} by {b}.",
                               "What is {a} divided by {b}?", "What is {a} squared?", "What is the square root of {a}?",
                               "What is {a} to the power of {b}?", "{a} * {b}", "What is {a} times {b}?",
                               "Solve x + {a} = {b}."))
        a, b = rng.randint(13, 99), rng.randint(13, 99)
        return Turn(loosened(rng, question.format(a=a, b=b)),
                    "I only learned to add and subtract, and the small times table.",
                    "That is not among the things I learned.")
    question = rng.choice(("What is {a} + {b}?", "{a} - {b}", "{a}*{b}", "What is {a} / {b}?", "What is {a} times {b}?",
                           "{a} + {b}", "How much is {a} plus {b}?", "What is the square root of {a}?",
                           "Divide {a} by {b}."))
    return Turn(loosened(rng, question.format(a=a, b=b)), rng.choice((
        "That is beyond me: I only learned to add and subtract numbers below 100.",
        "I am a small demo model and calculate with numbers below 100 only.")),
        "These numbers are larger than those I learned.")


def turn(rng: Random, held_out: bool = False) -> Turn:
    return (addition if rng.random() < 0.5 else subtraction)(rng, held_out)
