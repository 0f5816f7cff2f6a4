"""Counts the lines of classes: of a class's declaration, and of its members that are defined outside of it, in all files
of its folder. Splitting a class over files does not make it smaller.

The rows of a static table in a member are data and are not counted, so that a new route needs one row only.

The sources are formatted by clang-format: namespaces have no indentation, and a block ends with a brace at the
indentation of its first line.
"""
import re

LINES_MAX = 400
FOLDERS = ("config/", "src/", "kernels/", "actors/")
CODE = (".cpp", ".hpp", ".cu", ".cuh")
SLACK = 20  # lines by which an exception may be too generous

# Classes above the limit, as "folder class": lines. A class may only shrink; its number then shrinks with it.
EXCEPTIONS = {}

CLASS = re.compile(r"^( *)(?:template <.*> )?(?:class|struct) (?:alignas\(\w+\) )?([A-Za-z_]\w*(?:::\w+)*)(?: final)?(?= ?[:{]|$)")
MEMBER = re.compile(r"((?:[A-Za-z_]\w*(?:<[^<>()]*>)?::)+)(?:~?[A-Za-z_]\w*|operator ?[^\w\s(]+|operator\(\)|operator [\w:]+)\(")
TABLE = re.compile(r"^( +)static const .*\{$")
NO_DEFINITION = ("//", "#", "}", " ", "namespace", "using", "class ", "struct ", "enum ", "static_assert")


def block_end(lines, first, indentation):
    """The last line of the definition that begins at line `first`."""
    in_block = False
    for number in range(first, len(lines)):
        text = lines[number].split("  // ")[0].rstrip()
        if in_block:
            if text.startswith(indentation + "}"):
                return number
        elif text.endswith("{"):
            in_block = True
        elif text.endswith((";", "}")):
            return number
    return len(lines) - 1


def declarations(lines):
    """Name, first and last line of each class that is not part of another one."""
    found, last = [], -1
    for number, line in enumerate(lines):
        match = CLASS.match(line)
        if number <= last or not match or line.rstrip().endswith(";") and "{" not in line:
            continue
        last = block_end(lines, number, match[1])
        found.append((match[2], number, last))
    return found


def members(lines):
    """Qualifiers, first and last line of each definition at the outermost level."""
    number = 0
    while number < len(lines):
        line = lines[number]
        if not line or line.startswith(NO_DEFINITION):
            number += 1
            continue
        last = block_end(lines, number, "")
        signature = []
        for part in lines[number:last + 1]:
            signature.append(part.strip())
            if part.rstrip().endswith(("{", "}", ";")):
                break
        yield [m[1][:-2] for m in MEMBER.finditer(" ".join(signature))], number, last
        number = last + 1


def table_rows(lines, first, last):
    """The number of lines within static tables of the member at lines `first` to `last`."""
    rows, number = 0, first
    while number <= last:
        table, end = TABLE.match(lines[number]), number
        if table:
            end = block_end(lines, number, table[1])
            rows += end - number - 1
        number = end + 1
    return rows


def sizes(files):
    """The lines of each class as {(folder, name, file of its declaration): lines}."""
    code = {path: text.split("\n") for path, text in files.items() if path.startswith(FOLDERS) and path.endswith(CODE)}
    counts, homes = {}, {}
    for path, lines in code.items():
        folder = path.rpartition("/")[0]
        for name, first, last in declarations(lines):
            counts[folder, name, path] = counts.get((folder, name, path), 0) + last - first + 1
            homes.setdefault((folder, name), []).append(path)
    for path, lines in code.items():
        folder = path.rpartition("/")[0]
        for qualifiers, first, last in members(lines):
            home = next(((folder, name) for name in map(innermost(folder, homes), qualifiers) if name), None)
            if home:
                paths = homes[home]
                counted = last - first + 1 - table_rows(lines, first, last)
                counts[(*home, path if path in paths else paths[0])] += counted
    return counts


def innermost(folder, homes):
    """Finds the class that a qualifier such as "outer::inner" names: a class of its own, or the one that contains it."""
    def find(qualifier):
        parts = re.sub(r"<[^<>()]*>", "", qualifier).split("::")
        names = ("::".join(parts[:n]) for n in range(len(parts), 0, -1))
        return next((name for name in names if (folder, name) in homes), None)
    return find


