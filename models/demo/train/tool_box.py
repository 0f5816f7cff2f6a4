"""The tools that conversations offer: calculators and clocks under many names, and tools that are not needed."""
from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import words as w
from split import drawn
from tool_forms import Tool
from wording import invented_word

# ---------------------------------------------------------------- calculators
CALCULATOR_NAMES = """
calculator calculator calculator calculate calculate calc evaluate compute math eval_expression evaluate_expression
calculate_expression do_math math_eval arithmetic run_calculation use_calculator Calculator math_tool solve
calculator_tool""".split()
EXPRESSION_NAMES = "expression expression expression expression expr formula input query equation calculation text math_expression".split()
CALCULATOR_TEXTS = """
Evaluates an arithmetic expression.|Evaluate a mathematical expression.|Evaluate a math expression|A calculator.
|Calculates the result of an arithmetic expression.|Calculate a mathematical expression and return the result.
|Performs basic arithmetic.|Perform arithmetic calculations.|A simple calculator|Does math.|Compute the value of an expression.
|Calculator for +, -, * and /.|Useful for arithmetic.|Use this for all calculations.|Returns the value of a formula.
|Add, subtract, multiply and divide numbers.""".replace("\n", "").split("|")
EXPRESSION_TEXTS = """
The expression to evaluate.|The expression, for example 2 + 3 * 4.|A mathematical expression, e.g. '2 + 2'|Arithmetic expression
|The expression to calculate|What to calculate|Math expression like 12*7""".replace("\n", "").split("|")
OPERAND_NAMES = [("a", "b"), ("a", "b"), ("a", "b"), ("x", "y"), ("x", "y"), ("left", "right"), ("num1", "num2"),
                 ("number1", "number2"), ("first", "second"), ("operand1", "operand2"), ("n1", "n2"), ("lhs", "rhs")]
OPERATION_NAMES = "operation operation operation op operator action method".split()
OPERATIONS: list[dict[str, str]] = [dict(zip("+-*/", line.split())) for line in (
    "add subtract multiply divide", "add subtract multiply divide", "+ - * /", "+ - * /", "add sub mul div",
    "addition subtraction multiplication division", "plus minus times divide", "sum difference product quotient",
    "ADD SUBTRACT MULTIPLY DIVIDE")]
SINGLE_NAMES = {"+": "add add add_numbers sum plus addition".split(), "-": "subtract subtract minus sub difference".split(),
                "*": "multiply multiply multiply_numbers times mul product".split(),
                "/": "divide divide divide_numbers div quotient".split()}
SINGLE_TEXTS = {"+": ["Adds two numbers.", "Add two numbers", "Returns a + b.", "Adds.", ""],
                "-": ["Subtracts two numbers.", "Subtract two numbers", "Returns the difference of two numbers.", ""],
                "*": ["Multiplies two numbers.", "Multiply two numbers", "Returns the product of two numbers.", ""],
                "/": ["Divides two numbers.", "Divide one number by another", "Returns the quotient of two numbers.", ""]}


# What descriptions say besides.
CALCULATOR_MORE = """
Use this whenever the user asks for a calculation.|Always use this tool for arithmetic.|The result is exact.
|Supports brackets.|Returns a number.|Returns JSON.|Call it for every sum, however small.""".replace("\n", "").split("|")
CLOCK_MORE = """
Use this whenever the user asks for the time.|The model has no clock of its own.|Returns a string.|Returns JSON.
|The format is HH:MM.|Returns the time in ISO 8601.|Use it for questions about today.""".replace("\n", "").split("|")


def _described(rng: Random, texts: list[str], more: list[str]) -> str:
    draw = rng.random()
    if draw < 0.13:
        return ""
    text = rng.choice(texts)
    return f"{text}{'' if text.endswith('.') else '.'} {rng.choice(more)}" if draw > 0.8 else text


class Calculator(NamedTuple):
    """A tool and how it is called: by an expression, or by two operands and perhaps the name of an operation."""
    tool: Tool
    expression: str = ""               # the parameter
    operands: tuple[str, str] = ("", "")
    kind: str = "number"               # type of the operands
    most: int = 0                      # of the operands; 0: any
    operation: str = ""                # the parameter
    operations: dict[str, str] = {}    # values of the parameter by sign
    signs: str = "+-*/"                # what it can do


def _schema(rng: Random, kind: str, text: str, **more: Any) -> dict[str, Any]:
    """The members of a parameter's schema, in the orders that people and libraries write."""
    members: dict[str, Any] = {"type": kind}
    if text:
        members["description"] = text
    members.update(more)
    if rng.random() < 0.25:
        names = sorted(members) if rng.random() < 0.7 else list(reversed(members))
        return {name: members[name] for name in names}
    return members


def _titled(rng: Random, name: str, kind: str) -> dict[str, Any]:
    """As a library generates it from a function's signature."""
    return {"title": name.replace("_", " ").title(), "type": kind}


