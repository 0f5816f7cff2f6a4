#!/usr/bin/env python3
"""Writes schemas like those of real programs, with valid instances, for mask_bench:

    make_schemas.py FOLDER [COUNT]

Objects of 3 to 40 properties, nested up to three deep: strings, numbers, enums, formats, patterns, lengths, arrays, maps,
alternatives and tagged unions. NAME.schema.json is a schema, NAME.0.json to NAME.2.json are instances. The same files
each time.
"""
import json
import pathlib
import random
import sys

WORDS = ("time year people way day man thing woman life child world school state family student group country problem hand "
         "part place case week system program question work number night point home water room area money story")
CHOOSE = random.Random(7)


def word() -> str:
    return CHOOSE.choice(WORDS.split())


def joined(mark: str, count: int = 2) -> str:
    return mark.join(word() for _ in range(count))


def digits(count: int, alphabet: str = "0123456789") -> str:
    return "".join(CHOOSE.choice(alphabet) for _ in range(count))


def text() -> str:
    sentence = joined(" ", CHOOSE.randint(3, 16)).capitalize() + "."
    return CHOOSE.choice([word(), joined("_"), sentence, sentence, "Zu\u00fcrich caf\u00e9 \u2013 " + word(),
                          "\u4f60\u597d\u4e16\u754c", 'one\n"two"\t' + word(), f"https://example.com/{joined('-')}?q={word()}"])


# Schemas of strings other than any text, with what makes an instance.
STRINGS = [
    ({"format": "date"}, lambda: f"20{digits(2)}-0{CHOOSE.randint(1, 9)}-1{digits(1)}"),
    ({"format": "date-time"}, lambda: f"2024-0{CHOOSE.randint(1, 9)}-1{digits(1)}T1{digits(1)}:2{digits(1)}:0{digits(1)}Z"),
    ({"format": "uuid"}, lambda: "-".join(digits(n, "0123456789abcdef") for n in (8, 4, 4, 4, 12))),
    ({"format": "email"}, lambda: f"{joined('.')}@{word()}.com"),
    ({"format": "uri"}, lambda: f"https://{word()}.org/{joined('-')}/{word()}"),
    ({"pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}, lambda: joined("-", 3)),
    ({"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, lambda: joined("_")),
    ({"pattern": "^#[0-9a-fA-F]{6}$"}, lambda: "#" + digits(6, "0123456789abcdef")),
    ({"pattern": r"^v?\d+\.\d+\.\d+$"}, lambda: f"v{digits(1)}.{digits(2)}.{digits(1)}"),
    ({"pattern": r"^\S+$"}, lambda: joined("-")),
    ({"pattern": "^[^/]+/[^/]+$"}, lambda: joined("/")),
    ({"pattern": "^arn:aws:[a-z0-9-]+:"}, lambda: "arn:aws:s3:::" + joined("-")),
    ({"minLength": 1}, text),
    ({"maxLength": 255}, text),
    ({"minLength": 1, "maxLength": 63, "pattern": "^[a-z0-9-]+$"}, lambda: joined("-")),
]


def leaf() -> tuple:
    kind = CHOOSE.randrange(20)
    if kind < 8:
        return {"type": "string"}, text
    if kind < 10:
        return {"type": "integer", **CHOOSE.choice([{}, {"minimum": 0}, {"minimum": 1, "maximum": 65535}])}, lambda: CHOOSE.randint(1, 90)
    if kind < 11:
        return {"type": "number"}, lambda: round(CHOOSE.random() * 1000, CHOOSE.randint(0, 6))
    if kind < 13:
        return {"type": "boolean"}, lambda: CHOOSE.random() < 0.5
    if kind < 16:
        values = sorted({joined(CHOOSE.choice("_-. ")) for _ in range(CHOOSE.choice([3, 5, 20]))})
        return {"type": "string", "enum": values}, lambda: CHOOSE.choice(values)
    if kind < 17:
        return {"type": ["string", "null"]}, lambda: CHOOSE.choice([None, text()])
    rules, make = CHOOSE.choice(STRINGS)
    return {"type": "string", **rules}, make


def array(depth: int) -> tuple:
    items, make = value(depth - 1)
    return {"type": "array", "items": items}, lambda: [make() for _ in range(CHOOSE.randint(1, 4))]


def mapping(depth: int) -> tuple:
    values, make = value(depth - 1)
    return {"type": "object", "additionalProperties": values}, lambda: {joined("-"): make() for _ in range(3)}


def alternatives(depth: int) -> tuple:
    each = [value(depth - 1) for _ in range(2)]
    return {"anyOf": [schema for schema, _ in each]}, lambda: CHOOSE.choice(each)[1]()


def union(depth: int) -> tuple:
    tagged = []
    for tag in sorted({word() for _ in range(3)}):
        schema, make = record(depth - 1, 5)
        schema["properties"] = {"kind": {"const": tag}, **schema["properties"]}
        schema["required"] = ["kind", *schema["required"]]
        tagged.append((schema, lambda tag=tag, make=make: {"kind": tag, **make()}))
    return {"oneOf": [schema for schema, _ in tagged]}, lambda: CHOOSE.choice(tagged)[1]()


def record(depth: int, most: int = 12) -> tuple:
    members = {joined(CHOOSE.choice("_-")): value(depth - 1) for _ in range(CHOOSE.randint(3, most))}
    required = [name for name in members if CHOOSE.random() < 0.4]
    schema = {"type": "object", "properties": {name: schema for name, (schema, _) in members.items()}, "required": required}
    if CHOOSE.random() < 0.4:
        schema["additionalProperties"] = False
    return schema, lambda: {name: make() for name, (_, make) in members.items() if name in required or CHOOSE.random() < 0.6}


def value(depth: int) -> tuple:
    if depth <= 0 or CHOOSE.random() < 0.5:
        return leaf()
    return CHOOSE.choice([record, record, array, array, mapping, alternatives, union])(depth)


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(int(sys.argv[2]) if len(sys.argv) > 2 else 100):
        schema, make = record(CHOOSE.choice([1, 1, 2, 2, 3]), CHOOSE.choice([6, 12, 25, 40]))
        (folder / f"{number:03}.schema.json").write_text(json.dumps(schema))
        for instance in range(3):
            form = CHOOSE.choice([{}, {}, {"indent": 2}, {"separators": (",", ":")}])
            (folder / f"{number:03}.{instance}.json").write_text(json.dumps(make(), **form))


if __name__ == "__main__":
    main()