def findings(files, exceptions=None):
    exceptions = EXCEPTIONS if exceptions is None else exceptions
    unused = dict(exceptions)
    for (folder, name, path), lines in sorted(sizes(files).items()):
        listed = unused.pop(f"{folder} {name}", None)
        if listed is None and lines > LINES_MAX:
            yield f"{path}:1: class {name} has {lines} lines in all files of its folder; at most {LINES_MAX} are allowed"
        elif listed is not None and lines > listed:
            yield f"{path}:1: class {name} has {lines} lines; its exception in class_sizes.py allows {listed}"
        elif listed is not None and lines <= LINES_MAX:
            yield f"{path}:1: class {name} has {lines} lines and needs no exception in class_sizes.py"
        elif listed is not None and lines < listed - SLACK:
            yield f"{path}:1: class {name} has {lines} lines; lower its exception in class_sizes.py from {listed}"
    for name in unused:
        yield f"tests/tidy/class_sizes.py:1: there is no class '{name}'; remove its exception"


def self_test():
    """Each row: files, exceptions, and a part of the one expected finding; None: no finding."""
    def declared(name, lines, indentation="", kind="class"):
        return f"{indentation}{kind} {name} {{\n" + f"{indentation}  int x;\n" * (lines - 2) + indentation + "};\n"

    def defined(name, lines):
        return f"void {name}() {{\n" + "  x();\n" * (lines - 2) + "}\n\n"

    body = declared("a", 100)
    parts = {"src/base/a.hpp": body, "src/base/a.cpp": defined("a::f", 150), "src/base/b.cpp": defined("a::g", 150)}
    one_more = {"src/base/c.cpp": "int* a::h() { return 0; }\n"}
    rows = (
        ("a class of just the length", parts, {}, None),
        ("a class in several files", parts | one_more, {}, "class a has 401 lines"),
        ("a long declaration", {"src/base/a.hpp": declared("a final : public b", 401)}, {}, "class a has 401 lines"),
        ("a struct", {"src/base/a.hpp": declared("a", 401, kind="struct")}, {}, "class a has 401 lines"),
        ("a template", {"src/base/a.hpp": "template <typename T>\n" + declared("a", 400) +
                        "template <typename T>\nint a<T>::f() {\n}\n"}, {}, "class a has 403 lines"),
        ("bases and initializers on lines of their own",
         {"src/base/a.hpp": "class a final : public b,\n                public c {\n  int x;\n};\n",
          "src/base/a.cpp": "a::a(int x,\n     int y)\n    : b(x),\n      c(y) {}\n" + defined("a::f", 393)}, {},
         "class a has 401 lines"),
        ("types with parentheses", parts | {"src/base/c.cpp": "std::function<void()> a::f() {\n}\n"}, {}, "402 lines"),
        ("a qualified return type", parts | {"src/base/c.cpp": "other::thing a::f() { return {}; }\n"}, {}, "401 lines"),
        ("a nested class", {"src/base/a.hpp": "class a {\n" + declared("b", 200, "  ") + "};\n",
                            "src/base/a.cpp": defined("a::b::f", 199)}, {}, "class a has 401 lines"),
        ("a nested class of its own", {"src/base/a.hpp": declared("a", 300), "src/base/a.cpp":
                                       declared("a::b", 300) + defined("a::b::f", 101)}, {}, "class a::b has 401"),
        ("functions, calls and another folder", parts | {"src/model/c.cpp": defined("a::f", 300), "src/base/c.cpp":
                                                         "void f() {\n  a::g();\n}\nclass a;\n" + defined("g", 300)}, {}, None),
        ("two classes of one name in two files", {"src/base/a.cpp": declared("a", 300) + defined("a::f", 100),
                                                  "src/base/b.cpp": declared("a", 300) + defined("a::f", 100)}, {}, None),
        ("a table", parts | {"src/base/c.cpp": "int a::h() {\n  static const std::vector<int> t{\n" + "      1,\n" * 99 +
                                               "  };\n}\n"}, {}, "class a has 404 lines"),
        ("an exception", parts | one_more, {"src/base a": 401}, None),
        ("an exception that has grown", parts | {"src/base/c.cpp": defined("a::h", 2)}, {"src/base a": 401}, "allows 401"),
        ("an exception that has shrunk", parts | one_more, {"src/base a": 422}, "lower its exception"),
        ("an exception without need", parts, {"src/base a": 401}, "needs no exception"),
        ("an exception without a class", {}, {"src/base a": 401}, "there is no class"),
        ("a test", {"tests/base/a.hpp": declared("a", 401)}, {}, None),
    )
    wrong = 0
    for name, made_up, exceptions, expected in rows:
        found = list(findings(made_up, exceptions))
        if not (not found if expected is None else len(found) == 1 and expected in found[0]):
            print(f"{name}: expected {expected!r}, found {found}")
            wrong += 1
    return wrong