def _renamed(rng: Random, name: str) -> str:
    """Now and then a name that must be copied."""
    draw = rng.random()
    if draw < 0.06:
        return f"{name}{rng.randint(1, 99)}"
    if draw < 0.12:
        return f"{invented_word(rng)}_{name}"
    if draw < 0.18:
        return f"{name}{rng.choice('_-')}{invented_word(rng)}"
    return invented_word(rng) if draw < 0.21 else name


def _by_expression(rng: Random) -> Calculator:
    name, parameter = _renamed(rng, rng.choice(CALCULATOR_NAMES)), rng.choice(EXPRESSION_NAMES)
    if rng.random() < 0.06:
        parameter = invented_word(rng)
    text = rng.choice(EXPRESSION_TEXTS) if rng.random() < 0.5 else ""
    schema = _titled(rng, parameter, "string") if rng.random() < 0.1 else _schema(rng, "string", text)
    described = _described(rng, CALCULATOR_TEXTS, CALCULATOR_MORE)
    return Calculator(Tool(name, described, {parameter: schema}, (parameter,)), expression=parameter)


def _operands(rng: Random, kind: str, most: int) -> tuple[tuple[str, str], dict[str, dict[str, Any]]]:
    names = rng.choice(OPERAND_NAMES)
    is_described = rng.random() < 0.3
    bounds = {"minimum": 0, "maximum": most} if most else {}
    return names, {name: _schema(rng, kind, f"{which} {rng.choice(('number', 'operand'))}{rng.choice(('', '.'))}"
                                 if is_described else "", **bounds)
                   for name, which in zip(names, ("First", "Second"))}


def _kind(rng: Random) -> str:
    return rng.choices(("number", "integer", "string"), (60, 30, 10))[0]


def _by_operation(rng: Random) -> Calculator:
    kind = _kind(rng)
    names, properties = _operands(rng, kind, 0)
    parameter, values = rng.choice(OPERATION_NAMES), rng.choice(OPERATIONS)
    listed = list(values.values())
    text = ""
    if rng.random() < 0.2:
        text = rng.choice(("One of {}.", "{}", "The operation: {}")).format(", ".join(listed))
        schema = _schema(rng, "string", text)
    else:
        if rng.random() < 0.2:
            rng.shuffle(listed)
        schema = _schema(rng, "string", rng.choice(("", "", "The operation.", "Operation to perform")), enum=listed)
    if rng.random() < 0.35:
        properties = {parameter: schema, **properties}
    else:
        properties[parameter] = schema
    name = _renamed(rng, rng.choice(CALCULATOR_NAMES[:6] + ["arithmetic", "basic_math", "math_operation"]))
    texts = [x for x in CALCULATOR_TEXTS if "xpression" not in x and "formula" not in x]
    described = _described(rng, texts, CALCULATOR_MORE)
    return Calculator(Tool(name, described, properties, tuple(properties)), operands=names, kind=kind,
                      operation=parameter, operations=values)


def _by_sign(rng: Random) -> list[Calculator]:
    """A tool for each of some operations, with the same parameters."""
    kind = _kind(rng)
    most = rng.choice((99, 100, 1000)) if kind != "string" and rng.random() < 0.15 else 0
    names, properties = _operands(rng, kind, most)
    made = []
    for sign in rng.sample("+-*/", rng.choice((1, 1, 2, 3, 4))):
        text = rng.choice(SINGLE_TEXTS[sign])
        if text == "Returns a + b." and names != ("a", "b"):
            text = "Adds."
        tool = Tool(_renamed(rng, rng.choice(SINGLE_NAMES[sign])), text, properties, names)
        made.append(Calculator(tool, operands=names, kind=kind, most=most, signs=sign))
    return made


def _key(tools: list[Tool]) -> tuple[object, ...]:
    return ("tool", *(x for tool in tools for x in (tool.name, *tool.properties)))


def calculators(rng: Random, held_out: bool = False) -> list[Calculator]:
    """One calculator, or tools for some of the four operations. Names and parameters together make the instance."""
    def draw() -> list[Calculator]:
        chosen = rng.random()
        if chosen < 0.58:
            return [_by_expression(rng)]
        if chosen < 0.82:
            return [_by_operation(rng)]
        return _by_sign(rng)
    return drawn(draw, lambda made: _key([c.tool for c in made]), held_out)


# ---------------------------------------------------------------- clocks
CLOCK_NAMES = """
clock clock clock get_time get_time get_current_time get_current_time current_time time now get_datetime
get_current_datetime current_datetime datetime get_date_time time_now world_clock get_local_time get_time_now
what_time_is_it""".split()
CLOCK_TEXTS = """
Returns the current time.|Get the current time|Tells the time.|Returns the current date and time.|Get the current date and time.
|The current time|Current date and time.|A clock.|Gets the current time in a city.|Get the time in a given place|Returns the time now.
|Tells the time and the date.""".replace("\n", "").split("|")
CITY_NAMES = "city city city location location place town".split()
ZONE_NAMES = "timezone timezone timezone tz time_zone zone".split()
CITY_TEXTS = ["", "", "The city.", "Name of the city", "City, for example Paris.", "The name of a city"]
ZONE_TEXTS = ["", "", "The time zone.", "IANA time zone, e.g. Europe/Paris", "Time zone such as Asia/Tokyo.", "Timezone name"]
ZONES: dict[str, list[str]] = {
    "Europe": """Oslo Paris Berlin London Madrid Rome Vienna Prague Warsaw Lisbon Dublin Athens Helsinki Stockholm Copenhagen
        Brussels Amsterdam Zurich Budapest Bucharest Sofia Belgrade Zagreb Riga Vilnius Tallinn Minsk Moscow Istanbul""".split(),
    "Asia": "Tokyo Seoul Shanghai Jakarta Manila Bangkok".split(),
    "Africa": "Cairo Tunis Lagos Nairobi Accra Dakar".split(),
    "America": "Chicago Denver Toronto Vancouver Lima Bogota Santiago Havana".split(),
    "Australia": "Sydney Melbourne Perth".split(), "Pacific": ["Auckland"], "Atlantic": ["Reykjavik"]}
ZONE_OF = {city: f"{continent}/{city}" for continent, cities in ZONES.items() for city in cities}
ZONE_OF |= {"Beijing": "Asia/Shanghai", "Delhi": "Asia/Kolkata", "Mumbai": "Asia/Kolkata", "New York": "America/New_York",
            "Boston": "America/New_York", "Seattle": "America/Los_Angeles", "Los Angeles": "America/Los_Angeles",
            "Munich": "Europe/Berlin", "Hamburg": "Europe/Berlin", "Geneva": "Europe/Zurich", "Milan": "Europe/Rome",
            "Hong Kong": "Asia/Hong_Kong", "Singapore": "Asia/Singapore", "UTC": "UTC"}
TOWNS = w.CITIES + ["New York", "San Francisco", "Los Angeles", "Hong Kong", "Singapore", "Rio de Janeiro", "Cape Town"]


class Clock(NamedTuple):
    tool: Tool
    place: str = ""  # the parameter
    is_zone: bool = False


def clock(rng: Random, held_out: bool = False) -> Clock:
    """A clock of here, or one that is told a city or a time zone."""
    def draw() -> Clock:
        name = _renamed(rng, rng.choice(CLOCK_NAMES))
        text = _described(rng, CLOCK_TEXTS, CLOCK_MORE)
        chosen = rng.random()
        if chosen < 0.4:
            return Clock(Tool(name, text.replace(" in a city", "").replace(" in a given place", ""), {}))
        is_zone = chosen > 0.7
        parameter = rng.choice(ZONE_NAMES if is_zone else CITY_NAMES)
        schema = _schema(rng, "string", rng.choice(ZONE_TEXTS if is_zone else CITY_TEXTS))
        if rng.random() < 0.08:
            schema = _titled(rng, parameter, "string")
        required = (parameter,) if rng.random() < 0.5 else ()
        return Clock(Tool(name, text, {parameter: schema}, required), parameter, is_zone)
    return drawn(draw, lambda made: _key([made.tool]), held_out)


# ---------------------------------------------------------------- others
# Name: description: parameters; tools that no question of the lessons needs.
OTHERS = """
get_weather: Returns the weather in a city.: city
weather: Get the current weather: location
search: Searches the web.: query
web_search: Search the internet for a query: query
send_email: Sends an email.: to subject body
send_message: Send a message to a contact: contact text
read_file: Reads a file.: path
write_file: Writes text to a file.: path content
list_files: Lists the files of a folder.: path
get_stock_price: Returns the price of a stock.: symbol
play_music: Plays a song.: title
create_event: Adds an event to the calendar.: title date
create_note: Saves a note: text
turn_on_light: Turns on the light in a room.: room
set_temperature: Sets the temperature of the heating: degrees:number room
run_sql: Runs a query on the database.: sql
get_user: Returns a user by id.: id:integer
open_page: Opens a web page.: url
roll_dice: Rolls dice.: sides:integer
book_table: Books a table in a restaurant.: name guests:integer
find_route: Finds the way between two places.: start goal
convert_currency: Converts money: amount:number source target
get_order: Returns the state of an order.: order_id
lookup: Looks up a word in the encyclopedia.: word
lock_door: Locks the door.:
take_photo: Takes a photo.:
""".strip().split("\n")


def other(rng: Random) -> Tool:
    name, text, parameters = rng.choice(OTHERS).split(":", 2)
    properties = {}
    for parameter in parameters.split():
        parameter, _, kind = parameter.partition(":")
        said = f"The {parameter.replace('_', ' ')}." if rng.random() < 0.2 else ""
        properties[parameter] = _schema(rng, kind or "string", said)
    return Tool(name, text.strip() if rng.random() < 0.85 else "", properties, tuple(properties))


def others(rng: Random, count: int) -> list[Tool]:
    made: dict[str, Tool] = {}
    while len(made) < count:
        tool = other(rng)
        made[tool.name] = tool
    return list(made.values())
